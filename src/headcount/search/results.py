"""What has been trained of a question, as the rounds see it."""

import functools
import itertools
from collections.abc import Callable, Iterable

import numpy as np

from ..answer import Answer, answer, error_table
from ..answer.enough import CHANCE, examples_of, sampling_error
from ..answer.metric import metric_of
from ..answer.signals import SOLVED, has_learned
from ..models.base import HeadElimination
from ..store import Cell, Outcome, Record
from .question import Question

NEVER_STUCK = 1e-3
"""A model of at most this error did not get stuck, however small the best one's is."""

NEGLIGIBLE = 3e-3
"""Changes of the answers below this share of their variance count as this: no jump among them means anything."""
LARGE = 0.5
"""A jump is large if it is this share of the largest, in decades: a first head may know almost everything."""


class SearchResults:
    """The records that earlier rounds asked for. `eliminate` gives the elimination of a trained cell's heads.

    `at_rest`: no draw of the data was left, after the last of its rounds, with something to train.
    """

    def __init__(self, question: Question, eliminate: Callable[[Cell], HeadElimination]):
        self.question = question
        self.records: dict[str, Record] = {}
        self.at_rest = True
        self._eliminate = eliminate
        self._eliminations: dict[str, HeadElimination] = {}

    def add_records(self, records: Iterable[Record]) -> None:
        self.records |= {record.cell.key: record for record in records}

    def answer(self, draw: int) -> Answer:
        """Return the answer from one draw of the data."""
        own = self._of(draw)
        if not own:
            return Answer(sentence="no transition found: nothing was trained", reason="nothing was trained")
        return answer(error_table(self.question.whole(), own))

    def tried(self, heads: int, draw: int) -> list[Record]:
        """Return the finished records of a head count at the length that has the fewest."""
        return min((self._of(draw, heads, length) for length in self.question.lengths), key=len)

    def starts(self, heads: int, draw: int) -> int:
        """Count the random starts of a head count, at the length that has the fewest."""
        return min(
            sum(record.cell.start == "random" for record in self._of(draw, heads, length))
            for length in self.question.lengths
        )

    def differ(self, few: int, many: int, draw: int) -> bool:
        """Whether the larger of two head counts does better, at some length, by more than chance explains."""
        return any(self._differ(few, many, length, draw) for length in self.question.lengths)

    def _differ(self, few: int, many: int, length: int, draw: int) -> bool:
        best = [self._ranked(heads, length, draw)[:1] for heads in (few, many)]
        if not all(best):
            return True
        (less,), (more,) = best
        metric, noise = metric_of([less]), less.metrics.get("baseline_noise", 0.0)
        examples = examples_of(less.metrics.get("baseline", 1.0), noise, self.validation_examples)
        margin = np.hypot(*(sampling_error(metric, each.error, examples) for each in (less, more)))
        return bool(less.error - more.error > CHANCE * margin)

    @functools.cached_property
    def validation_examples(self) -> int:
        """How many validation examples there are, at the first length."""
        question = self.question
        task, train = question.task.at(question.lengths[0]), question.train
        return len(
            task.examples(train.train_examples or 1, train.validation_examples, train.data_seed).validation.targets
        )

    def descents(self, heads: int, above: int, draw: int) -> int:
        """Count the models of a head count that descend from `above` heads, at the length that has the fewest."""
        return min(
            sum(len(record.cell.removed) == above - heads for record in self._of(draw, heads, length))
            for length in self.question.lengths
        )

    def continuations(self, heads: int, draw: int) -> int:
        """Return how often the best models of a head count were trained on."""
        return max((self._generation(record.cell) for record in self._of(draw, heads)), default=0)

    def _generation(self, cell: Cell) -> int:
        if cell.start != "continued":
            return 0
        return 1 + self._generation(self.records[cell.parent].cell)

    def best(self, heads: int, draw: int, count: int) -> list[Cell]:
        """Return the cells of the smallest errors of a head count, `count` per length."""
        ranked = (self._ranked(heads, length, draw)[:count] for length in self.question.lengths)
        return [record.cell for best in ranked for record in best]

    def unstuck(self, heads: int, draw: int, factor: float) -> int:
        """Count the models of a head count that did not get stuck, at the length that has the fewest.

        One did if it ends with more than `factor` times the smallest error that any model of its length has.
        """
        counts = []
        for length in self.question.lengths:
            errors = [record.error for record in self._finished() if record.cell.length == length]
            limit = max(factor * min(errors, default=0.0), NEVER_STUCK)
            counts.append(sum(record.error <= limit for record in self._of(draw, heads, length)))
        return min(counts)

    def parents(self, heads: int, draw: int, count: int, factor: float) -> list[list[Cell]]:
        """Return per length the best cells of a head count; those that got stuck only where all did."""
        chosen = []
        for length in self.question.lengths:
            best = self._ranked(heads, length, draw)[:count]
            chosen.append([record.cell for record in best if record.error <= max(factor * best[0].error, NEVER_STUCK)])
        return [cells for cells in chosen if cells]

    def _ranked(self, heads: int, length: int, draw: int) -> list[Record]:
        """Sort by error; of equal ones the order is that of their keys, so that it never changes."""
        return sorted(self._of(draw, heads, length), key=lambda record: (record.error, record.cell.key))

    def learned_somewhere(self) -> bool:
        """Whether a model of some head count does better than a constant answer."""
        counts = {record.cell.model["heads"] for record in self._finished()}
        return any(self.learned(count, 0) for count in counts)

    def learned(self, heads: int, draw: int) -> bool:
        """Whether the best models of a head count do better than a constant answer, at some length."""
        return any(self._learned(cell) for cell in self.best(heads, draw, 1))

    def _learned(self, cell: Cell) -> bool:
        record = self.records[cell.key]
        return has_learned(record.error, record.metrics.get("baseline", 1.0), record.metrics.get("baseline_noise", 0.0))

    def steepest(self, draw: int) -> list[int]:
        """Return per length the head count at which the error falls most against the next smaller one tried."""
        chosen = []
        for length in self.question.lengths:
            best: dict[int, float] = {}
            for record in self._of(draw, length=length):
                heads = record.cell.model["heads"]
                best[heads] = min(best.get(heads, record.error), record.error)
            counts = sorted(best)
            falls = {more: best[less] / max(best[more], SOLVED) for less, more in itertools.pairwise(counts)}
            chosen += [max(falls, key=falls.__getitem__)] if falls else []
        return chosen

    def estimates(self, heads: int, draw: int) -> list[int]:
        """Estimate how many heads the task needs, from the best model of a head count, per length it learned."""
        return [heads_of(self.elimination(cell)) for cell in self.best(heads, draw, 1) if self._learned(cell)]

    def elimination(self, cell: Cell) -> HeadElimination:
        """Return the order in which a trained cell's heads are least missed."""
        if cell.key not in self._eliminations:
            self._eliminations[cell.key] = self._eliminate(cell)
        return self._eliminations[cell.key]

    def _finished(self) -> list[Record]:
        return [record for record in self.records.values() if record.outcome is Outcome.FINISHED]

    def _of(self, draw: int, heads: int | None = None, length: int | None = None) -> list[Record]:
        """Return the finished records of a draw of the data; of one head count, of one length."""
        return [
            record
            for record in self._finished()
            if record.cell.train.data_seed == self.question.data_seed(draw)
            and heads in (None, record.cell.model["heads"])
            and length in (None, record.cell.length)
        ]


def heads_of(elimination: HeadElimination) -> int:
    """Estimate how many heads a task needs, from the elimination of the heads of a model with more than enough.

    As long as heads repeat each other the answers hardly change; when D are left, the next removal changes them by what
    that head alone knew. The estimate is the number of heads before the first large jump of the change. Without any
    head the answers are constant: a change of 1.
    """
    changes = np.array([0.0, *elimination.distances, 1.0])
    jumps = np.diff(np.log(np.maximum(changes, NEGLIGIBLE)))
    return len(changes) - 1 - int(np.argmax(jumps >= LARGE * jumps.max()))
