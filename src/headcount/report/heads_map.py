"""The map of an answer for every kv_heads and head_dim: heads needed, as a chart and a grid, and the errors behind."""

from typing import Any

import numpy as np

from ..answer import Answer, ErrorTable
from ..answer.answer_base import HeadsAt
from ..answer.heads_map import FAR_ABOVE, OWN, need_words, parts_of
from .chart import Chart, HeatMap, Series
from .charts import ACROSS, judged_by
from .document import Grid


def heads_map_charts(table: ErrorTable, answer: Answer) -> tuple[Chart | HeatMap, ...]:
    """Chart the heads needed at every place, and the errors they are read from."""
    return heads_needed_map(answer), places_chart(table)


def heads_needed_map(answer: Answer) -> HeatMap:
    """Map the heads needed at every kv_heads (columns) and head_dim (rows); an empty cell shows no transition."""
    groups, dims, at = _places(answer)
    needs = [[at.get((group, dim)) for group in groups] for dim in dims]
    values = [[_needed(one) for one in row] for row in needs]
    return HeatMap(
        name="heads-needed",
        title="Heads needed by kv heads and head dim",
        rows=tuple("recipe's" if dim is None else dim for dim in dims),
        columns=tuple(map(group_name, groups)),
        row_label="head dim",
        column_label="kv heads (sets of keys and values)",
        values=np.array(values, float),
        unit="heads needed",
        caption="heads needed [interval over seeds], by the rule for heads at each place; none: no transition found; "
        "floor: more heads do no better; far: at every head count an error tenfold above the best of the map, and "
        f"above {FAR_ABOVE:g} of the best constant answer's",
        counts=True,
        words=tuple(tuple("-" if one is None else need_words(one) for one in row) for row in needs),
    )


def _needed(place: HeadsAt | None) -> float:
    """Return the number of heads at a place; NaN where none is enough."""
    return float("nan") if place is None or place.needed is None else float(place.needed)


def heads_needed_grid(answer: Answer) -> Grid:
    """Tabulate the same map in words."""
    groups, dims, at = _places(answer)
    rows = []
    for dim in dims:
        cells = [at.get((group, dim)) for group in groups]
        words = ["not tried" if one is None else need_words(one) for one in cells]
        rows.append(("heads needed" if dim is None else f"head dim {dim}", *words))
    columns = ("", *("heads needed" if group is None else f"kv heads {group_name(group)}" for group in groups))
    return Grid(title="heads needed at every kv heads and head dim", columns=columns, rows=tuple(rows))


def places_chart(table: ErrorTable) -> Chart:
    """Chart the best error against heads, at the worst length, a line per place."""
    series, heads = [], set()
    for place, (at, part) in enumerate(parts_of(table).items()):
        part = worst_length(part)
        heads |= set(part.values("heads"))
        series.append(Series(place_name(*at), part.values("heads"), tuple(part.errors), place=place))
    return Chart(
        name="error-against-heads",
        title="Error against heads, by kv heads and head dim",
        x_label="attention heads",
        y_label=table.metric.label,
        x_ticks=tuple(sorted(heads)),
        series=tuple(series),
        caption=judged_by(table),
        log_y=not np.any(table.errors == 0),
    )


def worst_length(part: ErrorTable) -> ErrorTable:
    """Return the best over seeds, and over any other axis, at the worst length, by heads."""
    for axis in [axis for axis in part.axes if axis not in ("heads", *ACROSS)]:
        part = part.reduced(axis)
    return part.reduced("seed").reduced("length", "worst").ordered("heads")


def place_name(kv_heads: Any, head_dim: Any) -> str:
    """Name a place, as in `kv heads 1, head dim 4`."""
    groups = "" if kv_heads is None else f"kv heads {group_name(kv_heads)}"
    return ", ".join(filter(None, (groups, "" if head_dim is None else f"head dim {head_dim}")))


def group_name(kv_heads: Any) -> str:
    """Name a number of kv heads, or say that every head has its own."""
    return "as tried" if kv_heads is None else "own" if kv_heads == OWN else str(kv_heads)


def _places(answer: Answer) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[tuple[Any, Any], HeadsAt]]:
    """Return the kv_heads and the head_dims of a map, in order, and what is needed at each of them that was tried."""

    at = {(each.kv_heads, each.head_dim): each for each in answer.map}
    groups = sorted({group for group, _ in at}, key=lambda group: (group == OWN, group or 0))
    return tuple(groups), tuple(sorted({dim for _, dim in at}, key=lambda dim: dim or 0)), at
