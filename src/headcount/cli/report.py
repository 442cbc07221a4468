"""`headcount report`: everything a results folder says, as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import require
from ..report.document import Document
from ..report.files import FORMATS, check_ending, file_name
from ..report.reading import documents_of
from ..report.render import save_chart, write_report
from .app import Folder, say


def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the HTML page is written (default: DIR/report.html).")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for every figure by itself, for papers.", show_default=False)
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    form: Annotated[str, typer.Option("--format", help=f"The figures' format: {', '.join(FORMATS)}.")] = ".svg",
) -> Document:
    """Everything a results folder says, as one HTML page that needs nothing but itself."""
    ending = form if form.startswith(".") else f".{form}"
    check_ending(Path(f"figure{ending}"))
    documents, warnings = documents_of(folder)
    require(len(documents) > 0, f"a report needs a result. {' '.join(warnings)}")
    out = out or folder / "report.html"
    write_report(documents, out, folder=str(folder), warnings=warnings)
    say(f"the report is {out}")
    if open_page:
        _show(out)
    drawn = [] if figures is None else _write_figures(documents, figures, ending)
    written = {"page": str(out), "figures": [str(path) for path in drawn], "warnings": warnings}
    return Document(
        content=lambda: written | {"found": [document.as_dict() for document in documents]},
        messages=tuple((warning, "yellow") for warning in warnings),
    )


def _show(page: Path) -> None:
    """Open the page in a browser; where none can be, say where it is."""
    import webbrowser

    address = page.resolve().as_uri()
    if not webbrowser.open(address):
        say(f"No browser could be opened; the page is at {address}", style="yellow")


def _write_figures(documents: list[Document], folder: Path, ending: str) -> list[Path]:
    drawn = []
    for document in documents:
        for chart in document.charts:
            path = folder / f"{file_name(document.name)}-{chart.name}{ending}"
            save_chart(chart, path, f"{document.title}: {chart.title.lower()}")
            drawn.append(path)
    say(f"{len(drawn)} figures are in {folder}")
    return drawn
