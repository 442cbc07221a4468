"""Rounds without training: every model's error is a function of its cell."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headcount.answer import Answer, answer, error_table
from headcount.models.base import HeadElimination
from headcount.search import Question, effort_of, rounds
from headcount.search.results import SearchResults
from headcount.store import Cell, Outcome

from ..helpers import fabricated
from ..helpers.sweeps import TASK, TRAIN, class_token

Error = Callable[[Cell], float]


def elimination(heads: int, distinct: int) -> HeadElimination:
    """Of a model with so many distinct heads and copies of them."""
    left = range(heads - 1, 0, -1)
    return HeadElimination(tuple(range(heads - 1)), tuple(1e-6 if count >= distinct else 0.5 for count in left))


def scatter(cell: Cell) -> float:
    """A factor from 1 to 1.5 that differs from cell to cell."""
    return 1 + int(cell.key[:4], 16) / 2**17


def needing(distinct: int, *, misses: Callable[[Cell], bool] = lambda cell: False) -> Error:
    """Errors of a task of so many maxima; a model that misses its solution is as one of a head less."""

    def error(cell: Cell) -> float:
        heads = cell.model["heads"] - misses(cell)
        return scatter(cell) * (1e-4 if heads >= distinct else 0.5 - 0.4 * heads / distinct)

    return error


def a_question(heads: Sequence[int] = range(1, 13), most: int | None = None, **changes: Any) -> Question:
    plain = {"task": TASK, "model": class_token, "train": TRAIN, "lengths": (4,)}
    return Question(**(plain | changes), heads=tuple(heads), most=most or max(heads))


@dataclass(frozen=True)
class Played:
    """What every round asked for, and what came of it."""

    question: Question
    rounds: list[list[Cell]]
    results: SearchResults

    @property
    def cells(self) -> list[Cell]:
        return [cell for each in self.rounds for cell in each]

    @property
    def heads(self) -> set[int]:
        return {cell.model["heads"] for cell in self.cells}

    @property
    def answer(self) -> Answer:
        return answer(error_table(self.question.whole(), self.results.records.values()))


def play(error: Error, looks: int | Callable[[Cell], int], question: Question, effort: str = "normal") -> Played:
    """Ask a question; a model has the error that is said, and looks as if it had so many distinct heads.

    A model whose error is not finite diverged.
    """
    distinct = looks if callable(looks) else lambda cell: looks
    results = SearchResults(question, lambda cell: elimination(cell.model["heads"], distinct(cell)))
    asked = []
    for each in rounds(question, effort_of(effort), results):
        asked.append(list(each.cells))
        assert each.why
        for cell in each.cells:
            assert not cell.parent or cell.parent in results.records, "a parent is trained before its children"
        for cell in each.cells:
            nmse = error(cell)
            outcome = Outcome.FINISHED if math.isfinite(nmse) else Outcome.DIVERGED
            results.add_records([fabricated.record(cell, outcome, nmse=nmse, baseline=1.0)])
        assert len(asked) < 60, "it does not end"
    return Played(question, asked, results)
