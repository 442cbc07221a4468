"""Hard heads of rank one on the nearest of two orthogonal points: expected errors in closed form, nothing sampled.

Points x_1, x_2 are orthogonal on the sphere of R^d, y is a query, all uniform. The target is the point nearer to y. A
head with directions q and k of the sphere answers the x_i with the larger (q . y) (k . x_i). Every answer is
(x_1 + x_2) / 2 plus or minus (x_1 - x_2) / 2, so two of them correlate by 1/2 + E[s s'] / 2 in their signs

    s_head = sign(q . y) sign(k . u),    s_target = sign(u . y),    u = (x_1 - x_2) / sqrt(2)

    head with head      E[s s'] = (2/pi)^2 asin(q . q') asin(k . k')
    head with target    E[s s*] = sum over odd l of lambda_l^3 N(d, l) P_l(q . k)           (Funk and Hecke)

where lambda_l are the eigenvalues of sign(u . y) on the sphere, N(d, l) the dimension of the harmonics of degree l and
P_l the Gegenbauer polynomial with P_l(1) = 1. With mixing weights w the expected squared error is 1 - 2 w . b +
w . G w, least at G w = b.
Source: Amsel et al. (arXiv 2407.16153); the series, the limits and the heads of the plane are worked out here.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs
from scipy.special import gammaln

from .._errors import require, require_count
from .._keys import named_generator

DEGREES = 200
"""Terms of the series: lambda_l^3 N(d, l) falls as l^-(2 + d/2). In the plane, where that is slowest, 3.2e-6 is left
out."""

LAWS = ("uniform", "spread")
BLOCK = 512
"""Heads whose columns of the Gram matrix are made at a time."""


def sign_eigenvalue(dim: int, degree: int) -> float:
    """lambda_l of the kernel sign(u . y) on the sphere of R^dim; zero for even degrees."""
    _require_dim(dim)
    require_count("degree", degree)
    if degree % 2 == 0:
        return 0.0
    half = (degree - 1) // 2
    # By Rodrigues' formula the integral of P_l over [0, 1] is a derivative at 0.
    log = (
        math.log(2)
        + gammaln(dim / 2)
        - 0.5 * math.log(math.pi)
        - degree * math.log(2)
        - gammaln(degree + (dim - 1) / 2)
        + gammaln(degree)
        + gammaln(degree + (dim - 1) / 2)
        - gammaln(half + 1)
        - gammaln(degree - half + (dim - 1) / 2)
    )
    return (-1) ** half * math.exp(log)


def harmonics(dim: int, degree: int) -> float:
    """N(d, l): how many independent harmonics of that degree there are."""
    _require_dim(dim)
    if degree == 0:
        return 1.0
    if dim == 2:
        return 2.0
    log = gammaln(degree + dim - 2) - gammaln(degree + 1) - gammaln(dim - 1)
    return (2 * degree + dim - 2) * math.exp(log)


def sign_correlation(dim: int, cosine: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """E[s_head s_target] of a head whose directions q and k have this cosine."""
    _require_dim(dim)
    cosine = np.asarray(cosine, float)
    require(bool(np.all(np.abs(cosine) <= 1 + 1e-12)), "a cosine lies between -1 and 1.")
    total = np.zeros_like(cosine)
    before, polynomial = np.ones_like(cosine), cosine.copy()
    for degree in range(1, DEGREES):
        if degree % 2 == 1:
            total = total + sign_eigenvalue(dim, degree) ** 3 * harmonics(dim, degree) * polynomial
        # (l + d - 2) P_(l+1) = (2 l + d - 2) t P_l - l P_(l-1)
        following = ((2 * degree + dim - 2) * cosine * polynomial - degree * before) / (degree + dim - 2)
        before, polynomial = polynomial, following
    return np.asarray(total)


def first_degree_error(dim: int) -> float:
    """The least error of a mixture that holds every harmonic of degree 1 of the target and none above.

    Degree l carries lambda_l^2 N(d, l) of E[s*^2] = 1, degree 1 thus d lambda_1^2, and errors are half of what signs
    leave: (1 - d lambda_1^2) / 2, which tends to (1 - 2/pi) / 2 = 0.1817. There the curves of high dimensions level
    off: degree 1 has d harmonics, which a few times d heads hold, the next has about d^3 / 6.
    """
    return (1 - dim * sign_eigenvalue(dim, 1) ** 2) / 2


def plane_correlation(angle: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """How a head in the plane correlates with the target: 1/2 + sign(pi/2 - a) (1/4 - (a' / pi)^2), as published."""
    folded = np.pi / 2 - np.abs(np.pi / 2 - angle)
    return np.asarray(0.5 + np.sign(np.pi / 2 - angle) * (0.25 - (folded / np.pi) ** 2))


@dataclass(frozen=True)
class RankOneHeads:
    """Directions q and k of H heads, rows on the sphere of R^d."""

    queries: np.ndarray
    keys: np.ndarray

    def __post_init__(self):
        require(
            self.queries.shape == self.keys.shape and self.queries.ndim == 2 and len(self.queries) > 0,
            f"queries and keys must be two arrays (heads, dim) alike, got {self.queries.shape}, {self.keys.shape}.",
        )
        sizes = np.linalg.norm(np.concatenate([self.queries, self.keys]), axis=1)
        worst = float(np.abs(sizes - 1).max())
        require(worst < 1e-9, f"queries and keys must lie on the sphere; a length is off by {worst:.2g}.")

    @property
    def dim(self) -> int:
        return self.queries.shape[1]

    def gram(self) -> Float[np.ndarray, "heads heads"]:
        """G: how the answers of two heads correlate, 1/2 + (2/pi^2) asin(q . q') asin(k . k')."""
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
        """b: how the answers correlate with the target."""
        cosine = np.sum(self.queries * self.keys, axis=1)
        if self.dim == 2:
            return plane_correlation(np.arccos(_bounded(cosine)))
        return 0.5 + sign_correlation(self.dim, cosine) / 2

    def error(self, weights: Float[np.ndarray, " heads"]) -> float:
        """The expected squared error of this mixture."""
        return float(1 - 2 * weights @ self.with_target() + weights @ self.gram() @ weights)

    def min_errors(self, ridge: float = 1e-12) -> Float[np.ndarray, " heads"]:
        """The least expected error of the first 1, 2, .. H heads, all from one Cholesky factor.

        With G = L L^T and L z = b the first h heads reach 1 - z_1^2 - .. - z_h^2. `ridge` on the diagonal keeps heads
        that add nothing (a head twice, a head and its opposite beside another such pair) from making G singular: they
        then leave the error where it was; it can only raise the errors. Memory: 8 H^2 bytes and a block.
        """
        count = len(self.queries)
        gram = np.empty((count, count), order="F")
        for start in range(0, count, BLOCK):
            # LAPACK reads the lower triangle only, by columns, and writes L over it.
            gram[start:, start : start + BLOCK] = self._gram(slice(start, None), slice(start, start + BLOCK))
        gram[np.diag_indices_from(gram)] += ridge
        cholesky, solve = get_lapack_funcs(("potrf", "trtrs"), (gram,))
        factor, stopped = cholesky(gram, lower=1, clean=0, overwrite_a=1)
        require(
            stopped == 0,
            f"the Gram system of {count} heads is singular to rounding; give a larger ridge than {ridge:g}, or fewer "
            "heads that are alike.",
        )
        solved, _ = solve(factor, self.with_target(), lower=1)
        return 1 - np.cumsum(solved**2)


def random_heads(heads: int, dim: int, seed: int = 0, distribution: str = "uniform") -> RankOneHeads:
    """Heads with q uniform on the sphere; more heads begin with those of fewer.

    "uniform": k is uniform too, independent of q. "spread": their cosine c is uniform on [-1, 1] and k = c q +
    sqrt(1 - c^2) e, with e uniform among the unit vectors orthogonal to q; this is the law of the published curves. In
    high dimension the first law makes nearly every head nearly orthogonal to the target, the second does not.
    """
    require_count("heads", heads)
    _require_dim(dim)
    require(distribution in LAWS, f'distribution must be one of {", ".join(LAWS)}, got "{distribution}".')
    rows = named_generator(seed, "rank-one heads").standard_normal((heads, 2, dim))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    queries, keys = rows[:, 0], rows[:, 1]
    if distribution == "spread":
        cosine = named_generator(seed, "rank-one heads", "cosine").uniform(-1, 1, (heads, 1))
        across = keys - np.sum(queries * keys, axis=1, keepdims=True) * queries
        keys = cosine * queries + np.sqrt(1 - cosine**2) * across / np.linalg.norm(across, axis=1, keepdims=True)
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return RankOneHeads(queries, keys)


def plane_heads(heads: int) -> RankOneHeads:
    """Heads of the plane with q = k at equal angles pi / H; their least error is `plane_error`."""
    require_count("heads", heads)
    directions = _directions(np.arange(heads) * np.pi / heads)
    return RankOneHeads(directions, directions)


def plane_error(heads: int) -> float:
    """The least error of `plane_heads` in closed form; it levels off at 5/32, and nears it as H^-2.

    G is circulant and b constant, so all heads weigh W / H. Signs correlate by (1 - 2 j / H)^2 at j steps, on average
    m = 1/3 + 2 / (3 H^2), and by 1/2 with the target: (1 - W)^2 / 2 + (1 - W + m W^2) / 2 is least where W =
    3 / (2 + 2 m). However many, heads with q = k make a triangle wave of the angle between u and y,
    and the target is a square one.
    """
    require_count("heads", heads)
    mean = 1 / 3 + 2 / (3 * heads**2)
    return 1 - 9 / (8 * (1 + mean))


def staircase_heads(heads: int) -> RankOneHeads:
    """Heads of the plane that together answer as the target does with its angles rounded: an error of 1 / H at most.

    The target's sign jumps where the angles of u and y differ by pi/2. A staircase along that line has its corners at
    the jumps of sign(q . y) and sign(k . u), so m = H / 2 directions q at steps of pi / m, each with two k at pi/2 and
    half a step to either side, make it with weights of 1/2 and -1/2. It differs from the target on 1 / (4 m) of the
    pairs, and errors are twice that. One k is turned round, its weight with it, so that the weights add up to 1.
    """
    require_count("heads", heads, least=2)
    require(heads % 2 == 0, f"a staircase has two heads a step, got {heads} heads.")
    steps = heads // 2
    angles = np.arange(steps) * np.pi / steps
    near, far = (_directions(angles + np.pi / 2 + side * np.pi / (2 * steps)) for side in (-1, 1))
    far[-1] *= -1
    queries = _directions(angles)
    return RankOneHeads(np.concatenate([queries, queries]), np.concatenate([near, far]))


def staircase_weights(heads: int) -> Float[np.ndarray, " heads"]:
    """The weights with which `staircase_heads` answer as the target with its angles rounded."""
    weights = np.repeat([0.5, -0.5], heads // 2)
    weights[-1] = 0.5
    return weights


def _bounded(cosine: np.ndarray) -> np.ndarray:
    """Within [-1, 1], in place. One that misses 1 by rounding becomes 1: asin would make 1e-8 of a miss of 1e-16."""
    cosine *= 1 + 1e-14
    return np.clip(cosine, -1, 1, out=cosine)


def _directions(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _require_dim(dim: int) -> None:
    require_count("dim", dim)
    require(dim >= 2, f"orthogonal points need dim of at least 2, got {dim}.")
