"""The nearest of N points to a query, and the farthest: one full-rank head answers, many heads of low rank do not.

Symbols: points x_1 .. x_N and a query y on the unit sphere of R^d, d = dim. On the sphere the nearest point is the one
with the largest inner product, so targets are written with inner products alone.
Source: Amsel, Yehudai and Bruna, "Quality over Quantity in Attention Layers" (arXiv 2407.16153).
"""

import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from scipy.special import betaincinv

from .._choices import require_choice
from .._shapes import AnyArray, Key, Target, Tokens, TokenTargets
from ..errors import require, require_count
from .base import GeneratedTask

Points = Literal["uniform", "orthogonal", "doubled"]


class PointsTask(GeneratedTask):
    """A question about points on the sphere, of which one is the answer."""

    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    points: Points = eqx.field(static=True, default="uniform")

    def _require_sizes(self, least: int) -> None:
        require_count("dim", self.dim, least=2)
        require_count("length", self.length, least=least)
        require_choice("points", self.points, DRAWS)

    def at(self, length: int):
        return type(self)(length=length, dim=self.dim, points=self.points)  # pyright: ignore[reportCallIssue]

    def spec(self) -> dict[str, Any]:
        return {"task": self.name, "dim": self.dim, "points": self.points}


class NearestNeighbour(PointsTask):
    """Of N = length - 1 points on the sphere, the one nearest to the query, which is the last token.

    The query is uniform on the sphere. `points` says how the others are drawn:

    * "uniform": independent, uniform on the sphere;
    * "orthogonal": N <= dim of them, orthonormal, in directions that no rotation prefers;
    * "doubled": N/2 uniform ones, then their antipodes -x in the same order.
    """

    name: ClassVar[str] = "nearest-neighbour"
    answered_at = "query"

    def __check_init__(self):
        self._require_sizes(least=3)  # two points and a query
        count = self.length - 1
        too_many = f"{count} orthogonal points need a dim of at least {count}, got dim {self.dim}."
        require(self.points != "orthogonal" or count <= self.dim, too_many, what="dim")
        odd = f"doubled points are pairs x and -x: their number must be even, got {count}."
        require(self.points != "doubled" or count % 2 == 0, odd, what="points")

    def sample(self, key: Key) -> Tokens:
        of_points, of_query = jr.split(key)
        points = DRAWS[self.points](of_points, self.length - 1, self.dim)
        return jnp.concatenate([points, _uniform(of_query, 1, self.dim)])

    def target(self, tokens: Tokens) -> Target:
        points, query = jnp.asarray(tokens[:-1]), jnp.asarray(tokens[-1:])
        return points[jnp.argmax(_inner_products(points, query))]


class FarthestPoint(PointsTask):
    """For each of N = length points on the sphere, the one farthest from it: the question in self-attention form.

    `points` is "uniform", or "orthogonal" for two points. More orthogonal points are all equally far; the farthest of
    doubled points is the antipode, which needs no attention.
    """

    name: ClassVar[str] = "farthest-point"
    answered_at = "tokens"

    def __check_init__(self):
        self._require_sizes(least=2)
        antipodes = (
            'points must not be "doubled": the farthest from x is then its antipode -x, and no attention is needed.'
        )
        require(self.points != "doubled", antipodes, what="points")
        require(
            self.points == "uniform" or self.length == 2,
            f"{self.length} orthogonal points are all equally far from each other, so none is the farthest; "
            'use length 2 or points "uniform".',
        )

    def sample(self, key: Key) -> Tokens:
        return DRAWS[self.points](key, self.length, self.dim)

    def target(self, tokens: Tokens) -> TokenTargets:
        points = jnp.asarray(tokens)
        return points[jnp.argmin(_inner_products(points, points), axis=0)]


class BiasedNearestNeighbour(GeneratedTask):
    """An alternating sum of nearest neighbours with biases, of two orthogonal points: a target for Theorem 3.

    With bias b, the nearest neighbour of y is x_1 if (x_1 - x_2) . y > b, else x_2. The target is t_1 - t_2 + .. + t_K
    for K = `terms` biases b_1 < .. < b_K, which is again a point: x_1 if an odd number of biases lie below
    (x_1 - x_2) . y, else x_2. The biases are the quantiles j / (K + 1) of that number, so that all K + 1 cases are
    equally likely. They lie evenly about 0, and K is odd, so the answer does not depend on which point comes first;
    one term is the nearest neighbour itself.

    Theorem 3 is about a combination of many biased nearest neighbours; the alternating signs and these biases are our
    reading of it.
    """

    dim: int = eqx.field(static=True)
    terms: int = eqx.field(static=True)
    biases: Float[Array, " terms"]
    length: ClassVar[int] = 3
    name: ClassVar[str] = "biased-nearest-neighbour"
    answered_at = "query"

    def __init__(self, *, dim: int, terms: int = 3):
        require_count("dim", dim, least=2)
        require_terms(terms)
        self.dim, self.terms = dim, terms
        self.biases = jnp.asarray(bias_quantiles(terms, dim), jnp.float32)

    def sample(self, key: Key) -> Tokens:
        of_points, of_query = jr.split(key)
        return jnp.concatenate([_orthonormal(of_points, 2, self.dim), _uniform(of_query, 1, self.dim)])

    def target(self, tokens: Tokens) -> Target:
        first, second, query = jnp.asarray(tokens)
        lead = _inner_products((first - second)[None], query[None])[0, 0]
        below = jnp.sum(self.biases < lead)
        return jnp.where(below % 2 == 1, first, second)

    def at(self, length: int) -> "BiasedNearestNeighbour":
        require(length == 3, what="length", given=length, needed=f"3 for {self.name}: two points and the query")
        return self

    def spec(self) -> dict[str, Any]:
        return {"task": self.name, "dim": self.dim, "terms": self.terms}


def require_terms(terms: int) -> None:
    """Raise `InputError` unless the alternating sum of this many points is a point: their number is odd."""
    require_count("terms", terms)
    require(terms % 2 == 1, what="terms", given=terms, needed="odd, so that the alternating sum is a point")


def require_on_sphere(points: Tokens, tolerance: float = 1e-3) -> None:
    """Refuse points off the unit sphere, where the largest inner product is not the nearest point."""
    norms = np.linalg.norm(np.asarray(points, np.float64), axis=-1)
    misses = np.abs(norms - 1)
    worst = int(np.argmax(misses))  # a NaN counts as the largest
    require(
        bool(misses[worst] <= tolerance),
        f"points must lie on the unit sphere to within {tolerance:g}, but token {worst} has norm {norms[worst]:.6g}; "
        "divide each by its norm.",
    )


def _uniform(key: Key, count: int, dim: int) -> Float[Array, "points dim"]:
    normal = jr.normal(key, (count, dim))
    return normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)


def _orthonormal(key: Key, count: int, dim: int) -> Float[Array, "points dim"]:
    """Return the Q of a Gaussian matrix's QR with positive diagonal, whose distribution no rotation changes.

    By Gram-Schmidt, because a GPU runs the QR factorisations of a batch one after the other.
    """

    def append(frame, place_and_draw):
        place, draw = place_and_draw
        for _ in range(2):  # the second pass removes what rounding leaves after the first
            draw = draw - jnp.matmul(jnp.matmul(frame, draw, precision="highest"), frame, precision="highest")
        return frame.at[place].set(draw / jnp.linalg.norm(draw)), None

    draws = jr.normal(key, (count, dim))
    return lax.scan(append, jnp.zeros_like(draws), (jnp.arange(count), draws))[0]


def _doubled(key: Key, count: int, dim: int) -> Float[Array, "points dim"]:
    half = _uniform(key, count // 2, dim)
    return jnp.concatenate([half, -half])


DRAWS = {"uniform": _uniform, "orthogonal": _orthonormal, "doubled": _doubled}
"""How the points of a sequence are drawn."""


def _inner_products(
    points: Float[AnyArray, "points dim"], others: Float[AnyArray, "others dim"]
) -> Float[Array, "points others"]:
    """Multiply in full float32: a GPU would round the factors to ten bits and pick another point."""
    return jnp.matmul(points, others.T, precision="highest")


def bias_quantiles(count: int, dim: int) -> Float[np.ndarray, " terms"]:
    """Return quantiles j / (count + 1) of (x_1 - x_2) . y: x_1, x_2 orthonormal, y uniform on the sphere of R^dim.

    u = (x_1 - x_2) / sqrt 2 is a unit vector, so (1 + u . y) / 2 is distributed as Beta((dim - 1) / 2, (dim - 1) / 2).
    """
    shape = (dim - 1) / 2
    cosines = 2 * betaincinv(shape, shape, np.arange(1, count + 1) / (count + 1)) - 1
    return math.sqrt(2) * (cosines - cosines[::-1]) / 2  # symmetric about 0, to the last bit
