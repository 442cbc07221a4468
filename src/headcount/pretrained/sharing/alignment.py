"""Moments of queries, keys and values, and the maps between heads that leave a layer's function alone.

A score is q . k. Without rotary positions any invertible map A gives the same scores, q . k = (A^T q) . (A^-1 k). With
them only maps that commute with every rotation do: one complex number per rotary pair, where the pair (a, b) is read as
a + ib. A value may be mapped by any invertible matrix, which the output projection undoes.
"""

import numpy as np
from jaxtyping import Float, Int

from ..layers.rotary import Rotary
from ..layers.weights import HeadWeights

NEGLIGIBLE = 1e-12
"""Singular values below this share of the largest are taken for zero."""


def with_bias(
    maps: Float[np.ndarray, "heads dim width"], bias: Float[np.ndarray, "heads dim"] | None
) -> Float[np.ndarray, "heads dim width_and_1"]:
    """The maps of (x, 1): the bias is the last column."""
    column = np.zeros(maps.shape[:2]) if bias is None else bias
    return np.concatenate([maps, column[..., None]], axis=-1)


def query_moments(weights: HeadWeights, inputs: np.ndarray) -> Float[np.ndarray, "heads head_dim head_dim"]:
    """E[q q^T] of every head."""
    maps = with_bias(weights.query, weights.query_bias)
    return maps @ inputs @ maps.transpose(0, 2, 1)


def key_moments(
    weights: HeadWeights, inputs: np.ndarray, *, centred: bool
) -> Float[np.ndarray, "key_heads key_heads head_dim head_dim"]:
    """E[k_i k_j^T] of all pairs of key heads; `centred`: covariances, all that softmax sees without rotations."""
    maps = with_bias(weights.key, weights.key_bias)
    return np.einsum("iaw,wv,jbv->ijab", maps, centred_moments(inputs) if centred else inputs, maps, optimize=True)


def centred_moments(moments: np.ndarray) -> np.ndarray:
    """Covariances in place of second moments; the 1 at the end becomes 0."""
    mean = moments[:, -1:]
    return moments - mean @ mean.T


def square_root(moments: Float[np.ndarray, "dim dim"]) -> Float[np.ndarray, "dim dim"]:
    """The symmetric square root; negative eigenvalues of rounding are zero."""
    values, vectors = np.linalg.eigh((moments + moments.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def symmetric_solve(
    right: Float[np.ndarray, "rows dim"], moments: Float[np.ndarray, "dim dim"], ridge: float = NEGLIGIBLE
) -> Float[np.ndarray, "rows dim"]:
    """right @ inverse(moments), with a ridge relative to the mean eigenvalue."""
    scale = np.trace(moments) / len(moments)
    if scale <= 0:
        return np.zeros_like(right)
    return np.linalg.solve(moments + ridge * scale * np.eye(len(moments)), right.T).T


def rotary_pairs(rotary: Rotary) -> Int[np.ndarray, "pairs 2"]:
    """The dimensions of each rotary pair."""
    half = np.arange(rotary.dims // 2)
    pairs = (2 * half, 2 * half + 1) if rotary.interleaved else (half, half + rotary.dims // 2)
    return np.stack(pairs, axis=1)


def leading_subspace(
    moments: Float[np.ndarray, "dim dim"], metric: Float[np.ndarray, "dim dim"], rank: int
) -> tuple[Float[np.ndarray, "rank dim"], float]:
    """The linear map B to `rank` numbers from which f is best told, and what is lost.

    B minimises min_A E[(f - A B f)^T metric (f - A B f)] for E[f f^T] = moments; the second result is that minimum.
    """
    root = square_root(moments)
    values, vectors = np.linalg.eigh(root @ metric @ root)
    order = np.argsort(values)[::-1]
    kept = order[:rank]
    # Up to scale root^-1 vectors = metric root vectors: no inverse of moments that may be singular.
    scale = np.where(values[kept] > NEGLIGIBLE * max(values[order[0]], 0.0), values[kept], np.inf)
    return (metric @ root @ vectors[:, kept] / np.sqrt(scale)).T, float(np.maximum(values[order[rank:]], 0.0).sum())
