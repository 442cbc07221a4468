"""What asking a question may cost, before anything is trained."""

from dataclasses import replace
from typing import NamedTuple

from ..engine import Hardware, Sweep, TrainingPlan, plan_sweep
from ..recipes import SEEDS
from ..store import Cell
from .levels import SearchEffort
from .question import Question
from .rounds import OTHER_SEEDS, SLOWER, TOPS, first_counts

NEAR = 3
"""Head counts around an estimate."""


class Costs(NamedTuple):
    """The plan of an easy task, which one head solves, and of a hard one, for which everything is tried."""

    least: TrainingPlan
    most: TrainingPlan


def costs(question: Question, effort: SearchEffort, machine: Hardware | None = None) -> Costs:
    """Return the range of what a question costs on a machine, this one where None. The question is left as it is."""
    cells_of = _cells_by_descent if question.removes_heads else _cells_by_seeds

    def plan(everything: bool) -> TrainingPlan:
        blank = replace(question, cells={}, taken={})
        cells = {cell.key: cell for cell in cells_of(blank, effort, everything)}
        places = {key: (place,) for place, key in enumerate(cells)}
        experiment = replace(question.experiment, axes=("cell",), places=places)
        sweep = Sweep(experiment=experiment, tasks=(question.task,), cells=tuple(cells.values()))
        return plan_sweep(sweep, machine=machine)

    return Costs(plan(False), plan(True))


def _cells_by_seeds(question: Question, effort: SearchEffort, everything: bool) -> list[Cell]:
    if everything:
        return question.random(question.heads, range(effort.more_seeds))
    if question.task.endless:
        return question.random(question.heads, range(min(SEEDS, effort.more_seeds)))
    return question.random(first_counts(question.heads), range(OTHER_SEEDS))


def _cells_by_descent(question: Question, effort: SearchEffort, everything: bool) -> list[Cell]:
    """Return the cells of an easy task, solved by one head, or of a hard one: every head count up to the most."""
    first = question.heads[-1]
    tops = [first, *(count for count in TOPS if first < count <= question.most)] if everything else [first]
    slower = 1 + len(SLOWER) * everything
    cells = question.random(question.heads[:1], range(OTHER_SEEDS))
    for top in tops:
        cells += question.random([top], range(effort.top_seeds * slower))
    cells += _below(question, effort, tops[-1], 0, everything)
    for draw in range(1, effort.draws if question.task.resamples else 1):
        top = tops[-1] if everything else min(first, TOPS[0])
        cells += question.random([top], range(OTHER_SEEDS * slower), draw=draw)
        cells += _below(question, effort, top, draw, everything)
    return cells


def _below(question: Question, effort: SearchEffort, top: int, draw: int, everything: bool) -> list[Cell]:
    """Return what descends from the largest models of a draw, what is trained on, and random starts near the answer."""
    smaller = question.between(1, top - 1)
    if not smaller:
        return []
    parents = question.random([top], range(effort.parents), draw=draw)
    counts = smaller if everything else smaller[:2]
    cells = [question.descended(parent, range(top - count)) for parent in parents for count in counts]
    if everything:
        near = smaller[-NEAR:]  # the costliest
        cells += question.random(near, range(2 * effort.low_seeds), draw=draw)
        for parent in parents:
            nearest = question.descended(parent, range(top - near[-1]))
            cells += _copies(nearest, NEAR * effort.children * (1 + effort.continuations))
            cells += _copies(question.continued(parent), (1 + NEAR) * effort.continuations)
    return cells


def _copies(cell: Cell, count: int) -> list[Cell]:
    """Return cells that cost the same."""
    return [replace(cell, seed=cell.seed + 1 + number) for number in range(count)]
