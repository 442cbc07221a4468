"""The errors of a section as plain rows, for JSON."""

import math
from typing import Any

from .charts import by_length, by_rank
from .section import Section


def error_cells(section: Section) -> list[dict[str, Any]]:
    """The errors by heads (or another main axis) and length, with rank where it was varied.

    Every row has its coordinates, `best` and `median` over seeds and starts, and `seeds`, how many finished; None for a
    number that is missing. Of several draws of the data the first. Empty for a section without a table.
    """
    if section.table is None:
        return []
    table = by_rank(section.table) if section.about_rank else by_length(section.table)
    rows = []
    for summary in table.summaries():
        errors = {"best": _or_none(summary.minimum), "median": _or_none(summary.median)}
        rows.append(summary.coordinates | errors | {"seeds": summary.seeds})
    return rows


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
