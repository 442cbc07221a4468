"""Other architectures as controls: what do heads buy that pooling, recurrence and convolutions do not?

Neither paper compares with another architecture. Here every model of a task has the same number of parameters: heads
share one width (32 numbers per token, of the nearest neighbour 8), and the width of a control is chosen to match.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer import ErrorTable, count_of_heads, error_table
from ...answer.bootstrap import MIN_SEEDS
from ...report.chart import HeatMap
from ...report.section import Grid, Section
from ...store import Experiment, Record, TrainSpec
from ..base import AbstractStudy, Effort, Scale
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
from ..head_count.table import paper_task

if TYPE_CHECKING:
    from ...engine import Sweep
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


def _tasks() -> dict[str, Callable[[int], "AbstractTask"]]:
    """By name and length."""
    from ... import tasks

    return {
        "average": lambda length: tasks.average(length=length),
        "maxima": lambda length: paper_task(4).at(length),
        "basins": lambda length: tasks.quadratic_basins(length=length, intrinsic_dim=4, dim=4),
        "halves": lambda length: tasks.sum_of_maxima(length=length, windows=HALVES),
        "value": lambda length: tasks.value_at_maximum(length=length),
        "nearest": lambda length: tasks.nearest_neighbour(length=length, dim=QUERY_DIM),
    }


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


@dataclass(frozen=True, kw_only=True)
class ArchitectureEffort(Effort):
    """How much of the study is done: which tasks, which head counts, and which learning rates, the best of which counts
    for each seed."""

    tasks: tuple[str, ...] = TASKS
    heads: tuple[int, ...] = (1, 2, 4, 8)
    learning_rates: tuple[float, ...] = (0.01,)

    @property
    def train(self) -> TrainSpec:
        """Fresh examples every step, for all architectures: what they can do, not how they overfit."""
        return replace(super().train, train_examples=0)


@dataclass(frozen=True, kw_only=True)
class ArchitectureStudy(AbstractStudy):
    """Every task by attention at several head counts, and by every control."""

    efforts: dict[Scale, ArchitectureEffort]  # type: ignore[assignment]

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import joined

        effort = self.efforts[scale]
        return joined(
            self._part(scale, name, architecture)
            for name in effort.tasks
            for architecture in (ATTENTION, *controls_of(name))
        )

    def _part(self, scale: Scale, name: str, architecture: str) -> "Sweep":
        from ...engine import sweep

        effort = self.efforts[scale]
        task = _tasks()[name](effort.lengths[0])
        axes = {
            "heads": effort.heads if architecture == ATTENTION else (MATCHED_HEADS,),
            "length": effort.lengths,
            "learning_rate": effort.learning_rates,
            "seed": range(effort.seeds),
        }
        at = {"task": name, "architecture": architecture}
        model = attention(task) if architecture == ATTENTION else control(task, architecture)
        return sweep(task, axes=axes, model=model, train=effort.train, at=at, **self.named(scale))

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records)
        best = by_column(table.reduced("seed"))
        judged = by_column(_with_seeds(table).reduced("seed"))
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(best),
            claims=(
                retrieval_claim(judged),
                fewer_heads_claim(judged),
                mean_claim(judged),
                recurrent_claim(judged),
                average_claim(judged),
                value_claim(judged),
                query_claim(judged),
            ),
            grids=(_grid(best, by_column(table.reduced("seed", "median"))),),
            charts=(_map(best, len(table.values("seed"))),),
            notes=(*NOTES, *self.choices(scale)),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        if scale is Scale.PAPER:
            return OUR_CHOICES
        paper = self.efforts[Scale.PAPER]
        smaller = (
            f"At {scale} scale: {len(effort.tasks)} tasks, {effort.seeds} seed(s), {effort.steps:,} steps, "
            f"{_rates(effort)}. At paper scale: {len(paper.tasks)} tasks, {paper.seeds} seeds, {paper.steps:,} steps, "
            f"{_rates(paper)}."
        )
        return (smaller, *OUR_CHOICES)


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
)
OUR_CHOICES = (
    "All of it is ours; neither paper has a control of another architecture. One training for all: Adam, a warm-up, "
    "then a cosine to zero, batch 64, fresh examples every step, tokens and targets standardised but for the encoder "
    "of the nearest neighbour, whose points lie on a sphere. Of several learning rates the best counts for each seed; "
    "0.01 was chosen for attention. Positions, of the halves, are added to attention's embedding, and concatenated to "
    "the tokens of controls.",
)


def _rates(effort: ArchitectureEffort) -> str:
    return f"peak learning rate {' or '.join(map(str, effort.learning_rates))}"


def controls_of(name: str) -> tuple[str, ...]:
    """The controls of a task: that which asks tokens has no use without a query."""
    return tuple(each for each in CONTROLS if name == QUERY_TASK or each != ASKED)


def attention(task: "AbstractTask") -> Callable[[int], "AbstractSpec"]:
    """Heads that share one width: class-token models, or encoders where a query is answered."""
    from ... import recipes

    return recipes.model_for(task, total_dim=TOTAL_DIM if task.answered_at == "sequence" else QUERY_DIM)


def control(task: "AbstractTask", architecture: str) -> Callable[[int], "AbstractSpec"]:
    """Controls with as many parameters as attention has."""
    from ...models import KINDS

    fields = dict(CONTROLS[architecture])
    spec_class: Any = KINDS[fields.pop("kind")]
    sizes = {"length": task.length, "dim": task.dim, "outputs": task.outputs}
    return lambda heads: spec_class.matched(attention(task)(heads), **sizes, **fields)


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


STUDY = ArchitectureStudy(
    name="architectures",
    title="Other architectures",
    asks="What do heads buy that pooling, a GRU or a CNN of as many parameters does not?",
    efforts={
        Scale.SMOKE: ArchitectureEffort(lengths=(16,), seeds=1, steps=300, tasks=("maxima", "value"), heads=(1, 4)),
        Scale.LAPTOP: ArchitectureEffort(lengths=(16,), seeds=2, steps=3000),
        Scale.PAPER: ArchitectureEffort(lengths=(16,), seeds=8, steps=10_000, learning_rates=(0.003, 0.01, 0.03)),
    },
)
