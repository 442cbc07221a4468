"""What has been trained of a question, as the rounds see it."""

from collections.abc import Callable, Iterable

import numpy as np

from ..analysis import Answer, answer, error_table
from ..analysis.signals import unlearned_above
from ..models.base import Elimination
from ..store import Cell, Outcome, Record
from .estimate import heads_of
from .question import Question


class Results:
    """The records that earlier rounds asked for. `eliminate` gives the elimination of a trained cell's heads."""

    def __init__(self, question: Question, eliminate: Callable[[Cell], Elimination]):
        self.question = question
        self.records: dict[str, Record] = {}
        self._eliminate = eliminate
        self._eliminations: dict[str, Elimination] = {}

    def add(self, records: Iterable[Record]) -> None:
        self.records |= {record.cell.key: record for record in records}

    def answer(self, draw: int) -> Answer:
        """The answer from one draw of the data."""
        own = self._of(draw=draw)
        if not own:
            return Answer(sentence="no transition found: nothing was trained", reason="nothing was trained")
        return answer(error_table(self.question.whole(), own))

    def tried(self, heads: int, draw: int) -> list[Record]:
        """The finished records of a head count at the length that has the fewest."""
        by_length = [
            [record for record in self._of(heads=heads, draw=draw) if record.cell.length == length]
            for length in self.question.lengths
        ]
        return min(by_length, key=len)

    def descents(self, heads: int, above: int, draw: int) -> int:
        """How many models of a head count descend from one of `above` heads, at the length that has the fewest."""
        children = [record for record in self._of(heads=heads, draw=draw) if len(record.cell.removed) == above - heads]
        return min(sum(record.cell.length == length for record in children) for length in self.question.lengths)

    def continuations(self, heads: int, draw: int) -> int:
        """How often the best models of a head count were trained on."""
        return max((self._generation(record.cell) for record in self._of(heads=heads, draw=draw)), default=0)

    def _generation(self, cell: Cell) -> int:
        if cell.start != "continued":
            return 0
        return 1 + self._generation(self.records[cell.parent].cell)

    def best(self, heads: int, draw: int, count: int) -> list[Cell]:
        """The cells of the smallest errors of a head count, so many per length."""
        chosen = []
        for length in self.question.lengths:
            there = [record for record in self._of(heads=heads, draw=draw) if record.cell.length == length]
            chosen += sorted(there, key=lambda record: (record.error, record.cell.key))[:count]
        return [record.cell for record in chosen]

    def unstuck(self, heads: int, draw: int, factor: float) -> int:
        """How many models of a head count end within a factor of the best one, at the length that has the fewest."""
        counts = []
        for length in self.question.lengths:
            errors = [record.error for record in self._of(heads=heads, draw=draw) if record.cell.length == length]
            counts.append(sum(error <= factor * min(errors) for error in errors))
        return min(counts)

    def learned(self, heads: int, draw: int) -> bool:
        """Whether the best models of a head count do better than a constant answer, at some length."""
        for cell in self.best(heads, draw, 1):
            metrics = self.records[cell.key].metrics
            baseline, noise = metrics.get("baseline", 1.0), metrics.get("baseline_noise", 0.0)
            if self.records[cell.key].error <= unlearned_above(np.array([noise / baseline]))[0] * baseline:
                return True
        return False

    def estimates(self, heads: int, draw: int) -> list[int]:
        """How many heads the task looks like it needs, per length, from the best model of a head count."""
        return [heads_of(self.elimination(cell)) for cell in self.best(heads, draw, 1)]

    def elimination(self, cell: Cell) -> Elimination:
        """The order in which a trained cell's heads are least missed."""
        if cell.key not in self._eliminations:
            self._eliminations[cell.key] = self._eliminate(cell)
        return self._eliminations[cell.key]

    def _of(self, *, draw: int, heads: int | None = None) -> list[Record]:
        seed = self.question.draw(draw)
        return [
            record
            for record in self.records.values()
            if record.outcome is Outcome.FINISHED
            and record.cell.train.data_seed == seed
            and heads in (None, record.cell.model["heads"])
        ]
