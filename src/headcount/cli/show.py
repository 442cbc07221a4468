"""`headcount show`: the answer and the errors of every experiment in a results folder."""

from pathlib import Path
from typing import Annotated

import typer

from .._errors import require
from ..measurement import load
from ..report.render.terminal import section_view
from ..report.section import experiment_section
from .app import Folder, Json, data, print_json, say


def show(
    folder: Folder,
    figure: Annotated[Path | None, typer.Option(help="Draw the result into a .svg, .pdf or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """The answer and the errors of every experiment in a results folder."""
    measurements = [each for each in load(folder) if each.records]
    require(
        len(measurements) > 0, f"{folder} holds no trained model yet; `headcount status {folder}` says how to go on."
    )
    require(
        figure is None or len(measurements) == 1,
        f"{folder} holds {len(measurements)} experiments; a figure shows one. Measure each in its own folder.",
    )
    for each in measurements:
        if figure is not None:
            each.plot(figure)
            say(f"drawn in {figure}")
        if not as_json:
            data.print(section_view(experiment_section(each.experiment, each.records)))
            data.print(each.answer().sentence, style="bold", highlight=False)
    if as_json:
        print_json(
            [
                {"experiment": each.experiment.name, "settings": each.experiment.settings, **each.answer().as_dict()}
                for each in measurements
            ]
        )
