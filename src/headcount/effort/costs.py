"""What asking a question may cost, before anything is trained."""

from typing import NamedTuple

from ..engine import Plan, plan_sweep
from ..store import Cell
from .levels import Effort
from .question import Question
from .rounds import OTHER_SEEDS, TOPS


class Costs(NamedTuple):
    """The plan if the answer comes at once, and if everything has to be tried."""

    least: Plan
    most: Plan


def costs(question: Question, effort: Effort) -> Costs:
    """The range of what a question costs. The question itself is left as it is."""
    least, most = (_planned(_blank(question), effort, everything) for everything in (False, True))
    return Costs(least, most)


def _blank(question: Question) -> Question:
    return Question(
        task=question.task,
        model=question.model,
        train=question.train,
        heads=question.heads,
        most=question.most,
        lengths=question.lengths,
    )


def _planned(question: Question, effort: Effort, everything: bool) -> Plan:
    if question.removes_heads:
        cells = _from_above(question, effort, everything)
    else:
        seeds = effort.more_seeds if everything else min(4, effort.more_seeds)
        cells = question.random(question.heads, range(seeds))
    return plan_sweep(question.sweep_of(cells))


def _from_above(question: Question, effort: Effort, everything: bool) -> list[Cell]:
    """At least: the largest models, and what descends from them around an answer. At most: every head count."""
    tops = [question.heads[-1], *(count for count in TOPS if question.heads[-1] < count <= question.most)]
    cells = []
    for draw in range(effort.draws if question.task.resamples else 1):
        for top in tops if everything and draw == 0 else tops[:1]:
            seeds = effort.top_seeds if draw == 0 else OTHER_SEEDS
            largest = question.random([top], range(seeds), draw=draw)
            cells += largest
        counts = question.between(1, top - 1) if everything and draw == 0 else question.between(1, top - 1)[:3]
        per_length = [cell for cell in largest if cell.seed < effort.parents]
        for parent in per_length:
            cells += [question.descended(parent, range(top - count)) for count in counts]
            cells += [question.continued(parent)] * (everything and draw == 0)
        cells += question.random(counts[:1], range(effort.low_seeds if draw == 0 else OTHER_SEEDS), draw=draw)
    return cells
