"""Training against the floor of all hard heads: sums of three maxima on an alphabet of five symbols.

The floors are those of `theory.alphabet_floor`, by enumeration of all orders; tests compute them again.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...answer import NMSE, ErrorTable, count_of_heads
from ...answer.claim import ClaimResult, verdict_of
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Effort, Part, Results, Scale, Study
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
are too many of 16 tokens; so many are drawn."""
LINES = {SHARP: f"nearly hard (beta = {SHARP:g})", SOFT: f"soft (beta = {SOFT:g})"}


def _parts(effort: Effort) -> Iterable[Part]:
    from ...tasks import AlphabetMaxima

    length = effort.lengths[0]
    task = partial(AlphabetMaxima, length=length, intrinsic_dim=INTRINSIC_DIM, symbols=SYMBOLS, task_seed=TASK_SEED)
    train = replace(effort.train, train_examples=EXAMPLES, validation_examples=VALIDATION)
    model = partial(class_token, head_dim=8, hidden=32)
    yield Part(task=task, model=model, axes=effort.over(heads=HEADS, beta=(SOFT, SHARP)), train=train)


def _report(results: Results) -> dict[str, Any]:
    table = results.table().ordered("heads", "beta", "length", "seed")
    claims = (_never_below(table), _reached(table), _soft_is_below(table))
    return {
        "headline": f"{claims[0].statement.rstrip('.')}: {claims[0].verdict.value}",
        "claims": claims,
        "grids": (_grid(table),),
        "charts": tuple(_chart(table, length) for length in table.trimmed().values("length")),
    }


def _errors(table: ErrorTable, beta: float) -> list[tuple[int, int, float, float]]:
    """Heads, length, smallest finished error of seeds and floor, of models of one beta."""
    part = table.select(beta=[beta]) if beta in table.values("beta") else table.select(beta=[])
    rows = []
    for heads in part.values("heads"):
        for length in part.values("length"):
            errors = part.select(heads=[heads], length=[length]).errors
            errors = errors[np.isfinite(errors)]
            if errors.size:
                rows.append((heads, length, float(errors.min()), FLOORS[length][heads - 1]))
    return rows


def _evidence(rows: list[tuple[int, int, float, float]]) -> str:
    parts = [
        f"{count_of_heads(heads)}, length {length}: {error:.3g} (floor {floor:.3g})"
        for heads, length, error, floor in rows
    ]
    return "; ".join(parts) or "nothing finished"


def _never_below(table: ErrorTable) -> ClaimResult:
    rows = [row for row in _errors(table, SHARP) if row[3] > 0]
    below = [error < (1 - SAMPLING[length]) * floor for _, length, error, floor in rows]
    return ClaimResult(
        "No nearly hard model is below the floor of as many hard heads.",
        verdict_of([bool(rows) and not any(below)], below),
        f"best of seeds, beta = {SHARP:g}: {_evidence(rows)}",
    )


def _reached(table: ErrorTable) -> ClaimResult:
    rows = [row for row in _errors(table, SHARP) if row[3] > 0]
    near = [error <= NEAR * floor for _, _, error, floor in rows]
    # A seed that is not near is stuck, or too few were tried: no refutation.
    return ClaimResult(
        "Training comes within a tenth of the floor.",
        verdict_of([bool(rows) and all(near)], []),
        f"best of seeds, beta = {SHARP:g}: {_evidence(rows)}",
    )


def _soft_is_below(table: ErrorTable) -> ClaimResult:
    rows = [row for row in _errors(table, SOFT) if row[0] == 1]
    below = [error < floor / 2 for _, _, error, floor in rows]
    return ClaimResult(
        "One soft head has less than half of the error of every hard one.",
        verdict_of([bool(rows) and all(below)], []),
        f"best of seeds, beta = {SOFT:g}: {_evidence(rows)}",
    )


def _grid(table: ErrorTable) -> Grid:
    rows = [
        (LINES[beta], count_of_heads(heads), str(length), f"{error:.3g}", f"{floor:.3g}")
        for beta in LINES
        for heads, length, error, floor in _errors(table, beta)
    ]
    return Grid(
        title="smallest error over seeds, and the least of any hard heads",
        columns=("attention", "heads", "length", "error", "floor"),
        rows=tuple(rows),
    )


def _chart(table: ErrorTable, length: int) -> Chart:
    series = []
    for place, (beta, name) in enumerate(LINES.items()):
        line = {heads: error for heads, at, error, _ in _errors(table, beta) if at == length}
        series.append(Series(name, tuple(line), tuple(line.values()), place=place))
    floors = tuple(floor if floor > 0 else float("nan") for floor in FLOORS[length])
    series.append(Series("least of any hard heads", HEADS, floors, place=2))
    return Chart(
        name=f"alphabet-{length}",
        title=f"Three maxima on five symbols, {length} tokens",
        x_label="attention heads",
        y_label=NMSE.label,
        x_ticks=HEADS,
        series=tuple(series),
        caption="best of seeds; the floor of three or more hard heads is 0",
    )


STUDY = Study(
    name="alphabet",
    title="Hard heads on an alphabet",
    asks="Whether training reaches the least error of any hard heads, and whether soft heads go below it.",
    parts=_parts,
    report=_report,
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
        Scale.SMOKE: Effort(lengths=(8,), seeds=2, steps=1000),
        Scale.LAPTOP: Effort(lengths=(8,), seeds=6, steps=3000),
        Scale.PAPER: Effort(lengths=(8, 16), seeds=20, steps=20_000),
    },
)
