"""One key and one value projection in place of several: those that lose least, with the maps that read them.

*Keys.* Head j has scores q_j . R k_j, R the rotation by the distance of two tokens (none: R = 1). With one shared key
they are (T_j q_j) . R k. The mean square of the difference, over independent tokens and over distances, is least
squares in T_j for a given k and in k for given T_j; both need only head_dim x head_dim moments. If all angles were
independent and spread evenly, T_j would be one complex number per rotary pair and k the first principal component of
the pairs: the start. With the frequencies known, solving for T_j and k in turns goes further, because pairs that turn
slowly can stand in for each other.

*Values.* Head h gives O_h V_h a_h, where a_h is its attended input. The moments of a_h are those of the layer's input,
corrected so that V_h a_h has the moments that were measured. The shared value is the subspace of all V_j from which the
O_h V_h a_h are best told.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int

from ..layers.rotary import Rotary
from .alignment import (
    NEGLIGIBLE,
    leading_subspace,
    rotary_pairs,
    symmetric_solve,
)

REACH = 256
"""Distances that are weighed, each by 1 / (1 + distance): near tokens are attended to most."""
TURNS = 10
RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class MeanRotation:
    """E[R A R^T] over distances, R the rotation of all pairs; no pairs: R = 1.

    A 2 x 2 block of A from pair b to pair a is z -> alpha z + beta conj(z) on complex numbers; R turns alpha by the
    difference of the two angles and beta by their sum. The two arrays are the means of those turns.
    """

    pairs: Int[np.ndarray, "pairs 2"]
    differences: Complex[np.ndarray, "pairs pairs"]
    sums: Complex[np.ndarray, "pairs pairs"]

    def of(self, matrix: Float[np.ndarray, "dim dim"], *, backwards: bool = False) -> Float[np.ndarray, "dim dim"]:
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
    pairs = rotary_pairs(rotary)
    rest = np.setdiff1d(np.arange(head_dim), pairs).reshape(-1, 2)
    everything = np.concatenate([pairs, rest])
    if frequencies is not None:
        # A key stands before its query: the angle is minus frequency times distance.
        angles = -np.outer(np.concatenate([frequencies, np.zeros(len(rest))]), np.arange(REACH))
        turns, weight = np.exp(1j * angles), 1.0 / (1 + np.arange(REACH))
        weight /= weight.sum()
        return MeanRotation(everything, (turns * weight) @ turns.conj().T, (turns * weight) @ turns.T)
    still = np.arange(len(everything)) >= len(pairs)
    both = np.outer(still, still).astype(complex)
    return MeanRotation(everything, np.where(np.eye(len(everything), dtype=bool), 1.0 + 0j, both), both)


@dataclass(frozen=True, eq=False)
class SharedKeys:
    """The key projection of a group, the map of the queries of each of its members, and the score variance lost."""

    key: Float[np.ndarray, "head_dim width_and_1"]
    query_maps: Float[np.ndarray, "members head_dim head_dim"]
    lost: float


def fitted_query_maps(
    keys: Float[np.ndarray, "members head_dim width_and_1"],
    queries: Float[np.ndarray, "members head_dim head_dim"],
    inputs: Float[np.ndarray, "width_and_1 width_and_1"],
    key: Float[np.ndarray, "head_dim width_and_1"],
    rotation: MeanRotation,
) -> tuple[Float[np.ndarray, "members head_dim head_dim"], Float[np.ndarray, " members"]]:
    """The maps T_j of queries with which the heads of `keys` read another `key`, and the score variance each loses."""
    shared = rotation.of(key @ inputs @ key.T)
    maps, lost = [], []
    for member, moments in zip(keys, queries, strict=True):
        cross = rotation.of(member @ inputs @ key.T)
        map_ = symmetric_solve(cross, shared, RIDGE)
        rest = rotation.of(member @ inputs @ member.T) - map_ @ cross.T
        # With a ridge the quadratic form is not at its minimum: all its terms are needed.
        rest += map_ @ shared @ map_.T - cross @ map_.T
        maps.append(map_.T)
        lost.append(float(np.sum(moments * rest)))
    return np.stack(maps), np.array(lost)


def score_variance(
    keys: Float[np.ndarray, "members head_dim width_and_1"],
    queries: Float[np.ndarray, "members head_dim head_dim"],
    inputs: Float[np.ndarray, "width_and_1 width_and_1"],
    rotation: MeanRotation,
) -> Float[np.ndarray, " members"]:
    """Mean square of the scores of each member."""
    return np.array(
        [np.sum(moments * rotation.of(key @ inputs @ key.T)) for key, moments in zip(keys, queries, strict=True)]
    )


def share_keys(
    keys: Float[np.ndarray, "members head_dim width_and_1"],
    queries: Float[np.ndarray, "members head_dim head_dim"],
    inputs: Float[np.ndarray, "width_and_1 width_and_1"],
    rotary: Rotary | None,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
    *,
    start: Float[np.ndarray, "head_dim width_and_1"] | None = None,
) -> SharedKeys:
    """The best key projection for several.

    Args:
        keys: Their projections, biases in the last column.
        queries: E[q q^T], summed over the heads that read each.
        inputs: E[x1 x1^T]; centred where there are no rotary positions.
        rotary: The rotary positions, if any.
        frequencies: Radians per position of each pair; None: unknown.
        start: Where the search begins; its zero rows stay zero.
    """
    head_dim = keys.shape[1]
    rotation = mean_rotation(head_dim, rotary, frequencies)
    key = _principal_keys(keys, queries, inputs, rotary) if start is None else start
    for _ in range(0 if start is None and (rotary is None or frequencies is None) else TURNS):
        maps, _ = fitted_query_maps(keys, queries, inputs, key, rotation)
        parts = [rotation.of(map_ @ moments, backwards=True) for map_, moments in zip(maps, queries, strict=True)]
        square = sum(
            rotation.of(map_ @ moments @ map_.T, backwards=True) for map_, moments in zip(maps, queries, strict=True)
        )
        right = sum(part @ member for part, member in zip(parts, keys, strict=True))
        key = symmetric_solve(np.asarray(right).T, np.asarray(square), RIDGE).T
    maps, lost = fitted_query_maps(keys, queries, inputs, key, rotation)
    return SharedKeys(key, maps, float(lost.sum()))


def _principal_keys(
    keys: np.ndarray, queries: np.ndarray, inputs: np.ndarray, rotary: Rotary | None
) -> Float[np.ndarray, "head_dim width_and_1"]:
    """The optimum for evenly spread angles: a principal component per pair, a subspace of what is not rotated."""
    members, head_dim, _ = keys.shape
    result = np.zeros(keys.shape[1:])
    pairs = np.zeros((0, 2), int) if rotary is None else rotary_pairs(rotary)
    for first, second in pairs:
        rows = keys[:, first] + 1j * keys[:, second]
        weight = np.sqrt(queries[:, first, first] + queries[:, second, second])
        moments = weight[:, None] * (rows @ inputs @ rows.conj().T) * weight
        leading = np.linalg.eigh(moments)[1][:, -1]
        row = (leading.conj() * weight) @ rows
        result[first], result[second] = row.real, row.imag
    rest = np.setdiff1d(np.arange(head_dim), pairs)
    if len(rest):
        stacked = keys[:, rest].reshape(members * len(rest), -1)
        metric = block_diagonal([moments[np.ix_(rest, rest)] for moments in queries])
        result[rest] = leading_subspace(stacked @ inputs @ stacked.T, metric, len(rest))[0] @ stacked
    return result


@dataclass(frozen=True, eq=False)
class SharedValues:
    """The value projection of a group, the map back to each head's own values, and the output variance lost."""

    value: Float[np.ndarray, "value_dim width_and_1"]
    output_maps: Float[np.ndarray, "heads value_dim value_dim"]
    lost: float


def attended_inputs(
    inputs: Float[np.ndarray, "width_and_1 width_and_1"],
    value: Float[np.ndarray, "value_dim width_and_1"],
    moments: Float[np.ndarray, "value_dim value_dim"],
) -> Float[np.ndarray, "width_and_1 width_and_1"]:
    """Moments of what a head attends to: those of inputs, changed so that `value` of them has these moments.

    What of the input is not told by the values keeps its regression on them.
    """
    predicted = value @ inputs @ value.T
    regression = symmetric_solve(inputs @ value.T, predicted, NEGLIGIBLE)
    return inputs + regression @ (moments - predicted) @ regression.T


def share_values(
    values: Float[np.ndarray, "members value_dim width_and_1"],
    owners: Int[np.ndarray, " heads"],
    outputs: Float[np.ndarray, "out_width heads value_dim"],
    moments: Float[np.ndarray, "heads value_dim value_dim"],
    inputs: Float[np.ndarray, "width_and_1 width_and_1"],
) -> SharedValues:
    """The best value projection for several.

    Args:
        values: Their projections, biases in the last column.
        owners: Which of them each head reads.
        outputs: The output projections of those heads.
        moments: E[z_h z_h^T] of those heads.
        inputs: E[x1 x1^T].
    """
    members, dim, _ = values.shape
    stacked = values.reshape(members * dim, -1)
    features = [
        stacked @ attended_inputs(inputs, values[owner], moment) @ stacked.T
        for owner, moment in zip(owners, moments, strict=True)
    ]
    metrics = np.zeros((members, dim, dim))
    for head, owner in enumerate(owners):
        metrics[owner] += outputs[:, head].T @ outputs[:, head]
    subspace, lost = leading_subspace(np.mean(features, axis=0), block_diagonal(metrics), dim)
    maps = []
    for owner, moment in zip(owners, features, strict=True):
        cross = moment[owner * dim : (owner + 1) * dim] @ subspace.T
        maps.append(symmetric_solve(cross, subspace @ moment @ subspace.T, NEGLIGIBLE))
    return SharedValues(subspace @ stacked, np.stack(maps), lost)


def block_diagonal(blocks) -> Float[np.ndarray, "dim dim"]:
    """Square blocks of one size along the diagonal."""
    size = len(blocks[0])
    result = np.zeros((len(blocks) * size, len(blocks) * size))
    for place, block in enumerate(blocks):
        result[place * size : (place + 1) * size, place * size : (place + 1) * size] = block
    return result


def rotary_frequencies(model: Any, rotary: Rotary | None) -> Float[np.ndarray, " pairs"] | None:
    """The frequencies by which a torch model rotates; None where it has none, or several sets of this size."""
    if rotary is None:
        return None
    buffers = [buffer for name, buffer in model.named_buffers() if name.rpartition(".")[2].endswith("inv_freq")]
    sets = [np.asarray(buffer.tolist(), float) for buffer in buffers if len(buffer) == rotary.dims // 2]
    return sets[0] if sets and all(np.array_equal(sets[0], other) for other in sets) else None
