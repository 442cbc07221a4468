"""Experiments that explain a disagreement: the same head count once more, with one thing changed."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from headcount.stock import StockConfig, StockExamples

from .answers import StoredAnswer
from .grid import Results, Trial
from .judge import Need, Verdict

MORE_SEEDS, MORE_STEPS, MORE_EXAMPLES, WIDER = (2, 3), 3, 4, 2
SOLVED = 3.0
"""A changed model solves the task if its error is at most so many times the smallest of the unchanged ones."""


def experiments(trial: Trial) -> dict[str, list[Trial]]:
    """Return the changed trials of a model that should do and does not, by what they would show."""
    wide = replace(
        trial.config,
        width=WIDER * trial.config.width,
        head_dim=WIDER * trial.config.head_dim,
        feed_forward=WIDER * trial.config.feed_forward,
    )
    deeper = replace(trial.config, layers=trial.config.layers + 1)
    return {
        "a stuck optimiser: more starts": [replace(trial, seed=seed) for seed in MORE_SEEDS],
        "too few steps": [replace(trial, steps=MORE_STEPS * trial.steps)],
        "rank per head: heads twice as wide": [replace(trial, config=wide)],
        "too little data: more examples": [replace(trial, examples=MORE_EXAMPLES * trial.examples)],
        "no net before attention: one more layer": [replace(trial, config=deeper)],
    }


def doubtful(
    answer: StoredAnswer, need: Need | None, verdict: Verdict, configs: list[StockConfig]
) -> StockConfig | None:
    """Return the model that should do by the answer and does not; None where stock models need fewer."""
    if verdict not in ("stock needs more", "stock fails") or answer.high is None:
        return None
    return next((config for config in configs if config.heads >= answer.high), configs[-1])


def explained(
    trial: Trial, smallest: float, results: Results, examples: Callable[[int], StockExamples]
) -> Iterator[tuple[str, float, bool]]:
    """Train the experiments in turn until one solves the task; yield each with its error, and whether it does."""
    for words, trials in experiments(trial).items():
        error = min(results.train(each, examples(each.examples)).error for each in trials)
        yield words, error, error <= SOLVED * smallest
        if error <= SOLVED * smallest:
            return
