"""What a results folder holds: `status`, `show`, `export`, `report`."""

import dataclasses
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .._errors import require
from ..analysis import experiments, summaries
from ..report.export import to_csv, to_json
from ..report.files import write_whole
from ..report.render import FORMATS, check_ending, save_chart, write_report
from ..report.render.terminal import experiment_view
from ..report.section import Section, experiment_section
from ..store import Outcome, Store
from ..studies.folder import sections_of
from .app import Folder, Json, app, data, print_json, talk
from .views.results import SweepStatus, status_view


class Format(StrEnum):
    csv = "csv"
    json = "json"


@app.command()
def status(folder: Folder, as_json: Json = False) -> None:
    """What a results folder holds, what is missing, and how to go on."""
    with Store.open_for_reading(folder) as store:
        records, sweeps = store.records(), store.sweeps()
    outcomes = {record.cell.key: record.outcome for record in records}
    counts = {outcome.value: sum(found is outcome for found in outcomes.values()) for outcome in Outcome}
    asked: list[SweepStatus] = [
        {
            "command": sweep["command"],
            "started": sweep["started"],
            "cells": len(sweep["keys"]),
            "done": sum(outcomes.get(key, Outcome.FAILED) is not Outcome.FAILED for key in sweep["keys"]),
        }
        for sweep in sweeps
    ]
    if as_json:
        print_json({"folder": str(folder), "cells": counts, "sweeps": asked})
    else:
        data.print(status_view(folder, counts, asked), markup=False, highlight=False)


@app.command()
def show(
    folder: Folder,
    figure: Annotated[Path | None, typer.Option(help=f"Draw the result ({', '.join(FORMATS)}).")] = None,
    as_json: Json = False,
) -> None:
    """The answer and the errors of every experiment in a results folder."""
    with Store.open_for_reading(folder) as store:
        found = experiments(store.records())
    require(len(found) > 0, f"{folder} holds no finished cells yet.")
    require(
        figure is None or len(found) == 1,
        f"{folder} holds {len(found)} experiments; a figure shows one. Measure each in a folder of its own.",
    )
    results = []
    for experiment in found:
        section = experiment_section(experiment, "experiment")
        answer = section.answer or section.bottleneck
        assert answer is not None
        results.append({"settings": experiment.settings, **answer.as_dict()})
        if figure is not None:
            title = f"{experiment.settings['task']['task']}: {answer.sentence}"
            save_chart(section.charts[0], figure, title)
            talk.print(f"drawn in {figure}", highlight=False, markup=False)
        if not as_json:
            data.print(experiment_view(experiment.settings, section))
            data.print(answer.sentence, style="bold", highlight=False)
    if as_json:
        print_json(results)


@app.command()
def export(
    folder: Folder,
    form: Annotated[Format, typer.Option("--format", help="csv or json.")] = Format.csv,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of stdout.")] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Add seconds, device and date.")] = False,
    as_json: Json = False,
) -> None:
    """Every cell of a results folder as a table. Without --timing, equal results make equal bytes."""
    with Store.open_for_reading(folder) as store:
        records = store.records()
    text = to_json(records, timing=timing) if as_json or form is Format.json else to_csv(records, timing=timing)
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text.encode())


@app.command()
def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the HTML page is written (default: DIR/report.html).")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for every figure by itself, for papers.", show_default=False)
    ] = None,
    form: Annotated[str, typer.Option("--format", help=f"The figures' format: {', '.join(FORMATS)}.")] = ".svg",
    as_json: Json = False,
) -> None:
    """Everything a results folder says, as one HTML page that needs nothing but itself."""
    ending = form if form.startswith(".") else f".{form}"
    check_ending(Path("figure").with_name(f"figure{ending}"))
    sections, warnings = sections_of(folder)
    out = out or folder / "report.html"
    write_report(sections, out, folder=str(folder), warnings=warnings)
    talk.print(f"the report is {out}", markup=False, highlight=False)
    drawn = [] if figures is None else _write_figures(sections, figures, ending)
    for warning in warnings:
        talk.print(warning, style="yellow", markup=False, highlight=False)
    if as_json:
        found = [section_json(section) for section in sections]
        print_json({"page": str(out), "figures": [str(path) for path in drawn], "warnings": warnings, "found": found})


def _write_figures(sections: list[Section], folder: Path, ending: str) -> list[Path]:
    drawn = []
    for section in sections:
        for chart in section.charts:
            path = folder / f"{section.name}-{chart.name}{ending}"
            save_chart(chart, path, f"{section.title}: {chart.title.lower()}")
            drawn.append(path)
    talk.print(f"{len(drawn)} figures are in {folder}", markup=False, highlight=False)
    return drawn


def section_json(section: Section) -> dict:
    """What a section says, for other programs; a number that is not there is null."""
    claims = [{"statement": c.statement, "verdict": c.verdict.value, "evidence": c.evidence} for c in section.claims]
    said = {"name": section.name, "title": section.title, "headline": section.headline, "claims": claims}
    said |= {"grids": [dataclasses.asdict(grid) for grid in section.grids]} if section.grids else {}
    said |= {} if section.bottleneck is None else section.bottleneck.as_dict()
    if section.table is None:
        return said
    cells = []
    for row in summaries(section.table):
        cell = dataclasses.asdict(row)
        if section.published is not None:
            cell["published"], cell["published_std"] = section.published.at(row.heads, row.length)
        cells.append({name: None if np.isnan(number) else number for name, number in cell.items()})
    return said | {"cells": cells}
