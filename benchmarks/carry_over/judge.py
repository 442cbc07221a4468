"""What stock models need, read from their errors by stated rules, against what headcount answered."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from headcount.stock import StockConfig

from .answers import StoredAnswer
from .grid import SEEDS, Results, Trial, real_configs

Verdict = Literal["agree", "stock needs fewer", "stock needs more", "stock fails", "no answer"]
VERDICTS: tuple[Verdict, ...] = ("agree", "stock needs fewer", "stock needs more", "stock fails", "no answer")
DROP = 3.0
"""An error that falls less than so many times over all head counts shows no drop: one head is enough."""
LEARNED = 0.5
"""A share of the targets' variance below which something was learned."""
WITHIN = 0.1
"""Of what heads gain, or of the best error: what may be given away."""
BEST = 3
"""The best models of a grid that are trained from a second seed."""


@dataclass(frozen=True)
class Need:
    """The fewest heads tried that are enough, `high`; `low` is one more than the next fewer tried."""

    low: int
    high: int


def known_need(errors: Mapping[int, float]) -> Need | None:
    """Return the fewest heads whose error is at most the geometric mean of the first and the smallest; None: no drop.

    Where all errors are within `DROP` times each other it is the fewest tried; None where nothing was learned.
    """
    counts = sorted(errors)
    first, smallest = errors[counts[0]], min(errors.values())
    if smallest > LEARNED:
        return None
    mark = first if first < DROP * smallest else math.sqrt(first * smallest)
    place = next(place for place, count in enumerate(counts) if errors[count] <= mark)
    return Need(1 if place == 0 else counts[place - 1] + 1, counts[place])


def gradual_need(losses: Mapping[int, Float[np.ndarray, " examples"]]) -> Need:
    """Return the fewest heads behind the best by a tenth of what heads gain, or by a paired standard error, at most."""
    counts = sorted(losses)
    errors = {count: float(np.mean(losses[count])) for count in counts}
    best = min(counts, key=lambda count: (errors[count], count))
    gain = errors[counts[0]] - errors[best]

    def is_enough(count: int) -> bool:
        above = errors[count] - errors[best]
        return above <= WITHIN * gain or above <= paired_error(losses[count], losses[best])

    place = next(place for place, count in enumerate(counts) if is_enough(count))
    return Need(1 if place == 0 else counts[place - 1] + 1, counts[place])


def paired_error(ones: Float[np.ndarray, " examples"], others: Float[np.ndarray, " examples"]) -> float:
    """Return the standard error of the difference of two models' errors on the same validation examples."""
    difference = np.asarray(ones) - np.asarray(others)
    return float(difference.std(ddof=1) / math.sqrt(len(difference)))


def verdict(answer: StoredAnswer, need: Need | None) -> Verdict:
    """Return how what stock models need lies to the interval of the answer."""
    if answer.low is None or answer.high is None:
        return "no answer"
    if need is None:
        return "stock fails"
    if need.high < answer.low:
        return "stock needs fewer"
    return "stock needs more" if need.low > answer.high else "agree"


@dataclass(frozen=True)
class Recommended:
    """A recommended stock model next to the best of its grid.

    Args:
        config: The stock model that `measure --for torch` chooses.
        error: Of the recommended model; `best` is the best model's, and `best_config` that model.
        margin: Standard error of their difference, over the same validation examples.
        share: CPU seconds of measuring and choosing over those of the whole grid.
    """

    config: StockConfig
    error: float
    best_config: StockConfig
    best: float
    margin: float
    share: float

    @property
    def holds(self) -> bool:
        """Whether it is within 10 % of the best error, or within the sampling error."""
        return self.behind <= 1

    @property
    def behind(self) -> float:
        """How far it is above the best error, over what it may be: 10 % of that, or the margin where that is more."""
        above = self.error - self.best
        return above / max(WITHIN * self.best, self.margin) if above > 0 else 0.0


def recommended_config(answer: StoredAnswer) -> StockConfig | None:
    """Return the stock model that the answer names; None without one."""
    return None if answer.config is None else StockConfig(**answer.config)


def best_trials(name: str, results: Results, examples: int) -> list[Trial]:
    """Return the models of a grid that did best from the first seed, best first."""
    trials = [Trial(name, config, examples=examples) for config in real_configs()]
    return sorted(trials, key=lambda trial: results[trial].error)[:BEST]


def recommended(answer: StoredAnswer, results: Results, examples: int) -> Recommended | None:
    """Return the recommended model next to the best of the grid, both as means over seeds; None without an answer."""
    config = recommended_config(answer)
    if config is None:
        return None
    name = answer.task

    def over_seeds(config: StockConfig) -> tuple[float, np.ndarray]:
        return results.mean(Trial(name, config, seed, examples=examples) for seed in SEEDS)

    best = min((trial.config for trial in best_trials(name, results, examples)), key=lambda each: over_seeds(each)[0])
    error, losses = over_seeds(config)
    smallest, best_losses = over_seeds(best)
    grid = sum(results[Trial(name, each, examples=examples)].seconds for each in real_configs())
    margin = paired_error(losses, best_losses)
    return Recommended(config, error, best, smallest, margin, (answer.seconds + answer.choosing) / grid)
