"""The nearest point with explicit weights: one head of full rank for any N, two layers of rank-one heads for N = 2.

Symbols: x_1 .. x_N points on the sphere of R^d, y a query, beta the sharpness, gap the best minus the second best inner
product, H heads of rank one with directions g_1 .. g_H, u = (x_1 - x_2) / |x_1 - x_2|, a the angle between y and u.
Source: Amsel et al. (arXiv 2407.16153) for both constructions; error bounds, weights of the second layer and the
expected error of the vote are derived here.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import betainc, betaln

from ..._shapes import AnyArray
from ...errors import require, require_count
from ..doors import require_counts, require_dim, require_positive

Points = Float[AnyArray, "length dim"]
Point = Float[AnyArray, " dim"]


class AttentionHead(eqx.Module):
    """One head over N points with scores (Q y) . (K x_i): V times the best point (`hard`) or the softmax mean."""

    query: Float[AnyArray, "rank dim"]
    key: Float[AnyArray, "rank dim"]
    value: Float[AnyArray, "dim dim"]
    hard: bool = eqx.field(static=True, default=False)

    def __call__(self, points: Points, at: Point) -> Point:
        scores = points @ self.key.T @ (self.query @ at)
        if self.hard:
            return self.value @ jnp.asarray(points)[jnp.argmax(scores)]
        return self.value @ (jax.nn.softmax(scores) @ points)

    def among(self, points: Points) -> Points:
        """Self-attention: the output with every point as the query."""
        return jax.vmap(self, in_axes=(None, 0))(points, points)


def exact_head(dim: int, beta: float = math.inf) -> AttentionHead:
    """Return the head of full rank that outputs the nearest point: Q^T K = beta I, hard for an infinite beta.

    On the sphere the nearest x_i has the largest inner product with y. The hard head is exact for every N; the error of
    a soft one is at most `soft_error`.
    """
    require_counts(dim=dim)
    require(beta > 0, what="beta", given=beta, needed="positive")
    hard = math.isinf(beta)
    return AttentionHead((1.0 if hard else beta) * jnp.eye(dim), jnp.eye(dim), jnp.eye(dim), hard)


def farthest_head(dim: int, beta: float = math.inf) -> AttentionHead:
    """Return the head with Q^T K = -beta I, which outputs the farthest point; `among` is its self-attention form."""
    nearest = exact_head(dim, beta)
    return AttentionHead(-nearest.query, nearest.key, nearest.value, nearest.hard)


def soft_error(length: int, beta: float, gap: float) -> float:
    """Bound the error of the soft head on the unit sphere: 2 t / (1 + t), t = (N - 1) exp(-beta gap).

    The output differs from x_best by the sum over the others of p_j (x_j - x_best), whose norm is at most 2 (1 -
    p_best), and p_best = 1 / (1 + sum_j exp(-beta g_j)) with every g_j >= gap. Two opposite points attain it.
    """
    require_count("length", length, least=2)
    require_positive(beta=beta)
    require(gap >= 0, what="gap", given=gap, needed="the best minus the second best inner product, not negative")
    # t / (1 + t) in a form that does not overflow.
    return 2 * (length - 1) / (length - 1 + math.exp(min(beta * gap, 700.0)))


class MajorityVote(eqx.Module):
    """The nearer of two points by two layers of hard heads of rank one.

    Layer one: head i has q = k = g_i and outputs x_1 or x_2, a vote sign(g_i . y) sign(g_i . u); one more head with
    uniform attention outputs their mean c. With output weights 1/H and -1 the query becomes

        y' = mean of the outputs - c = (mean vote) (x_1 - x_2) / 2

    Layer two: one head with q = k = g_1 scores x_1 above x_2 by (mean vote) (g_1 . (x_1 - x_2))^2 / 2. It outputs the
    point of the majority for any g_1, since y' is aligned with x_1 - x_2.
    """

    directions: Float[AnyArray, "heads dim"]

    def __call__(self, points: Float[AnyArray, "2 dim"], at: Point) -> Point:
        identity, zero = jnp.eye(points.shape[1]), jnp.zeros((1, points.shape[1]))

        def voter(direction: Point) -> AttentionHead:
            return AttentionHead(direction[None], direction[None], identity, hard=True)

        outputs = jax.vmap(lambda direction: voter(direction)(points, at))(self.directions)
        centre = AttentionHead(zero, zero, identity)(points, at)
        return voter(self.directions[0])(points, jnp.mean(outputs, axis=0) - centre)


def vote_error(heads: int, angle: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return the probability over random directions that the majority is wrong, with this angle a between y and u.

    g . y and g . u differ in sign with probability a / pi, so a vote is right with probability 1/2 + |pi/2 - a| / pi,
    and the votes are independent. The tail of the binomial distribution is an incomplete beta function; a tie is wrong
    half the time, which makes an even number of heads as good as one fewer.
    """
    half = (heads + 1) // 2
    return np.asarray(betainc(half, half, 0.5 - np.abs(np.pi / 2 - angle) / np.pi))


def expected_error(heads: int, dim: int) -> float:
    """Return the expected squared error of the vote on two orthogonal points, all uniform: an integral.

    A wrong output costs |x_1 - x_2|^2 = 2, and t = |pi/2 - a| has density c cos(t)^(d - 2), c = 2 / B(1/2, (d - 1)/2).
    For many heads only t of the order of H^(-1/2) matters, and the error tends to c sqrt(pi / (2 H)), about
    sqrt(d / H).
    """
    require_counts(heads=heads)
    require_dim(dim)
    # Panels from wide to narrow towards t = 0, where the vote changes within H^(-1/2).
    edges = np.concatenate([[0.0], np.geomspace(1e-6, np.pi / 2, 48)])
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = np.diff(edges)[:, None] / 2
    t = edges[:-1, None] + widths * (nodes + 1)
    wrong = vote_error(heads, np.pi / 2 - t) * np.cos(t) ** (dim - 2)
    density = 2 * math.exp(-betaln(0.5, (dim - 1) / 2))
    return float(2 * density * np.sum(widths * weights * wrong))
