"""What `headcount reproduce` prints without a study's name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table

from ...report.render.words import spoken_time


@dataclass(frozen=True)
class Cost:
    """What is left of a study: in words, and as numbers."""

    words: str
    cells: int
    already_done: int
    seconds: float


def study_costs_view(rows: Sequence[tuple[str, str, str, Mapping[str, Cost]]], footnote: str) -> RenderableType:
    """The studies, and the time each scale of them is expected to take on this machine."""
    view = Table(box=None)
    view.add_column("study", style="bold")
    scales = list(rows[0][3])
    for scale in scales:
        view.add_column(scale, justify="right")
    view.add_column("what it shows")
    for name, title, asks, costs in rows:
        view.add_row(name, *(spoken_time(costs[scale].seconds) for scale in scales), f"{title}. {asks}")
    return Group(view, "", footnote)
