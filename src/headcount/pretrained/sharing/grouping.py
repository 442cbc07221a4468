"""Fewer key heads: which heads share a key and a value projection, both aligned and merged, the output refit."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..layers.weights import HeadWeights
from .in_order import SmallLayer, small_layers
from .moments import LayerMoments, with_bias
from .shared import share_keys, share_values

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

Groups = tuple[tuple[int, ...], ...]
"""Key heads of the original layer that share one of the new."""
Cost = Callable[[tuple[int, ...]], float]
"""What a group loses."""
ALL_PARTITIONS = 1000
"""Up to this many partitions all are compared; beyond, a greedy one is improved by swaps."""


def neighbours(key_heads: int, groups: int) -> Groups:
    """Equal groups of neighbouring key heads.

    >>> neighbours(6, 3)
    ((0, 1), (2, 3), (4, 5))
    """
    size = key_heads // groups
    return tuple(tuple(range(place * size, (place + 1) * size)) for place in range(groups))


def choose_groups(layer: LayerMoments, key_heads: int) -> Groups:
    """The equal groups that lose least: all partitions where there are few, else greedy ones improved by swaps."""
    first = neighbours(layer.weights.key_heads, key_heads)
    size = len(first[0])
    if size == 1 or key_heads == 1:
        return first
    cost = _group_cost(layer)
    members = tuple(range(layer.weights.key_heads))
    candidates = list(itertools.islice(_partitions(members, size), ALL_PARTITIONS + 1))
    if len(candidates) <= ALL_PARTITIONS:
        return min(candidates, key=lambda groups: sum(map(cost, groups)))
    return _swapped(cost, _greedy(cost, members, size))


def _group_cost(layer: LayerMoments) -> Cost:
    """Share of the layer's score variance that a group loses, plus its share of the output variance.

    Angles are taken for spread evenly, for which shared keys have a closed form.
    """
    even = replace(layer, frequencies=None)
    scores = even.score_squares(even.keys, list(range(even.weights.key_heads))).sum()
    outputs = sum(even.output_squares)

    def cost(group: tuple[int, ...]) -> float:
        members = list(group)
        keys, values = _keys_of_group(even, members)[2], share_values(even, members)[2]
        return float(keys / max(scores, np.finfo(float).tiny) + values / max(outputs, np.finfo(float).tiny))

    return functools.cache(cost)


def _keys_of_group(
    layer: LayerMoments, members: list[int]
) -> tuple[Float[np.ndarray, "head_dim width_and_1"], Float[np.ndarray, "members head_dim head_dim"], float]:
    """`share_keys`; where a norm follows with its factors, the mean of keys of equal size, which are not aligned."""
    if not layer.normed:
        return share_keys(layer, members)
    units, sizes = layer.unit_keys[members], layer.key_sizes[members]
    mean = units.mean(axis=0)
    lost = layer.score_squares((units - mean) * sizes, members).sum()
    identity = np.broadcast_to(np.eye(layer.weights.head_dim), (len(members), *layer.queries.shape[1:]))
    return mean * sizes.mean(), identity, float(lost)


def _partitions(members: tuple[int, ...], size: int) -> Iterator[Groups]:
    if not members:
        yield ()
        return
    for others in itertools.combinations(members[1:], size - 1):
        rest = tuple(member for member in members[1:] if member not in others)
        for groups in _partitions(rest, size):
            yield ((members[0], *others), *groups)


def _greedy(cost: Cost, members: Sequence[int], size: int) -> Groups:
    """Each group begins with the first key head that is left and takes the one that costs least, until it is full."""
    rest, groups = set(members), []
    while rest:
        group = (min(rest),)
        while len(group) < size:
            group = min((tuple(sorted((*group, member))) for member in sorted(rest - {*group})), key=cost)
        groups.append(group)
        rest -= {*group}
    return tuple(groups)


def _swapped(cost: Cost, groups: Groups) -> Groups:
    """Swaps of two key heads between groups, as long as one lowers the cost."""
    current = list(groups)
    better = True
    while better:
        better = False
        for one, other in itertools.combinations(range(len(current)), 2):
            for left, right in itertools.product(current[one], current[other]):
                swapped = (
                    tuple(sorted({*current[one]} - {left} | {right})),
                    tuple(sorted({*current[other]} - {right} | {left})),
                )
                if sum(map(cost, swapped)) < (1 - 1e-9) * (cost(current[one]) + cost(current[other])):
                    current[one], current[other] = swapped
                    better = True
                    break
    return tuple(sorted(current))


def group_layer(layer: LayerMoments, groups: Groups) -> HeadWeights:
    """The layer with one key head per group, in its real, smaller shapes. Heads are reordered: groups are neighbours.

    Queries are mapped to the shared keys and outputs to the shared values; where queries and keys are normalised, keys
    are averaged. The output projection is not yet refit.
    """
    weights = layer.weights
    query, output = with_bias(weights.query, weights.query_bias), weights.output.copy()
    keys, values, order = [], [], []
    for members in map(list, groups):
        heads = layer.readers(members)
        order += heads
        key, query_maps, _ = _keys_of_group(layer, members)
        value, output_maps, _ = share_values(layer, members)
        keys.append(key)
        values.append(value)
        for place, head in enumerate(heads):
            query[head] = query_maps[place // layer.share] @ query[head]
            output[:, head] = weights.output[:, head] @ output_maps[place]
    key, value, query = np.stack(keys), np.stack(values), query[order]
    return HeadWeights(
        query=query[..., :-1],
        key=key[..., :-1],
        value=value[..., :-1],
        output=output[:, order],
        query_bias=None if weights.query_bias is None else query[..., -1],
        key_bias=None if weights.key_bias is None else key[..., -1],
        value_bias=None if weights.value_bias is None else value[..., -1],
        output_bias=weights.output_bias,
    )


def group_model(evaluation: "Evaluation", key_heads: int) -> tuple[SmallLayer, ...]:
    """Every layer with fewer key heads, a divisor of the original's: groups are searched, outputs refitted."""

    def grouped(layer: LayerMoments) -> SmallLayer:
        small = group_layer(layer, choose_groups(layer, key_heads))
        return SmallLayer(small, small.repeated(layer.weights.key_heads))

    return small_layers(evaluation, grouped)
