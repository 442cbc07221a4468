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
Source: Amsel et al. (arXiv 2407.16153); the series is worked out here.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import cholesky, solve_triangular
from scipy.special import gammaln

from .._errors import InputError, require, require_count
from .._keys import named_generator

DEGREES = 200
"""Terms of the series: lambda_l^3 N(d, l) falls as l^-(2 + d/2). In the plane, where that is slowest, 3.2e-6 is left
out."""


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
        one = np.arcsin(np.clip(self.queries @ self.queries.T, -1, 1))
        one *= np.arcsin(np.clip(self.keys @ self.keys.T, -1, 1))
        return 0.5 + (2 / np.pi**2) * one

    def with_target(self) -> Float[np.ndarray, " heads"]:
        """b: how the answers correlate with the target."""
        return 0.5 + sign_correlation(self.dim, np.sum(self.queries * self.keys, axis=1)) / 2

    def error(self, weights: Float[np.ndarray, " heads"]) -> float:
        """The expected squared error of this mixture."""
        return float(1 - 2 * weights @ self.with_target() + weights @ self.gram() @ weights)

    def least_errors(self, ridge: float = 1e-12) -> Float[np.ndarray, " heads"]:
        """The least expected error of the first 1, 2, .. H heads, all from one Cholesky factor.

        With G = L L^T and L z = b the first h heads reach 1 - z_1^2 - .. - z_h^2. `ridge` on the diagonal keeps two
        equal heads from making G singular; it can only raise the errors.
        """
        gram = self.gram()
        gram[np.diag_indices_from(gram)] += ridge
        try:
            factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"the Gram system of {len(gram)} heads is singular to rounding; give a larger ridge than {ridge:g}, or "
                "fewer heads that are alike."
            ) from error
        solved = solve_triangular(factor, self.with_target(), lower=True, check_finite=False)
        return 1 - np.cumsum(solved**2)


def random_heads(heads: int, dim: int, seed: int = 0) -> RankOneHeads:
    """Heads whose q and k are independent and uniform on the sphere; more heads begin with those of fewer."""
    require_count("heads", heads)
    _require_dim(dim)
    rows = named_generator(seed, "rank-one heads").standard_normal((heads, 2, dim))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    return RankOneHeads(rows[:, 0], rows[:, 1])


def _require_dim(dim: int) -> None:
    require_count("dim", dim)
    require(dim >= 2, f"orthogonal points need dim of at least 2, got {dim}.")
