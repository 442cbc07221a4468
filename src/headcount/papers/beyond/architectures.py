"""Other architectures as controls: what do heads buy that pooling, recurrence and convolutions do not?

Neither paper compares with another architecture. Here every model of a task has the same number of parameters: heads
share one width (32 numbers per token, of the nearest neighbour 8), and the width of a control is chosen to match.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...answer.bootstrap import MIN_SEEDS
from ...report.chart import HeatMap
from ...report.document import Grid
from ..base import AbstractSpec, AbstractTask, Part, Scale, Study, StudyEffort, StudyResults, effort_over
from ..charts import grid_of
from ..claims.judge import Case, Cases, claims_that
from ..head_count.tables import TASK_SEED

ATTENTION = "attention"
TOTAL_DIM, QUERY_DIM = 32, 8
"""Width that heads share: the papers' 32 of four heads of 8, and that of a point on the sphere."""
MATCHED_HEADS = 4
"""The heads of the transformer that controls are matched to; at equal width all head counts have its parameters."""
SMALLEST = 1e-12
"""Errors below this are as good as none, and can be divided by."""
HALVES = ((0.0, 0.5), (0.5, 1.0), (0.0, 0.5), (0.5, 1.0))


HEADS = (1, 2, 4, 8)
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "average": ("average", {}),
    "maxima": ("sum_of_maxima", {"intrinsic_dim": 4, "dim": 4, "directions": "gaussian", "task_seed": TASK_SEED}),
    "basins": ("quadratic_basins", {"intrinsic_dim": 4, "dim": 4}),
    "halves": ("sum_of_maxima", {"windows": HALVES}),
    "value": ("value_at_maximum", {}),
    "nearest": ("nearest_neighbour", {"dim": QUERY_DIM}),
}
"""The preset of each task, and its options."""
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
Errors = dict[str, dict[str, float]]
"""Errors by task, and by column: "4 heads", or the name of a control."""
CLEARLY = 2.0
"""A smaller ratio of two errors decides nothing: of two equal architectures one is always ahead."""
RETRIEVALS = ("maxima", "basins", "halves")
NEEDED = 4
"""Retrievals of these tasks."""


MOST_HEADS = 64
Group = tuple[str, tuple[str, ...]]
"""A name, and the columns of which the one with the smallest error counts."""


def _head_columns(first: int, last: int) -> tuple[str, ...]:
    return tuple(map(count_of_heads, range(first, last)))


MAX_POOL, MEAN_POOL, GRU = ((name, (name,)) for name in ("max pool", "mean pool", "GRU"))
ANY_HEADS: Group = ("attention", _head_columns(1, MOST_HEADS))
BEST_CONTROL: Group = ("the best control", tuple(CONTROLS))


@claims_that("{statement}", f"no such models have {MIN_SEEDS} finished seeds; --scale laptop trains them")
def errs_more(
    best: Errors,
    statement: str,
    tasks: tuple[str, ...],
    one: Group,
    other: Group,
    at_least: float = CLEARLY,
    below: float = 1.0,
) -> Cases:
    """On all tasks `one` errs `at_least` times as much as `other`; refuted where the ratio is `below`."""
    for task in tasks:
        row, words, errors = best.get(task, {}), [], []
        for name, columns in (one, other):
            column = min((each for each in row if each in columns), key=row.__getitem__, default="")
            errors.append(row.get(column, np.nan))
            words.append(f"{name} {errors[-1]:.2g}{'' if column in name else f' ({column})'}")
        ratio = errors[0] / errors[1]
        measured = f"{task}: {', '.join(words)}" if np.isfinite(ratio) else ""
        yield Case(measured, ratio >= at_least, ratio < below)


COMPARISONS: tuple[tuple[Any, ...], ...] = (
    (
        "Max pooling solves D retrievals as well as D heads or more do: within a factor of two, or better.",
        RETRIEVALS,
        ("D heads or more", _head_columns(NEEDED, MOST_HEADS)),
        MAX_POOL,
        1 / CLEARLY,
        1 / CLEARLY,
    ),
    # What too few heads cannot retrieve, a maximum per feature does.
    (
        "Fewer than D heads do worse on D retrievals than max pooling.",
        RETRIEVALS,
        ("fewer than D heads", _head_columns(1, NEEDED)),
        MAX_POOL,
    ),
    # DeepSets has the parameters, and not the maximum.
    ("Mean pooling (DeepSets) does worse on D retrievals than max pooling.", RETRIEVALS, MEAN_POOL, MAX_POOL),
    # A state has to carry every maximum so far; a CNN whose channels are pooled by a maximum does not.
    ("A GRU does worse on D retrievals than max pooling.", RETRIEVALS, GRU, MAX_POOL),
    # Which pool a task needs has to be known; equal weights are as near to a head as one weight of 1.
    (
        "Max pooling does worse on an average than attention, which has no pool to be chosen.",
        ("average",),
        MAX_POOL,
        ANY_HEADS,
    ),
    # A head scores one feature and reads another; a maximum reads what it scores.
    (
        "To read one feature where another is largest, attention does better than every control.",
        ("value",),
        BEST_CONTROL,
        ANY_HEADS,
    ),
    # The sequence itself says which token to look for.
    (
        "To read the token nearest to a query, attention does better than every control.",
        (QUERY_TASK,),
        BEST_CONTROL,
        ANY_HEADS,
    ),
)
"""Arguments of `errs_more`."""


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    for name in effort.axes["task"]:
        for architecture in (ATTENTION, *controls_of(name)):
            task = partial(_task, name, effort.lengths[0])
            heads = effort.axes["heads"] if architecture == ATTENTION else (MATCHED_HEADS,)
            yield Part(
                task=task,
                model=partial(_matched_model, task, architecture),
                axes=effort.over(heads=heads, learning_rate=effort.axes["learning_rate"]),
                at={"task": name, "architecture": architecture},
                train=replace(effort.train, train_examples=0),
            )


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table()
    best = by_column(table.reduced("seed"))
    judged = by_column(_with_seeds(table).reduced("seed"))
    return {
        "headline": _architectures_headline(best),
        "claims": tuple(errs_more(judged, *each) for each in COMPARISONS),
        "grids": (_architectures_grid(best, by_column(table.reduced("seed", "median"))),),
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
    return tuple(each for each in CONTROLS if name == QUERY_TASK or each != ASKED)


def _matched_model(task: Callable[[], AbstractTask], architecture: str, heads: int) -> AbstractSpec:
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


def _task(name: str, length: int) -> AbstractTask:
    from ... import tasks

    preset, options = TASKS[name]
    return getattr(tasks, preset)(length=length, **options)


def _with_seeds(table: ErrorTable) -> ErrorTable:
    """The table less the models with too few finished seeds to judge by."""
    finished = np.isfinite(table.errors).sum(axis=table.index("seed"), keepdims=True)
    return replace(table, errors=np.where(finished >= MIN_SEEDS, table.errors, np.nan))


def by_column(table: ErrorTable) -> Errors:
    """The errors by task and column; the worst length counts."""
    columns: Errors = {name: {} for name in TASKS}
    for at, error in table.cells():
        if np.isfinite(error):
            heads, architecture = at["heads"], at["architecture"]
            name = count_of_heads(heads) if architecture == ATTENTION else architecture
            columns[at["task"]][name] = max(error, columns[at["task"]].get(name, SMALLEST))
    return {task: row for task, row in columns.items() if row}


def _columns(best: Errors) -> tuple[str, ...]:
    there = {name for row in best.values() for name in row}
    heads = sorted((name for name in there if name.endswith(("head", "heads"))), key=lambda name: int(name.split()[0]))
    return (*heads, *sorted(there - set(heads), key=lambda name: [*CONTROLS, name].index(name)))


def _architectures_headline(best: Errors) -> str:
    """Every architecture with the tasks on which none is clearly ahead of it."""
    near: dict[str, list[str]] = {}
    for task, row in best.items():
        ahead = [name for name in _columns(best) if name in row and row[name] < CLEARLY * min(row.values())]
        for name in dict.fromkeys(name if name in CONTROLS else ATTENTION for name in ahead):
            near.setdefault(name, []).append(task)
    listed = "; ".join(f"{name} on {', '.join(tasks)}" for name, tasks in near.items())
    return f"Within a factor of two of the least error: {listed}"


def _architectures_grid(best: Errors, median: Errors) -> Grid:
    def cell(task: str, name: str) -> str:
        return f"{best[task][name]:.1e} ({median[task][name]:.1e})" if name in best[task] else "-"

    rows = ((name, *(cell(task, name) for task in best)) for name in _columns(best))
    return grid_of("smallest error over seeds (median), at equal parameters", ("", *best), rows)


def _map(best: Errors, seeds: int) -> HeatMap:
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


STUDY = Study(
    name="architectures",
    title="Other architectures",
    asks="What do heads buy that pooling, a GRU or a CNN of as many parameters does not?",
    parts=_swept_parts,
    report=_document_fields,
    notes=NOTES,
    efforts={
        Scale.SMOKE: effort_over((16,), 1, 300, task=("maxima", "value"), heads=(1, 4), learning_rate=(0.01,)),
        Scale.LAPTOP: effort_over((16,), 2, 3000, task=tuple(TASKS), heads=HEADS, learning_rate=(0.01,)),
        Scale.PAPER: effort_over((16,), 8, 10_000, task=tuple(TASKS), heads=HEADS, learning_rate=(0.003, 0.01, 0.03)),
    },
)
