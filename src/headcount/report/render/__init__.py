"""Makes charts and sections visible. Matplotlib and Jinja2 are imported when the first one is drawn, not before."""

from collections.abc import Iterable
from pathlib import Path

from ...errors import InputError
from ..chart import Chart, HeatMap
from ..files import write_whole
from ..section import Section

FORMATS = (".svg", ".pdf", ".png")


def check_ending(path: Path) -> None:
    """**Raises** `InputError` where no figure can be saved under this name."""
    if path.suffix not in FORMATS:
        raise InputError(f"a figure must end in {', '.join(FORMATS)}, got {path}.")


def save_chart(chart: Chart | HeatMap, path: Path, title: str | None = None) -> None:
    """Draw a chart into a file, in the format that the path ends in; `title` replaces the chart's own."""
    from .figure import draw, save_figure

    save_figure(draw(chart, title), path)


def write_report(sections: list[Section], path: Path, *, folder: str, warnings: Iterable[str] = ()) -> None:
    """Write the page of these sections, whole or not at all."""
    from .html import page

    text = page(sections, folder=folder, warnings=warnings)
    write_whole(path, text.encode("utf-8", errors="replace"), "the report")
