"""`headcount show`: the answer and the errors of every experiment in a results folder."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import require
from ..report.cells import error_cells
from ..report.reading import sections_of
from ..report.render import check_ending, save_chart
from ..report.render.terminal import section_view
from .app import Folder, Json, data, print_json, say, show_view


def show(
    folder: Folder,
    figure: Annotated[Path | None, typer.Option(help="Draw the result into a .svg, .pdf or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """The answer and the errors of every experiment in a results folder."""
    if figure is not None:
        check_ending(figure)
    sections, warnings = sections_of(folder)
    require(figure is None or len(sections) > 0, f"a figure needs a result. {' '.join(warnings)}")
    require(
        figure is None or len(sections) == 1,
        f"{folder} holds {len(sections)} results; a figure shows one. `headcount report --figures DIR` draws all.",
    )
    for section in sections:
        if figure is not None:
            save_chart(section.charts[0], figure, section.headline)
            say(f"drawn in {figure}")
        if not as_json:
            show_view(section_view(section))
            if section.settings is not None and section.answer is not None:
                data.print(section.answer.sentence, style="bold", markup=False, highlight=False)
    for warning in warnings:
        say(warning, style="yellow")
    if as_json:
        print_json([section.as_dict() | {"errors": error_cells(section)} for section in sections])
