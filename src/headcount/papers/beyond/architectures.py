"""Other architectures as controls: what do heads buy that pooling, recurrence and convolutions do not?

Neither paper compares with another architecture. Here every model of a task has the same number of parameters: heads
share one width (32 numbers per token, of the nearest neighbour 8), and the width of a control is chosen to match.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...answer.bootstrap import MIN_SEEDS
from ...report.chart import HeatMap
from ...report.document import Grid
from ..base import Effort, Part, Results, Scale, Study
from ..claims.architectures import (
    CLEARLY,
    average_claim,
    fewer_heads_claim,
    mean_claim,
    query_claim,
    recurrent_claim,
    retrieval_claim,
    value_claim,
)
from ..head_count.tables import paper_task

if TYPE_CHECKING:
    from ...models import AbstractSpec
    from ...tasks import AbstractTask

ATTENTION = "attention"
TOTAL_DIM, QUERY_DIM = 32, 8
"""Width that heads share: the papers' 32 of four heads of 8, and that of a point on the sphere."""
MATCHED_HEADS = 4
"""The heads of the transformer that controls are matched to; at equal width all head counts have its parameters."""
SMALLEST = 1e-12
"""Errors below this are as good as none, and can be divided by."""
HALVES = ((0.0, 0.5), (0.5, 1.0), (0.0, 0.5), (0.5, 1.0))


def _task(name: str, length: int) -> "AbstractTask":
    from ... import tasks

    makers: dict[str, Callable[[], AbstractTask]] = {
        "average": lambda: tasks.average(length=length),
        "maxima": lambda: paper_task().at(length),
        "basins": lambda: tasks.quadratic_basins(length=length, intrinsic_dim=4, dim=4),
        "halves": lambda: tasks.sum_of_maxima(length=length, windows=HALVES),
        "value": lambda: tasks.value_at_maximum(length=length),
        "nearest": lambda: tasks.nearest_neighbour(length=length, dim=QUERY_DIM),
    }
    return makers[name]()


TASKS = ("average", "maxima", "basins", "halves", "value", "nearest")
CONTROLS: dict[str, dict[str, Any]] = {
    "max pool": {"kind": "pooling", "pool": "max"},
    "mean pool": {"kind": "pooling", "pool": "mean"},
    "asked max pool": {"kind": "pooling", "pool": "max", "query_at": "tokens"},
    "GRU": {"kind": "recurrent"},
    "CNN": {"kind": "convolution"},
}
"""Fields of each control. "asked max pool" is max pooling whose token nets read the query, too."""
ASKED = "asked max pool"
QUERY_TASK = "nearest"


def _parts(effort: Effort) -> Iterable[Part]:
    for name in effort.axes["task"]:
        for architecture in (ATTENTION, *controls_of(name)):
            task = partial(_task, name, effort.lengths[0])
            heads = effort.axes["heads"] if architecture == ATTENTION else (MATCHED_HEADS,)
            yield Part(
                task=task,
                model=partial(_model, task, architecture),
                axes=effort.over(heads=heads, learning_rate=effort.axes["learning_rate"]),
                at={"task": name, "architecture": architecture},
                train=replace(effort.train, train_examples=0),
            )


def _report(results: Results) -> dict[str, Any]:
    table = results.table()
    best = by_column(table.reduced("seed"))
    judged = by_column(_with_seeds(table).reduced("seed"))
    rules = (
        retrieval_claim, fewer_heads_claim, mean_claim, recurrent_claim, average_claim, value_claim, query_claim,
    )  # fmt: skip
    return {
        "headline": _headline(best),
        "claims": tuple(rule(judged) for rule in rules),
        "grids": (_grid(best, by_column(table.reduced("seed", "median"))),),
        "charts": (_map(best, len(table.values("seed"))),),
    }


NOTES = (
    "Tasks, 16 tokens each: the mean of one direction; the sum of four maxima of the first paper; the sum of four "
    "minima of a distance; four maxima, two over each half of the sequence; the value along one direction of the token "
    "that is largest along another; of 15 points on a sphere the one nearest to a query.",
    "Architectures: attention with that many heads; max and mean pool: a net for every token, its features pooled over "
    "tokens, a readout net (mean: DeepSets); asked max pool: the same with the query read by every token's net; GRU: "
    "its last state; CNN: three dilated residual convolutions of three tokens, their maximum and mean.",
    "Every model of a task has the same number of parameters, within 3 per cent: about 6,400, with positions 6,900, "
    "of the nearest neighbour 4,600. Heads share one width, so that more heads are narrower heads.",
    "Not covered: other sizes, depths and lengths, training tuned per architecture, state-space models, bidirectional "
    "or stacked GRUs, real data.",
    "All of it is ours; neither paper has a control of another architecture. One training for all: Adam, a warm-up, "
    "then a cosine to zero, batch 64, fresh examples every step, tokens and targets standardised but for the encoder "
    "of the nearest neighbour, whose points lie on a sphere. Of several learning rates the best counts for each seed; "
    "0.01 was chosen for attention. Positions, of the halves, are added to attention's embedding, and concatenated to "
    "the tokens of controls.",
)


def controls_of(name: str) -> tuple[str, ...]:
    """The controls of a task: that which asks tokens has no use without a query."""
    return tuple(each for each in CONTROLS if name == QUERY_TASK or each != ASKED)


def _model(task: Callable[[], "AbstractTask"], architecture: str, heads: int) -> "AbstractSpec":
    """Heads that share one width (encoders where a query is answered), or a control with as many parameters."""
    from ... import recipes
    from ...models import KINDS

    made = task()
    attention = recipes.model_for(made, total_dim=TOTAL_DIM if made.answered_at == "sequence" else QUERY_DIM)(heads)
    if architecture == ATTENTION:
        return attention
    fields = dict(CONTROLS[architecture])
    spec_class: Any = KINDS[fields.pop("kind")]
    return spec_class.matched(attention, length=made.length, dim=made.dim, outputs=made.outputs, **fields)


def _with_seeds(table: ErrorTable) -> ErrorTable:
    """The table less the models with too few finished seeds to judge by."""
    if not table.has("seed"):
        return replace(table, errors=np.full_like(table.errors, np.nan))
    finished = np.isfinite(table.errors).sum(axis=table.index("seed"), keepdims=True)
    return replace(table, errors=np.where(finished >= MIN_SEEDS, table.errors, np.nan))


def by_column(table: ErrorTable) -> dict[str, dict[str, float]]:
    """The errors by task, and by column: "4 heads", or the name of a control; the worst length counts."""
    columns: dict[str, dict[str, float]] = {name: {} for name in TASKS}
    for at, error in table.cells():
        if np.isfinite(error):
            heads, architecture = at["heads"], at["architecture"]
            name = count_of_heads(heads) if architecture == ATTENTION else architecture
            columns[at["task"]][name] = max(error, columns[at["task"]].get(name, SMALLEST))
    return {task: row for task, row in columns.items() if row}


def _columns(best: dict[str, dict[str, float]]) -> tuple[str, ...]:
    """Head counts by size, then the controls."""
    there = {name for row in best.values() for name in row}
    heads = sorted((name for name in there if name.endswith(("head", "heads"))), key=lambda name: int(name.split()[0]))
    return (*heads, *sorted(there - set(heads), key=lambda name: [*CONTROLS, name].index(name)))


def _headline(best: dict[str, dict[str, float]]) -> str:
    """Every architecture with the tasks on which none is clearly ahead of it."""
    near: dict[str, list[str]] = {}
    for task, row in best.items():
        ahead = [name for name in _columns(best) if name in row and row[name] < CLEARLY * min(row.values())]
        for name in dict.fromkeys(name if name in CONTROLS else ATTENTION for name in ahead):
            near.setdefault(name, []).append(task)
    listed = "; ".join(f"{name} on {', '.join(tasks)}" for name, tasks in near.items())
    return f"Within a factor of two of the least error: {listed}"


def _grid(best: dict[str, dict[str, float]], median: dict[str, dict[str, float]]) -> Grid:
    def cell(task: str, name: str) -> str:
        return f"{best[task][name]:.1e} ({median[task][name]:.1e})" if name in best[task] else "-"

    rows = tuple((name, *(cell(task, name) for task in best)) for name in _columns(best))
    return Grid(title="smallest error over seeds (median), at equal parameters", columns=("", *best), rows=rows)


def _map(best: dict[str, dict[str, float]], seeds: int) -> HeatMap:
    architectures, tasks = tuple(reversed(_columns(best))), tuple(best)
    return HeatMap(
        name="task-by-architecture",
        title="Error by task and architecture",
        rows=architectures,
        columns=tasks,
        row_label="architecture",
        column_label="task",
        values=np.array([[best[task].get(name, np.nan) for task in tasks] for name in architectures]),
        unit="NMSE",
        caption=f"best of {seeds} {'seed' if seeds == 1 else 'seeds'}; a task's models have equally many parameters",
    )


def _effort(
    seeds: int,
    steps: int,
    tasks: tuple[str, ...] = TASKS,
    heads: tuple[int, ...] = (1, 2, 4, 8),
    learning_rates: tuple[float, ...] = (0.01,),
) -> Effort:
    axes = {"task": tasks, "heads": heads, "learning_rate": learning_rates}
    return Effort(lengths=(16,), seeds=seeds, steps=steps, axes=axes)


STUDY = Study(
    name="architectures",
    title="Other architectures",
    asks="What do heads buy that pooling, a GRU or a CNN of as many parameters does not?",
    parts=_parts,
    report=_report,
    notes=NOTES,
    efforts={
        Scale.SMOKE: _effort(1, 300, tasks=("maxima", "value"), heads=(1, 4)),
        Scale.LAPTOP: _effort(2, 3000),
        Scale.PAPER: _effort(8, 10_000, learning_rates=(0.003, 0.01, 0.03)),
    },
)
