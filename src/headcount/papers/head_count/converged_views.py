"""What `converged` shows: errors by change and place, beside the published ones and the training errors."""

from collections.abc import Sequence

import numpy as np

from ...report.chart import HeatMap
from ...report.section import Grid
from ..claims.converged import NEAR, Variant

TINY = 1e-30
"""In place of an error of zero, which has no logarithm."""


def headline(variants: Sequence[Variant]) -> str:
    """The change and the joint change that come nearest over both tables."""
    parts = []
    for word, chosen in (("Alone", [v for v in variants if v.single]), ("together", [v for v in variants if v.joint])):
        times = _times(chosen)
        if times:
            nearest = min(times, key=times.__getitem__)
            parts.append(f'{word} "{nearest}" comes nearest, {times[nearest]:.3g}-fold of the published errors')
    return "; ".join(parts) or "No change was trained yet"


def _times(variants: Sequence[Variant]) -> dict[str, float]:
    """Our errors over the published ones by the name of the variant, the geometric mean over tables and lengths."""
    ratios: dict[str, list[float]] = {}
    for each in variants:
        ratios.setdefault(each.name, []).extend(max(ratio, TINY) for ratio in each.ratios.values())
    return {name: float(np.exp(np.mean(np.log(values)))) for name, values in ratios.items() if values}


def _title(table: str) -> str:
    return table.replace("table", "Table ")


def _rows(variants: Sequence[Variant]) -> tuple[list[str], list[tuple[str, int]]]:
    """The names of the variants, and the table and length of every column."""
    names = list(dict.fromkeys(each.name for each in variants if each.best))
    places = sorted({(each.table, length) for each in variants for length in each.best})
    return names, places


def errors_grid(variants: Sequence[Variant]) -> Grid:
    """Errors by variant and place, and the geometric mean of their ratios to the published ones."""
    (names, places), times = _rows(variants), _times(variants)
    cells = {
        (each.name, each.table, length): f"{error:.1e} ({each.ratios[length]:.3g})"
        for each in variants
        for length, error in each.best.items()
    }
    printed = {(each.table, length): error for each in variants for length, error in each.printed.items()}
    return Grid(
        title="best of seeds (times the published error)",
        columns=("", "all", *(f"{_title(table)}, T = {length}" for table, length in places)),
        rows=(
            ("published", "", *(f"{printed[place]:.1e}" for place in places)),
            *((name, f"({times[name]:.3g})", *(cells.get((name, *place), "-") for place in places)) for name in names),
        ),
    )


def gap_grid(variants: Sequence[Variant], training: Sequence[Variant]) -> Grid:
    """Validation errors beside those of the last training batches: what generalising costs, and what optimising."""
    names, places = _rows(variants)
    ours, theirs = ({(e.name, e.table): e.best for e in each} for each in (variants, training))

    def cell(name: str, table: str, length: int) -> str:
        both = [each.get((name, table), {}).get(length) for each in (theirs, ours)]
        return "-" if None in both else " | ".join(f"{value:.1e}" for value in both)

    return Grid(
        title="training error | validation error, best of seeds",
        columns=("", *(f"{_title(table)}, T = {length}" for table, length in places)),
        rows=tuple((name, *(cell(name, *place) for place in places)) for name in names),
        folded=True,
    )


def _short(value: float) -> str:
    """In four or five characters."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}" if value < 1e4 else f"{value:.0e}"


def ratios_map(variants: Sequence[Variant]) -> HeatMap:
    names, places = _rows(variants)
    ratios = {(each.name, each.table): each.ratios for each in variants}
    values = [[ratios.get((name, table), {}).get(length, np.nan) for table, length in places] for name in names]
    return HeatMap(
        name="converged",
        title="Times the published error where heads are enough",
        rows=tuple(names),
        columns=tuple(f"{table.replace('table', 'T')}, {length}" for table, length in places),
        row_label="change to the training",
        column_label="table and length",
        values=np.array(values, float).reshape(len(names), len(places)),
        unit="times the published error",
        words=tuple(tuple("" if np.isnan(value) else _short(value) for value in row) for row in values),
        caption=f"best of seeds; {NEAR:g} and below counts as reached",
        scale=(0.3, 300.0),
        scale_label="times the published error",
        downward=True,
    )
