"""One key and one value projection in place of several: those that lose least, with the maps that read them.

*Keys.* Head j has scores q_j . R k_j, R the rotation by the distance of two tokens (none: R = 1). With one shared key
they are (T_j q_j) . R k. The mean square of the difference, over independent tokens and over distances, is least
squares in T_j for a given k and in k for given T_j; both need only head_dim x head_dim moments. If all angles were
independent and spread evenly, T_j would be one complex number per rotary pair and k the first principal component of
the pairs: the start. With the frequencies known, solving for T_j and k in turns goes further, because pairs that turn
slowly can stand in for each other.

*Values.* Head h gives O_h V_h a_h, where a_h is its attended input. The moments of a_h are those of the layer's input,
corrected so that V_h a_h has the moments that were measured. The shared value is the subspace of all V_j from which the
O_h V_h a_h are best predicted.
"""

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from .moments import LayerMoments, leading_subspace, symmetric_solve

TURNS = 10
RIDGE = 1e-6


def fitted_query_maps(
    layer: LayerMoments, members: list[int], key: Float[np.ndarray, "head_dim width_and_1"]
) -> tuple[Float[np.ndarray, "members head_dim head_dim"], Float[np.ndarray, " members"]]:
    """The maps T_j of queries with which the readers of these key heads read another `key`, and the score variance
    each loses."""
    averaged = layer.rotation.averaged
    shared = averaged(key @ layer.inputs @ key.T)
    maps, lost = [], []
    for member, moments in zip(layer.keys[members], layer.queries[members], strict=True):
        cross = averaged(member @ layer.inputs @ key.T)
        map_ = symmetric_solve(cross, shared, RIDGE)
        rest = averaged(member @ layer.inputs @ member.T) - map_ @ cross.T
        # With a ridge the quadratic form is not at its minimum: all its terms are needed.
        rest += map_ @ shared @ map_.T - cross @ map_.T
        maps.append(map_.T)
        lost.append(float(np.sum(moments * rest)))
    return np.stack(maps), np.array(lost)


def share_keys(
    layer: LayerMoments, members: list[int], *, start: Float[np.ndarray, "head_dim width_and_1"] | None = None
) -> tuple[Float[np.ndarray, "head_dim width_and_1"], Float[np.ndarray, "members head_dim head_dim"], float]:
    """The best key projection for several key heads, the maps of their queries, and the score variance lost.

    The search begins at `start`, whose zero rows stay zero; without it at the closed form, which is the result where no
    frequencies are known.
    """
    key = _principal_keys(layer, members) if start is None else start
    for _ in range(0 if start is None and layer.frequencies is None else TURNS):
        maps, _ = fitted_query_maps(layer, members, key)
        halves = [map_ @ moments for map_, moments in zip(maps, layer.queries[members], strict=True)]
        parts = [layer.rotation.averaged(half, backwards=True) for half in halves]
        square = sum(
            layer.rotation.averaged(half @ map_.T, backwards=True) for half, map_ in zip(halves, maps, strict=True)
        )
        right = sum(part @ member for part, member in zip(parts, layer.keys[members], strict=True))
        key = symmetric_solve(np.asarray(right).T, np.asarray(square), RIDGE).T
    maps, lost = fitted_query_maps(layer, members, key)
    return key, maps, float(lost.sum())


def _principal_keys(layer: LayerMoments, members: list[int]) -> Float[np.ndarray, "head_dim width_and_1"]:
    """The optimum for evenly spread angles: a principal component per pair, a subspace of what is not rotated."""
    keys, queries, inputs = layer.keys[members], layer.queries[members], layer.inputs
    result = np.zeros(keys.shape[1:])
    pairs = np.zeros((0, 2), int) if layer.rotary is None else layer.rotary.pairs
    for first, second in pairs:
        rows = keys[:, first] + 1j * keys[:, second]
        weight = np.sqrt(queries[:, first, first] + queries[:, second, second])
        moments = weight[:, None] * (rows @ inputs @ rows.conj().T) * weight
        leading = np.linalg.eigh(moments)[1][:, -1]
        row = (leading.conj() * weight) @ rows
        result[first], result[second] = row.real, row.imag
    rest = np.setdiff1d(np.arange(keys.shape[1]), pairs)
    if len(rest):
        stacked = keys[:, rest].reshape(len(keys) * len(rest), -1)
        metric = np.asarray(block_diag(*(moments[np.ix_(rest, rest)] for moments in queries)))
        result[rest] = leading_subspace(stacked @ inputs @ stacked.T, metric, len(rest))[0] @ stacked
    return result


def attended_inputs(
    inputs: Float[np.ndarray, "width_and_1 width_and_1"],
    value: Float[np.ndarray, "value_dim width_and_1"],
    moments: Float[np.ndarray, "value_dim value_dim"],
) -> Float[np.ndarray, "width_and_1 width_and_1"]:
    """Moments of what a head attends to: those of inputs, changed so that `value` of them has these moments.

    The rest of the input keeps its regression on the values.
    """
    predicted = value @ inputs @ value.T
    regression = symmetric_solve(inputs @ value.T, predicted)
    return inputs + regression @ (moments - predicted) @ regression.T


def share_values(
    layer: LayerMoments, members: list[int]
) -> tuple[Float[np.ndarray, "value_dim width_and_1"], Float[np.ndarray, "heads value_dim value_dim"], float]:
    """The best value projection for several key heads, the map back to each reader's own values, and the variance of
    the output lost."""
    values, heads = layer.values[members], layer.readers(members)
    owners = np.repeat(np.arange(len(values)), layer.share)
    count, dim, _ = values.shape
    stacked = values.reshape(count * dim, -1)
    features = [
        stacked @ attended_inputs(layer.statistics.inputs, values[owner], moment) @ stacked.T
        for owner, moment in zip(owners, layer.head_moments[heads], strict=True)
    ]
    metrics = np.zeros((count, dim, dim))
    for owner, head in zip(owners, heads, strict=True):
        metrics[owner] += layer.weights.output[:, head].T @ layer.weights.output[:, head]
    subspace, lost = leading_subspace(np.mean(features, axis=0), np.asarray(block_diag(*metrics)), dim)
    maps = []
    for owner, moment in zip(owners, features, strict=True):
        cross = moment[owner * dim : (owner + 1) * dim] @ subspace.T
        maps.append(symmetric_solve(cross, subspace @ moment @ subspace.T))
    return subspace @ stacked, np.stack(maps), lost


def same_reading(attention: Float[np.ndarray, "*examples heads queries keys"]) -> Float[np.ndarray, "heads heads"]:
    """1 less the mean total variation distance between the attention of every two heads, over queries and examples.

    >>> same_reading(np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]]))
    array([[1. , 0. , 0.5],
           [0. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    heads = attention.shape[-3]
    rows = np.moveaxis(attention, -3, 0).reshape(heads, -1, attention.shape[-1])
    # Queries without any attention are padding.
    rows = rows[:, rows.sum(axis=(0, 2)) > 0]
    return np.array([[1 - np.abs(one - other).sum(axis=-1).mean() / 2 for other in rows] for one in rows])


def lost_with_keys_of_others(layer: LayerMoments) -> Float[np.ndarray, "key_heads key_heads"]:
    """The share of the score variance that the readers of a key head lose when they read the keys of another.

    With the best map of their queries; where queries and keys are normalised, with their queries as they are. Row: the
    key head; column: the one that is read. 0: nothing is lost.
    """
    members = list(range(layer.weights.key_heads))
    keys = layer.unit_keys if layer.normed else layer.keys
    variance = np.maximum(layer.score_squares(keys, members), np.finfo(float).tiny)
    lost = np.zeros((len(members), len(members)))
    for other in members:
        if layer.normed:
            column = layer.score_squares(keys - keys[other], members)
        else:
            _, column = fitted_query_maps(layer, members, keys[other])
        lost[:, other] = column / variance
        lost[other, other] = 0.0
    return np.maximum(lost, 0.0)
