"""Second moments of a layer's queries, keys and values, and the algebra on them that sharing and low ranks need.

A score is q . k. Without rotary positions any invertible map A gives the same scores, q . k = (A^T q) . (A^-1 k). With
them only maps that commute with every rotation do: one complex number per rotary pair, where the pair (a, b) is read as
a + ib. A value may be mapped by any invertible matrix, which the output projection undoes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Complex, Float, Int

from ..layers.weights import HeadWeights, LayerStatistics, Rotary

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

NEGLIGIBLE = 1e-12
"""Singular values below this share of the largest are taken for zero."""
REACH = 256
"""Distances that are weighed, each by 1 / (1 + distance): near tokens are attended to most."""


@dataclass(frozen=True, eq=False)
class MeanRotation:
    """E[R A R^T] over distances, R the rotation of all pairs; no pairs: R = 1.

    A 2 x 2 block of A from pair b to pair a is z -> alpha z + beta conj(z) on complex numbers; R turns alpha by the
    difference of the two angles and beta by their sum. The two arrays are the means of those turns.
    """

    pairs: Int[np.ndarray, "pairs 2"]
    differences: Complex[np.ndarray, "pairs pairs"]
    sums: Complex[np.ndarray, "pairs pairs"]

    def averaged(
        self, matrix: Float[np.ndarray, "dim dim"], *, backwards: bool = False
    ) -> Float[np.ndarray, "dim dim"]:
        """E[R matrix R^T]; `backwards`: E[R^T matrix R]."""
        if not len(self.pairs):
            return matrix
        differences, sums = (self.differences.conj(), self.sums.conj()) if backwards else (self.differences, self.sums)
        first, second = self.pairs.T
        corner = matrix[np.ix_(first, first)], matrix[np.ix_(second, second)]
        cross = matrix[np.ix_(second, first)], matrix[np.ix_(first, second)]
        alpha = differences * ((corner[0] + corner[1]) + 1j * (cross[0] - cross[1])) / 2
        beta = sums * ((corner[0] - corner[1]) + 1j * (cross[0] + cross[1])) / 2
        result = np.zeros_like(matrix)
        result[np.ix_(first, first)] = (alpha + beta).real
        result[np.ix_(second, second)] = (alpha - beta).real
        result[np.ix_(second, first)] = (alpha + beta).imag
        result[np.ix_(first, second)] = (beta - alpha).imag
        return result


def mean_rotation(
    head_dim: int, rotary: Rotary | None, frequencies: Float[np.ndarray, " pairs"] | None = None
) -> MeanRotation:
    """The mean over distances; without frequencies, over angles that are independent and spread evenly.

    Dimensions that are not rotated are pairs of frequency 0, in any order; head_dim is even.
    """
    if rotary is None:
        none = np.zeros((0, 0), complex)
        return MeanRotation(np.zeros((0, 2), int), none, none)
    rest = np.setdiff1d(np.arange(head_dim), rotary.pairs).reshape(-1, 2)
    everything = np.concatenate([rotary.pairs, rest])
    if frequencies is not None:
        # A key stands before its query: the angle is minus frequency times distance.
        angles = -np.outer(np.concatenate([frequencies, np.zeros(len(rest))]), np.arange(REACH))
        turns, weight = np.exp(1j * angles), 1.0 / (1 + np.arange(REACH))
        weight /= weight.sum()
        return MeanRotation(everything, (turns * weight) @ turns.conj().T, (turns * weight) @ turns.T)
    still = np.arange(len(everything)) >= len(rotary.pairs)
    both = np.outer(still, still).astype(complex)
    return MeanRotation(everything, np.where(np.eye(len(everything), dtype=bool), 1.0 + 0j, both), both)


@dataclass(frozen=True, eq=False)
class LayerMoments:
    """A layer with the second moments of its queries, keys and values over the calibration tokens.

    `normed`: queries and keys are normalised after the projection. `frequencies` are radians per position of each
    rotary pair; None where they are not known.
    """

    weights: HeadWeights
    statistics: LayerStatistics
    rotary: Rotary | None = None
    normed: bool = False
    frequencies: Float[np.ndarray, " pairs"] | None = None

    @classmethod
    def of_layer(cls, evaluation: "Evaluation", index: int, statistics: LayerStatistics | None = None) -> Self:
        """Return the moments of one layer of the original, by these statistics or by those of what is settled."""
        layer = evaluation.layers[index]
        statistics = evaluation.layer_statistics(index) if statistics is None else statistics
        frequencies = rotary_frequencies(evaluation.model, layer.rotary)
        return cls(evaluation.original[index], statistics, layer.rotary, layer.normed, frequencies)

    @property
    def share(self) -> int:
        """Heads that read each key head."""
        return self.weights.heads // self.weights.key_heads

    def readers(self, members: list[int]) -> list[int]:
        """The heads that read these key heads."""
        return [head for member in members for head in range(member * self.share, (member + 1) * self.share)]

    @cached_property
    def rotation(self) -> MeanRotation:
        return mean_rotation(self.weights.head_dim, self.rotary, self.frequencies)

    @cached_property
    def inputs(self) -> Float[np.ndarray, "width_and_1 width_and_1"]:
        """Moments of what keys read. A shift of all keys changes no softmax, but rotated it is no shift."""
        return centred_moments(self.statistics.inputs) if self.rotary is None else self.statistics.inputs

    @cached_property
    def keys(self) -> Float[np.ndarray, "key_heads head_dim width_and_1"]:
        return with_bias(self.weights.key, self.weights.key_bias)

    @cached_property
    def values(self) -> Float[np.ndarray, "key_heads value_dim width_and_1"]:
        return with_bias(self.weights.value, self.weights.value_bias)

    @cached_property
    def queries(self) -> Float[np.ndarray, "key_heads head_dim head_dim"]:
        """E[q q^T], summed over the heads that read each key head."""
        maps = with_bias(self.weights.query, self.weights.query_bias)
        moments = maps @ self.statistics.inputs @ maps.transpose(0, 2, 1)
        return moments.reshape(self.weights.key_heads, self.share, *moments.shape[1:]).sum(axis=1)

    @cached_property
    def key_sizes(self) -> Float[np.ndarray, "key_heads 1 1"]:
        """Root mean square norm of each key head's keys."""
        sizes = np.einsum("gdw,wv,gdv->g", self.keys, self.statistics.inputs, self.keys, optimize=True)
        return np.sqrt(sizes)[:, None, None]

    @cached_property
    def unit_keys(self) -> Float[np.ndarray, "key_heads head_dim width_and_1"]:
        """Keys of equal size, as a norm makes them."""
        return self.keys / np.maximum(self.key_sizes, np.finfo(float).tiny)

    @cached_property
    def head_moments(self) -> Float[np.ndarray, "heads value_dim value_dim"]:
        """E[z z^T] of the output of every head."""
        return head_blocks(self.statistics.moments, self.weights)

    @cached_property
    def output_squares(self) -> list[float]:
        """Mean square of what every head adds to the attention output."""
        outputs = self.weights.output.transpose(1, 0, 2)
        return [np.sum((each.T @ each) * moment) for each, moment in zip(outputs, self.head_moments, strict=True)]

    def score_squares(
        self, keys: Float[np.ndarray, "members head_dim width_and_1"], members: list[int]
    ) -> Float[np.ndarray, " members"]:
        """Mean square of the scores of the heads that read these key heads, with `keys` in place of theirs."""
        return np.array(
            [
                np.sum(moments * self.rotation.averaged(key @ self.inputs @ key.T))
                for key, moments in zip(keys, self.queries[members], strict=True)
            ]
        )


def rotary_frequencies(model: Any, rotary: Rotary | None) -> Float[np.ndarray, " pairs"] | None:
    """The frequencies by which a torch model rotates; None where it has none, or several sets of this size."""
    if rotary is None:
        return None
    buffers = [buffer for name, buffer in model.named_buffers() if name.rpartition(".")[2].endswith("inv_freq")]
    sets = [np.asarray(buffer.tolist(), float) for buffer in buffers if len(buffer) == rotary.dims // 2]
    return sets[0] if sets and all(np.array_equal(sets[0], other) for other in sets) else None


def with_bias(
    maps: Float[np.ndarray, "heads dim width"], bias: Float[np.ndarray, "heads dim"] | None
) -> Float[np.ndarray, "heads dim width_and_1"]:
    """The maps of (x, 1): the bias is the last column."""
    column = np.zeros(maps.shape[:2]) if bias is None else bias
    return np.concatenate([maps, column[..., None]], axis=-1)


def head_blocks(moments: np.ndarray, weights: HeadWeights) -> Float[np.ndarray, "heads value_dim value_dim"]:
    """The block of every head in the moments of all heads' outputs."""
    size = weights.value_dim
    places = [slice(head * size, (head + 1) * size) for head in range(weights.heads)]
    return np.stack([moments[place, place] for place in places])


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


def leading_subspace(
    moments: Float[np.ndarray, "dim dim"], metric: Float[np.ndarray, "dim dim"], rank: int
) -> tuple[Float[np.ndarray, "rank dim"], float]:
    """The linear map B to `rank` numbers from which f is best predicted, and what is lost.

    B minimises min_A E[(f - A B f)^T metric (f - A B f)] for E[f f^T] = moments; the second result is that minimum.
    """
    root = square_root(moments)
    values, vectors = np.linalg.eigh(root @ metric @ root)
    order = np.argsort(values)[::-1]
    kept = order[:rank]
    # Up to scale root^-1 vectors = metric root vectors: no inverse of moments that may be singular.
    scale = np.where(values[kept] > NEGLIGIBLE * max(values[order[0]], 0.0), values[kept], np.inf)
    return (metric @ root @ vectors[:, kept] / np.sqrt(scale)).T, float(np.maximum(values[order[rank:]], 0.0).sum())
