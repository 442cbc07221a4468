"""The metric `redundancy`: heads that read the same tokens, key heads whose keys can be shared."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer.words import decimal
from .facts import Facts
from .measuring import Fact, Subject

if TYPE_CHECKING:
    from .model import TrainedModel

SAME = 0.9
"""Similarity of attention from which on two heads read the same tokens."""
SHARED = 0.05
"""Share of the variance of a head's scores that may be lost where it reads the keys of another."""
MAX_LISTED = 5


@dataclass(frozen=True)
class Pair:
    """Two heads (or key heads) of a layer that are alike, and their similarity, or the share that is lost."""

    layer: int
    first: int
    second: int
    value: float


def redundancy_facts(subject: Subject) -> list[Fact]:
    return subject.by_layer("redundancy", "comparing heads", _measure_redundancy)


def _measure_redundancy(subject: Subject, index: int) -> dict[str, Any]:
    from ..sharing.moments import LayerMoments
    from ..sharing.shared import lost_with_keys_of_others

    layer = LayerMoments.of_layer(subject.evaluation, index, subject.statistics[index])
    return {
        "reading": None if subject.same_reading is None else subject.same_reading[index].tolist(),
        "keys": lost_with_keys_of_others(layer).tolist(),
    }


def same_tokens(facts: Facts) -> tuple[Pair, ...]:
    """Heads of a layer that read the same tokens, the most similar first."""
    return _pairs(facts, "reading", lambda value: value >= SAME, lambda pair: -pair.value)


def shared_keys(facts: Facts) -> tuple[Pair, ...]:
    """Key heads of a layer one of which can read the other's keys, those that lose least first."""
    return _pairs(facts, "keys", lambda value: value <= SHARED, lambda pair: pair.value)


def _pairs(facts: Facts, name: str, alike: Callable[[float], bool], order: Callable[[Pair], float]) -> tuple[Pair, ...]:
    """Pairs of one layer whose value is finite and says that they are alike."""
    found = []
    for layer in facts.layers():
        stored = facts.fact(f"redundancy/{layer}").get(name)
        if not stored:
            continue
        matrix = np.asarray(stored, float)
        matrix = np.fmin(matrix, matrix.T)  # either of the two may read the other
        rows, columns = np.triu_indices(len(matrix), 1)
        pairs = [Pair(layer, int(i), int(j), float(matrix[i, j])) for i, j in zip(rows, columns, strict=True)]
        found += [pair for pair in pairs if np.isfinite(pair.value) and alike(pair.value)]
    return tuple(sorted(found, key=order))


def redundancy_words(model: "TrainedModel") -> Iterator[tuple[str, str]]:
    """Pairs of heads that are alike, the first few of each kind."""
    if model.same_tokens:
        first = _first(model.same_tokens, "heads")
        yield "read the same tokens", f"{_counted(model.same_tokens)} with similarity of {SAME} or more: {first}"
    if model.shared_keys:
        lost = f"lose at most {SHARED:.0%} of the variance of their scores where one reads the other's keys"
        cost = "what sharing costs in loss is measured for configurations with fewer key heads only"
        pairs = f"{_counted(model.shared_keys)} of key heads"
        yield "keys alike", f"{pairs} {lost}: {_first(model.shared_keys, 'key heads')}; {cost}"


def _counted(pairs: tuple[Pair, ...]) -> str:
    return f"{len(pairs)} pair{'s' * (len(pairs) != 1)}"


def _first(pairs: tuple[Pair, ...], what: str) -> str:
    """The first few pairs, and how many more there are."""
    words = ", ".join(
        f"layer {pair.layer} {what} {pair.first} and {pair.second} ({decimal(pair.value)})"
        for pair in pairs[:MAX_LISTED]
    )
    more = len(pairs) - MAX_LISTED
    return f"{words} and {more} more" if more > 0 else words
