"""Choose the smallest configuration that does as well as the best, from few trained models.

1. Short runs climb the shapes (layers, width), from the smallest, as long as a step up helps by more than chance; then
   heads are doubled as long as that helps.
2. That one and the better of the two above it are trained in full, and smaller ones until one does worse.
3. At the one that is chosen, fewer heads are, and in hf one key head.

Errors are compared on the same validation examples, pair by pair.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from .config import Library, StockConfig, StockShape
from .train import StockResult

LAYERS, WIDTHS = (1, 2), (16, 32, 64)
MAX_HEADS = 16
SHORT = 4
"""Short runs have this many times fewer steps."""
MARGIN = 1.1
"""An error up to a tenth above the best counts as well."""
CHANCE = 0.5
"""Standard errors of a difference that are taken for chance: half of one, as the best of several had luck itself."""

Train = Callable[[StockConfig, int], StockResult]
"""Trains a model for a number of steps."""


@dataclass(frozen=True)
class ChosenModel:
    """The chosen model, the best, and all that were trained in full, smallest first; `runs` counts short ones too."""

    chosen: StockResult
    best: StockResult
    trained: tuple[StockResult, ...]
    runs: int


def choose(
    train: Train, library: Library, *, heads: int, fewer: int | None = None, shape: StockShape, steps: int
) -> ChosenModel:
    """Return the smallest configuration whose error is within a tenth of the best's, or within chance of it.

    Args:
        train: Trains a configuration for a number of steps.
        library: Whose models.
        heads: Heads to begin with.
        fewer: A smaller head count to try in the end; None: half.
        shape: The task's sizes.
        steps: Of a full run.
    """
    search = _ShapeSearch(train, library, shape, steps)
    top, larger = search.climbed(min(heads, MAX_HEADS))
    top = search.with_more_heads(top)
    for config in (top, larger):
        search.full_run(config)
    below = [each for each in search.shapes(top.heads) if search.size(each) < search.size(top)]
    for config in sorted(below, key=search.size, reverse=True):
        if not is_as_good(search.full_run(config), search.best):
            break
    for config in _thinner(search.chosen.config, fewer):
        search.full_run(config)
    return ChosenModel(
        search.chosen,
        search.best,
        tuple(sorted(search.full.values(), key=_size)),
        len(search.short) + len(search.full),
    )


class _ShapeSearch:
    """What was trained so far, in short and in full."""

    def __init__(self, train: Train, library: Library, shape: StockShape, steps: int):
        self.train: Train = train
        self.library: Library = library
        self.shape, self.steps = shape, steps
        self.short: dict[StockConfig, StockResult] = {}
        self.full: dict[StockConfig, StockResult] = {}

    def size(self, config: StockConfig) -> int:
        return config.parameters(self.shape)

    def shapes(self, heads: int) -> list[StockConfig]:
        return [configuration(self.library, layers, width, heads) for layers in LAYERS for width in WIDTHS]

    def climbed(self, heads: int) -> tuple[StockConfig, StockConfig]:
        """Return the shape from which neither more width nor another layer helps in a short run, and the better of the
        two; the largest shape is both."""
        layer, width, of_shape = 0, 0, self.shapes(heads)
        while True:
            above = [(layer, width + 1), (layer + 1, width)]
            tried = {
                (i, j): self.short_run(of_shape[i * len(WIDTHS) + j])
                for i, j in above
                if i < len(LAYERS) and j < len(WIDTHS)
            }
            here = self.short_run(of_shape[layer * len(WIDTHS) + width])
            if not tried:
                return here.config, here.config
            layer, width = min(tried, key=lambda place: tried[place].error)
            if not is_above_chance(here, tried[layer, width]):
                return here.config, tried[layer, width].config

    def with_more_heads(self, config: StockConfig) -> StockConfig:
        """Return the same with heads doubled as long as that helps in a short run."""
        while 2 * config.heads <= min(MAX_HEADS, config.width // 2):
            more = configuration(self.library, config.layers, config.width, 2 * config.heads)
            if not is_above_chance(self.short_run(config), self.short_run(more)):
                break
            config = more
        return config

    def short_run(self, config: StockConfig) -> StockResult:
        if config not in self.short:
            self.short[config] = self.train(config, max(1, self.steps // SHORT))
        return self.short[config]

    def full_run(self, config: StockConfig) -> StockResult:
        if config not in self.full:
            self.full[config] = self.train(config, self.steps)
        return self.full[config]

    @property
    def best(self) -> StockResult:
        return min(self.full.values(), key=lambda each: each.error)

    @property
    def chosen(self) -> StockResult:
        return smallest(self.full.values())


def configuration(library: Library, layers: int, width: int, heads: int) -> StockConfig:
    """Return a configuration of this width, or of a little less where heads share it, as head_dim is even."""
    head_dim = max(2, width // heads // 2 * 2)
    width = heads * head_dim if library == "torch" else width
    return StockConfig(library=library, layers=layers, width=width, heads=heads, head_dim=head_dim)


def _thinner(config: StockConfig, fewer: int | None) -> list[StockConfig]:
    """Return the same with fewer heads, and in hf with one key head."""
    half = config.heads // 2
    heads = fewer if fewer is not None and fewer < config.heads else half
    others = [configuration(config.library, config.layers, config.width, heads)] if heads else []
    if config.library == "hf" and config.key_heads > 1:
        others.append(replace(config, key_heads=1))
    return others


def smallest(results: Iterable[StockResult]) -> StockResult:
    """Return the result of fewest parameters, and of those of fewest heads, that is as good as the best."""
    results = list(results)
    best = min(results, key=lambda each: each.error)
    return min((each for each in results if is_as_good(each, best)), key=_size)


def is_as_good(one: StockResult, best: StockResult) -> bool:
    """Whether an error is at most a tenth above the best, or above it by no more than chance."""
    return one.error <= MARGIN * best.error or not is_above_chance(one, best)


def is_above_chance(one: StockResult, other: StockResult) -> bool:
    """Whether the error of one is above that of the other by more than half the paired standard error."""
    return one.error - other.error > CHANCE * paired_error(one, other)


def paired_error(one: StockResult, other: StockResult) -> float:
    """Return the standard error of the difference of two errors on the same validation examples."""
    differences = one.losses - other.losses
    return float(np.std(differences) / len(differences) ** 0.5)


def _size(result: StockResult) -> tuple[int, int]:
    return result.parameters, result.config.heads
