"""Choose the smallest configuration that does as well as the best, from few trained models.

Shapes (layers, width) are climbed in short runs, from the smallest, as long as a step up helps by more than chance.
From the end of the climb smaller ones are trained in full, until one does worse; then fewer and more heads, and in hf
shared keys. Errors are compared on the same validation examples, pair by pair.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from .config import Library, StockConfig, TaskShape
from .train import StockResult

LAYERS, WIDTHS = (1, 2), (16, 32, 64)
MAX_HEADS = 16
MOST = 7
"""Full runs, at most."""
SHORT = 4
"""Short runs have this many times fewer steps."""
MARGIN = 1.1
"""An error up to a tenth above the best counts as well."""

Train = Callable[[StockConfig, int], StockResult]
"""Trains a model for so many steps."""


@dataclass(frozen=True)
class Choice:
    """The chosen model, the best, and all that were trained in full, smallest first; `runs` counts short ones too."""

    chosen: StockResult
    best: StockResult
    trained: tuple[StockResult, ...]
    runs: int


def choose(train: Train, library: Library, heads: int, shape: TaskShape, steps: int) -> Choice:
    """Return the smallest configuration whose error is within a tenth of the best's, or within chance of it.

    Args:
        train: Trains a configuration for some steps.
        library: Whose models.
        heads: The head count to begin with.
        shape: The task's sizes.
        steps: Of a full run.
    """
    search = _Search(train, library, shape, steps)
    heads = min(heads, MAX_HEADS)
    top = search.climbed(heads)
    smaller = sorted((each for each in search.short if each is not top), key=search.parameters, reverse=True)
    search.full_run(top)
    for config in (each for each in smaller if search.parameters(each) < search.parameters(top)):
        if not _as_good(search.full_run(config), search.best):
            break
    while len(search.full) < MOST and (others := search.untried_variants()):
        search.full_run(others[0])
    return search.choice()


class _Search:
    """What was trained so far, in short and in full."""

    def __init__(self, train: Train, library: Library, shape: TaskShape, steps: int):
        self.train, self.library, self.shape, self.steps = train, library, shape, steps
        self.short: dict[StockConfig, StockResult] = {}
        self.full: dict[StockConfig, StockResult] = {}

    def parameters(self, config: StockConfig) -> int:
        return config.parameters(self.shape)

    def climbed(self, heads: int) -> StockConfig:
        """Return the shape from which neither more width nor another layer helps in a short run."""
        layer, width = 0, 0
        at = self._at(layer, width, heads)
        while True:
            steps = [(layer, width + 1), (layer + 1, width)]
            above = [(i, j) for i, j in steps if i < len(LAYERS) and j < len(WIDTHS)]
            if not above:
                return at
            tried = {place: self._short_run(self._at(*place, heads)) for place in above}
            place = min(tried, key=lambda each: tried[each].error)
            if not is_above_chance(self._short_run(at), tried[place]):
                return at
            (layer, width), at = place, tried[place].config

    def untried_variants(self) -> list[StockConfig]:
        """Return what differs from the chosen configuration in its heads, or in its key heads, and was not trained."""
        return [each for each in variants(self.choice().chosen.config) if each not in self.full]

    def full_run(self, config: StockConfig) -> StockResult:
        if config not in self.full:
            self.full[config] = self.train(config, self.steps)
        return self.full[config]

    @property
    def best(self) -> StockResult:
        return min(self.full.values(), key=lambda each: each.error)

    def choice(self) -> Choice:
        trained = sorted(self.full.values(), key=_size)
        return Choice(smallest(trained), self.best, tuple(trained), len(self.short) + len(self.full))

    def _at(self, layer: int, width: int, heads: int) -> StockConfig:
        return configuration(self.library, LAYERS[layer], WIDTHS[width], heads)

    def _short_run(self, config: StockConfig) -> StockResult:
        if config not in self.short:
            self.short[config] = self.train(config, max(1, self.steps // SHORT))
        return self.short[config]


def configuration(library: Library, layers: int, width: int, heads: int) -> StockConfig:
    """Return a configuration of about this width, which heads share in torch; head_dim is even."""
    head_dim = max(2, 2 * round(width / heads / 2))
    width = heads * head_dim if library == "torch" else width
    return StockConfig(library=library, layers=layers, width=width, heads=heads, head_dim=head_dim)


def variants(config: StockConfig) -> list[StockConfig]:
    """Return the same with half and with twice the heads, and in hf with one key head."""
    counts = [count for count in (config.heads // 2, 2 * config.heads) if 1 <= count <= MAX_HEADS]
    others = [configuration(config.library, config.layers, config.width, count) for count in counts]
    if config.library == "hf" and config.key_heads > 1:
        others.append(replace(config, key_heads=1))
    return others


def smallest(results: Iterable[StockResult]) -> StockResult:
    """Return the result of fewest parameters, and of those of fewest heads, that is as good as the best."""
    results = list(results)
    best = min(results, key=lambda each: each.error)
    return min((each for each in results if _as_good(each, best)), key=_size)


def is_above_chance(one: StockResult, other: StockResult) -> bool:
    """Whether the error of one is above that of the other by more than the paired standard error."""
    return one.error - other.error > paired_error(one, other)


def paired_error(one: StockResult, other: StockResult) -> float:
    """Return the standard error of the difference of two errors on the same validation examples."""
    differences = one.losses - other.losses
    return float(np.std(differences) / len(differences) ** 0.5)


def _as_good(one: StockResult, best: StockResult) -> bool:
    return one.error <= MARGIN * best.error or not is_above_chance(one, best)


def _size(result: StockResult) -> tuple[int, int]:
    return result.parameters, result.config.heads
