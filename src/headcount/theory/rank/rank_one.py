"""Hard heads of rank one on the nearest of two orthogonal points: expected errors in closed form, nothing sampled.

Points x_1, x_2 are orthogonal on the sphere of R^d, y is a query, all uniform. The target is the point nearer to y. A
head with directions q and k of the sphere outputs the x_i with the larger (q . y) (k . x_i). Every output is
(x_1 + x_2) / 2 plus or minus (x_1 - x_2) / 2, so two of them correlate by 1/2 + E[s s'] / 2 in their signs

    s_head = sign(q . y) sign(k . u),    s_target = sign(u . y),    u = (x_1 - x_2) / sqrt(2)

    head with head      E[s s'] = (2/pi)^2 asin(q . q') asin(k . k')
    head with target    E[s s*] = `harmonics.sign_correlation` of q . k

With mixing weights w the expected squared error is 1 - 2 w . b + w . G w, smallest at G w = b.
Source: Amsel et al. (arXiv 2407.16153); the heads of the plane are derived here.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

from ...errors import require, require_count
from ...keys import named_generator
from ..doors import require_counts, require_rank
from .harmonics import plane_correlation, sign_correlation

DISTRIBUTIONS = ("uniform", "spread", "script")
BLOCK = 512
"""Heads per block of columns of the Gram matrix."""
RIDGE = 1e-12
"""Added to the diagonal of the Gram matrix. Redundant heads (a duplicate, or a second pair of opposite heads) would
make it singular; with the ridge they leave the error unchanged. It can only raise errors."""


@dataclass(frozen=True)
class RankOneHeads:
    """Directions q and k of H heads, rows on the sphere of R^d.

    `as_script` emulates the authors' public script: keys may be shorter than 1, and correlations with the target are
    rounded to half precision. A head does not depend on the length of its key but the closed forms below do, so the
    errors are then those of no heads.
    """

    queries: np.ndarray
    keys: np.ndarray
    as_script: bool = False

    def __post_init__(self):
        require(
            self.queries.shape == self.keys.shape and self.queries.ndim == 2 and len(self.queries) > 0,
            f"queries and keys must have one shape (heads, dim), got {self.queries.shape} and {self.keys.shape}.",
        )
        directions = [self.queries] if self.as_script else [self.queries, self.keys]
        sizes = np.linalg.norm(np.concatenate(directions), axis=1)
        worst = float(np.abs(sizes - 1).max())
        require(worst < 1e-9, f"queries and keys must have norm 1; one differs by {worst:.2g}.")

    @property
    def dim(self) -> int:
        return self.queries.shape[1]

    def gram(self) -> Float[np.ndarray, "heads heads"]:
        """G: the correlations of heads, 1/2 + (2/pi^2) asin(q . q') asin(k . k')."""
        return self._gram(slice(None), slice(None))

    def _gram(self, rows: slice, columns: slice) -> np.ndarray:
        angles = _bounded(self.queries[rows] @ self.queries[columns].T)
        np.arcsin(angles, out=angles)
        other = _bounded(self.keys[rows] @ self.keys[columns].T)
        angles *= np.arcsin(other, out=other)
        angles *= 2 / np.pi**2
        angles += 0.5
        return angles

    def with_target(self) -> Float[np.ndarray, " heads"]:
        """b: the correlations of heads with the target."""
        cosine = np.sum(self.queries * self.keys, axis=1)
        if self.dim == 2:
            return plane_correlation(np.arccos(_bounded(cosine)))
        correlations = 0.5 + sign_correlation(self.dim, cosine) / 2
        return correlations.astype(np.float16).astype(float) if self.as_script else correlations

    def error(self, weights: Float[np.ndarray, " heads"]) -> float:
        """Return the expected squared error of the mixture with these weights."""
        return float(1 - 2 * weights @ self.with_target() + weights @ self.gram() @ weights)

    def min_errors(self) -> Float[np.ndarray, " heads"]:
        """Return the minimum expected error of the first 1, 2, .. H heads, all from one Cholesky factor.

        With G = L L^T and L z = b the first h heads reach 1 - z_1^2 - .. - z_h^2. Memory: 8 H^2 bytes and a block.
        """
        count = len(self.queries)
        gram = np.empty((count, count), order="F")
        for start in range(0, count, BLOCK):
            # LAPACK reads the lower triangle only, by columns, and writes L over it.
            gram[start:, start : start + BLOCK] = self._gram(slice(start, None), slice(start, start + BLOCK))
        gram[np.diag_indices_from(gram)] += RIDGE
        cholesky, solve = get_lapack_funcs(("potrf", "trtrs"), (gram,))
        factor, stopped = cholesky(gram, lower=1, clean=0, overwrite_a=1)
        require(stopped == 0, f"the Gram matrix of {count} heads is singular to rounding; remove duplicate heads.")
        solved, _ = solve(factor, self.with_target(), lower=1)
        return 1 - np.cumsum(solved**2)


def random_heads(heads: int, dim: int, seed: int = 0, distribution: str = "uniform") -> RankOneHeads:
    """Return heads with q uniform on the sphere; the first heads do not depend on how many are drawn.

    "uniform": k is uniform too, independent of q. "spread": the cosine c of q and k is uniform on [-1, 1] and
    k = c q + sqrt(1 - c^2) e, with e uniform among the unit vectors orthogonal to q; this is the distribution of the
    published curves. In high dimension nearly every "uniform" head is nearly orthogonal to the target. "script": as
    "spread", but e is left at the length that it has after its part along q was taken out, so that k is shorter than 1:
    what the authors' public script computes (`RankOneHeads.as_script`). Its errors are too small: those of no heads.
    """
    require_rank(heads, 1, dim)
    require(
        distribution in DISTRIBUTIONS, f'distribution must be one of {", ".join(DISTRIBUTIONS)}, got "{distribution}".'
    )
    rows = named_generator(seed, "rank-one heads").standard_normal((heads, 2, dim))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    queries, keys = rows[:, 0], rows[:, 1]
    if distribution == "uniform":
        return RankOneHeads(queries, keys)
    cosine = named_generator(seed, "rank-one heads", "cosine").uniform(-1, 1, (heads, 1))
    across = keys - np.sum(queries * keys, axis=1, keepdims=True) * queries
    if distribution == "script":
        return RankOneHeads(queries, cosine * queries + np.sqrt(1 - cosine**2) * across, as_script=True)
    keys = cosine * queries + np.sqrt(1 - cosine**2) * across / np.linalg.norm(across, axis=1, keepdims=True)
    return RankOneHeads(queries, keys / np.linalg.norm(keys, axis=1, keepdims=True))


def plane_heads(heads: int) -> RankOneHeads:
    """Return heads of the plane with q = k at equal angles pi / H.

    Their minimum error is 1 - 9 / (8 (1 + m)) with m = 1/3 + 2 / (3 H^2), and levels off at 5/32 as H^-2. G is
    circulant and b constant, so all heads weigh W / H. Signs correlate by (1 - 2 j / H)^2 at j steps, m on average, and
    by 1/2 with the target: (1 - W)^2 / 2 + (1 - W + m W^2) / 2 is smallest at W = 3 / (2 + 2 m). Heads with q = k make
    a triangle wave of the angle between u and y, however many; the target is a square wave.
    """
    require_counts(heads=heads)
    directions = _directions(np.arange(heads) * np.pi / heads)
    return RankOneHeads(directions, directions)


def staircase_heads(heads: int) -> RankOneHeads:
    """Return heads of the plane that together compute the target with its angles rounded: an error of at most 1 / H.

    The target's sign jumps where the angles of u and y differ by pi/2. A staircase along that line has its corners at
    the jumps of sign(q . y) and sign(k . u), so m = H / 2 directions q at steps of pi / m, each with two k at pi/2 and
    half a step to either side, represent it with weights of 1/2 and -1/2. It differs from the target on 1 / (4 m) of
    the pairs, and the error is twice that. One k and its weight are negated, so that the weights add up to 1.
    """
    require_count("heads", heads, least=2)
    require(heads % 2 == 0, f"heads must be even (two heads per step of the staircase), got {heads}.")
    steps = heads // 2
    angles = np.arange(steps) * np.pi / steps
    near, far = (_directions(angles + np.pi / 2 + side * np.pi / (2 * steps)) for side in (-1, 1))
    far[-1] *= -1
    queries = _directions(angles)
    return RankOneHeads(np.concatenate([queries, queries]), np.concatenate([near, far]))


def _bounded(cosine: np.ndarray) -> np.ndarray:
    """Clipped to [-1, 1], in place. A cosine just below 1 by rounding becomes 1: asin would turn 1e-16 into 1e-8."""
    cosine *= 1 + 1e-14
    return np.clip(cosine, -1, 1, out=cosine)


def _directions(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
