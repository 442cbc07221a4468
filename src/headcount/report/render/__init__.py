"""Makes charts and documents visible. Matplotlib and Jinja2 are imported when the first one is drawn, not before."""

from collections.abc import Iterable
from pathlib import Path

from ..chart import Chart, HeatMap
from ..document import Document
from ..files import write_whole


def save_chart(chart: Chart | HeatMap, path: Path, title: str | None = None) -> None:
    """Draw a chart into a file, in the format that the path ends in; `title` replaces the chart's own."""
    from .figure import draw_figure, save_figure

    save_figure(draw_figure(chart, title), path)


def write_report(documents: list[Document], path: Path, *, folder: str, warnings: Iterable[str] = ()) -> None:
    """Write the page of these documents, whole or not at all."""
    from .html import page

    text = page(documents, folder=folder, warnings=warnings)
    write_whole(path, text.encode("utf-8", errors="replace"), "the report")
