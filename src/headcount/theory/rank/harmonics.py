"""Spherical harmonics of sign(u . y): the spectrum behind all closed forms on the nearest of two orthogonal points.

lambda_l are the eigenvalues of the kernel sign(u . y) on the sphere of R^d, N(d, l) the dimension of the harmonics of
degree l, P_l the Gegenbauer polynomial with P_l(1) = 1. By Funk and Hecke the signs of a head with directions q, k and
of the target correlate by the sum over odd l of lambda_l^3 N(d, l) P_l(q . k).
Source: Amsel et al. (arXiv 2407.16153); the series and the limits are derived here.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from ..._errors import require, require_count

DEGREES = 200
"""Terms of the series: lambda_l^3 N(d, l) falls as l^-(2 + d/2). The remainder is largest in the plane, 3.2e-6."""


def sign_eigenvalue(dim: int, degree: int) -> float:
    """lambda_l of the kernel sign(u . y) on the sphere of R^dim; zero for even degrees."""
    require_dim(dim)
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
    """N(d, l): the number of independent harmonics of that degree."""
    require_dim(dim)
    if degree == 0:
        return 1.0
    if dim == 2:
        return 2.0
    log = gammaln(degree + dim - 2) - gammaln(degree + 1) - gammaln(dim - 1)
    return (2 * degree + dim - 2) * math.exp(log)


def sign_correlation(dim: int, cosine: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """E[s_head s_target] of a head whose directions q and k have this cosine."""
    require_dim(dim)
    cosine = np.asarray(cosine, float)
    largest = float(np.max(np.abs(cosine), initial=0.0))
    require(largest <= 1 + 1e-12, f"a cosine must lie between -1 and 1, got one of magnitude {largest:g}.")
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
    """The minimum error of a mixture that represents every harmonic of degree 1 of the target and none above.

    Degree l has the share lambda_l^2 N(d, l) of E[s*^2] = 1, degree 1 thus d lambda_1^2, and the error is half of the
    remaining share: (1 - d lambda_1^2) / 2, which tends to (1 - 2/pi) / 2 = 0.1817. In high dimension curves level off
    there: degree 1 has d harmonics, which a few times d heads represent, the next has about d^3 / 6.
    """
    return (1 - dim * sign_eigenvalue(dim, 1) ** 2) / 2


def plane_correlation(angle: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Correlation of a head in the plane with the target, as published: 1/2 + sign(pi/2 - a) (1/4 - (a' / pi)^2)."""
    folded = np.pi / 2 - np.abs(np.pi / 2 - angle)
    return np.asarray(0.5 + np.sign(np.pi / 2 - angle) * (0.25 - (folded / np.pi) ** 2))


def require_dim(dim: int) -> None:
    """Raise `InputError` unless R^dim has two orthogonal points."""
    require_count("dim", dim)
    require(dim >= 2, f"orthogonal points need dim of at least 2, got {dim}.")
