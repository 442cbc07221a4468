"""Training against the floor of all hard heads: sums of three maxima on an alphabet of five symbols.

The floors are those of `theory.alphabet_floor`, by enumeration of all orders; tests compute them again.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Part, Scale, Study, StudyEffort, StudyResults, effort_over
from ..charts import chart_along, grid_of, line_of
from ..claims.judge import Case, Cases, claims_that, exactly
from ..head_count.tables import class_token

SYMBOLS, INTRINSIC_DIM, TASK_SEED = 5, 3, 0
HEADS = (1, 2, 3, 4)
SOFT, SHARP = 1.0, 1000.0
"""beta of the scores: ordinary attention, and attention that is nearly hard from the start."""
FLOORS = {8: (0.430410, 0.035009, 0.0, 0.0), 16: (0.255793, 0.086548, 0.0, 0.0)}
"""Least NMSE of any 1, 2, 3, 4 hard heads, by length."""
SAMPLING = {8: 1e-3, 16: 0.2}
"""Share by which a measured error may lie below the exact one, by length: rounding, and drawn sequences."""
NEAR = 1.1
"""Times the floor that still counts as reaching it."""
EXAMPLES = 20_000
VALIDATION = SYMBOLS**8
"""Every sequence of 8 tokens, so that errors are exact: rare sequences decide, and 20,000 drawn ones miss them. There
are too many of 16 tokens; as many are drawn."""
OF_SHARP, OF_SOFT = (f"best of seeds, beta = {beta:g}: " for beta in (SHARP, SOFT))
LINES = {SHARP: f"nearly hard (beta = {SHARP:g})", SOFT: f"soft (beta = {SOFT:g})"}


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    from ...tasks import AlphabetMaxima

    length = effort.lengths[0]
    task = partial(AlphabetMaxima, length=length, intrinsic_dim=INTRINSIC_DIM, symbols=SYMBOLS, task_seed=TASK_SEED)
    train = replace(effort.train, train_examples=EXAMPLES, validation_examples=VALIDATION)
    model = partial(class_token, head_dim=8, hidden=32)
    yield Part(task=task, model=model, axes=effort.over(heads=HEADS, beta=(SOFT, SHARP)), train=train)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table().ordered("heads", "beta", "length", "seed")
    claims = (_never_below(table), _reached(table), _soft_is_below(table))
    return {
        "headline": f"{claims[0].statement.rstrip('.')}: {claims[0].verdict.value}",
        "claims": claims,
        "grids": (_floors_grid(table),),
        "charts": tuple(_floors_chart(table, length) for length in table.trimmed().values("length")),
    }


def _finished_floors(table: ErrorTable, beta: float) -> Iterable[tuple[int, int, float, float]]:
    """Heads, length, the smallest finished error of seeds, and the least of any as many hard heads."""
    part = table.reduced("seed").select(beta=[beta] if beta in table.values("beta") else [])
    for at, error in part.cells():
        if np.isfinite(error):
            yield at["heads"], at["length"], error, FLOORS[at["length"]][at["heads"] - 1]


def _floor_words(heads: int, length: int, error: float, floor: float) -> str:
    return f"{count_of_heads(heads)}, length {length}: {error:.3g} (floor {floor:.3g})"


@claims_that("No nearly hard model is below the floor of as many hard heads.", f"{OF_SHARP}nothing finished")
def _never_below(table: ErrorTable) -> Cases:
    yield OF_SHARP
    for heads, length, error, floor in _finished_floors(table, SHARP):
        if floor > 0:
            yield exactly(_floor_words(heads, length, error, floor), error >= (1 - SAMPLING[length]) * floor)


@claims_that("Training comes within a tenth of the floor.", f"{OF_SHARP}nothing finished")
def _reached(table: ErrorTable) -> Cases:
    """A seed that is not near is stuck, or too few were tried: no refutation."""
    yield OF_SHARP
    for heads, length, error, floor in _finished_floors(table, SHARP):
        if floor > 0:
            yield Case(_floor_words(heads, length, error, floor), error <= NEAR * floor, differs=False)


@claims_that("One soft head has less than half of the error of every hard one.", f"{OF_SOFT}nothing finished")
def _soft_is_below(table: ErrorTable) -> Cases:
    yield OF_SOFT
    for heads, length, error, floor in _finished_floors(table, SOFT):
        if heads == 1:
            yield Case(_floor_words(heads, length, error, floor), error < floor / 2, differs=False)


def _floors_grid(table: ErrorTable) -> Grid:
    rows = [
        (name, count_of_heads(heads), str(length), f"{error:.3g}", f"{floor:.3g}")
        for beta, name in LINES.items()
        for heads, length, error, floor in _finished_floors(table, beta)
    ]
    title = "smallest error over seeds, and the least of any hard heads"
    return grid_of(title, ("attention", "heads", "length", "error", "floor"), rows)


def _floors_chart(table: ErrorTable, length: int) -> Chart:
    series = []
    for place, (beta, name) in enumerate(LINES.items()):
        points = {heads: error for heads, of_length, error, _ in _finished_floors(table, beta) if of_length == length}
        series.append(line_of(name, points, place))
    floors = tuple(floor if floor > 0 else float("nan") for floor in FLOORS[length])
    series.append(Series("least of any hard heads", HEADS, floors, place=2))
    title = f"Three maxima on five symbols, {length} tokens"
    caption = "best of seeds; the floor of three or more hard heads is 0"
    return chart_along("heads", HEADS, series, f"alphabet-{length}", title, caption)


STUDY = Study(
    name="alphabet",
    title="Hard heads on an alphabet",
    asks="Whether training reaches the least error of any hard heads, and whether soft heads go below it.",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        f"Tokens are one of {SYMBOLS} symbols, uniform; the target is a sum of {INTRINSIC_DIM} maxima of drawn values. "
        "A hard head puts the symbols in an order and reads which one present comes first. The floor is the least "
        "error over all tuples of orders with the best readout (theory.alphabet_floor).",
        "The floor holds for hard heads alone. A soft head that averages reads how often every symbol occurs, and no "
        "floor holds for one on an alphabet.",
        f"Errors of 8 tokens are exact, over all {VALIDATION:,} sequences; those of more tokens are measured on the "
        "same number of drawn ones.",
    ),
    efforts={
        Scale.SMOKE: effort_over((8,), 2, 1000),
        Scale.LAPTOP: effort_over((8,), 6, 3000),
        Scale.PAPER: effort_over((8, 16), 20, 20_000),
    },
)
