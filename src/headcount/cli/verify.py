"""`headcount verify`: do stored results reproduce?"""

import math
from pathlib import Path
from typing import Annotated

import typer

from .. import verify as checks
from .._cache import cache_folder, keep_compiled_programs
from ..backends import kernels_here
from ..engine import check_where
from ..errors import StoreError, require
from ..events import Event, heard_by
from ..registry import first_of, has_cells
from ..report.document import Document, Entry, Grid, Text, line
from ..report.progress import terminal_bar
from ..store import Experiment, Store, json_text
from ..tasks.find import task_of_spec
from ..verify import Agreement, Recheck
from .app import Folder, messages, say
from .backend import BackendOption
from .options import SEQUENCE, TARGETS, TOKENS, On, Workers
from .running import training_on
from .stopping import stop_on_signals

MEANINGS = {
    Agreement.SAME: ("green", "the same to the last bit"),
    Agreement.CLOSE: ("yellow", "within a factor of five of the stored error, or of the median of its seeds"),
    Agreement.DIFFERENT: ("red", "trust neither until it is known why"),
}


def verify(
    folder: Folder,
    cells: Annotated[int, typer.Option(help="Cells to train again.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Draws which cells.")] = 0,
    task: Annotated[
        str | None, typer.Option(metavar="FILE|DIR", help="Your own task: a file of data, FILE.py:NAME, a folder.")
    ] = None,
    targets: Annotated[str | None, typer.Option(metavar="COLUMN|FILE", help=TARGETS)] = None,
    sequence: Annotated[str | None, typer.Option(metavar="COLUMN", help=SEQUENCE)] = None,
    tokens: Annotated[str | None, typer.Option(metavar="words|bytes", help=TOKENS)] = None,
    embeddings: Annotated[Path | None, typer.Option(help="Folder of the BERT model of passages.")] = None,
    backend: BackendOption = None,
    on: On = None,
    workers: Workers = None,
) -> Document:
    """Train a random sample of stored cells again and say whether they reproduce. Nothing stored is changed.

    A folder that prune, group or shrink wrote is loaded with stock transformers, its stored inputs are run, and the
    outputs are compared with those recorded.
    """
    check_where(on, workers)
    if not folder.exists():
        raise StoreError(f"{folder}: no such folder; give one that headcount wrote.")
    written = first_of(lambda each: each.check_folder(folder))
    if written is not None:
        return written
    keep_compiled_programs()
    with Store.open_for_reading(folder) as store:
        experiments, records, weights_of = store.experiments(), store.records(), store.weights
    require(
        bool(records) or all(has_cells(each.study) for each in experiments),
        f"{folder} holds nothing that headcount trained, so there are no cells to train again; the command that "
        f"`headcount status {folder}` shows, with another --out, computes it anew.",
    )
    chosen = checks.sample(records, cells, seed)
    steps = sum(record.cell.train.steps for record in chosen)
    options = {
        "targets": targets,
        "sequence": sequence,
        "tokens": tokens,
        "embeddings": embeddings,
        "cache": cache_folder(),
    }
    specs = {json_text(record.cell.task): record.cell.task for record in chosen}
    # Refused before anything is trained.
    tasks = {text: task_of_spec(spec, task, **options) for text, spec in specs.items()}
    say(f"training {len(chosen)} of {len(records)} cells of {folder} again")
    try:
        with (
            training_on(on, workers) as executor,
            terminal_bar(messages) as bar,
            stop_on_signals(lambda: bar(Event("stop"))) as stop,
        ):
            bar(Event("round", total=steps))
            rechecks = checks.verify(
                records,
                chosen,
                lambda spec: tasks[json_text(spec)],
                events=heard_by(bar),
                weights_of=weights_of,
                stop=stop,
                executor=executor,
            )
    except KeyboardInterrupt:
        say("Stopped. Nothing was verified.")
        raise typer.Exit(130) from None
    content = [_as_json(each, _where(each, experiments)) for each in rechecks]
    different = any(each.agreement is Agreement.DIFFERENT for each in rechecks)
    blocks = (_table(rechecks, experiments), *_summary(rechecks))
    return Document(content=lambda: content, blocks=blocks, code=1 if different else 0)


def _where(recheck: Recheck, experiments: list[Experiment]) -> dict[str, object]:
    """Return the first experiment that has the cell, and its coordinates there."""
    key = recheck.stored.cell.key
    owner = next((each for each in experiments if key in each.places), None)
    return {} if owner is None else {"experiment": owner.name, **owner.coordinates(key)}


def _as_json(recheck: Recheck, where: dict[str, object]) -> dict[str, object]:
    stored, again = (None if math.isnan(record.error) else record.error for record in (recheck.stored, recheck.again))
    return {
        "key": recheck.stored.cell.key,
        **where,
        "stored_error": stored,
        "error": again,
        "agreement": recheck.agreement.value,
        "moved": list(recheck.moved),
    }


def _table(rechecks: list[Recheck], experiments: list[Experiment]) -> Grid:
    """Tabulate the cells: its errors, stored and now."""
    rows = []
    for each in rechecks:
        where = ", ".join(f"{axis} {value}" for axis, value in _where(each, experiments).items())
        errors = [r.outcome.value if math.isnan(r.error) else f"{r.error:.6e}" for r in (each.stored, each.again)]
        rows.append((where, *errors, Entry(each.agreement.value, style=MEANINGS[each.agreement][0])))
    return Grid(columns=("cell", "stored error", "error now", ""), rows=tuple(rows), align="rrrl")


def _summary(rechecks: list[Recheck]) -> list[Text]:
    """Say how many agree, what that means, and what may have moved."""
    counts = {agreement: sum(each.agreement is agreement for each in rechecks) for agreement in Agreement}
    summary = ", ".join(f"{count} {agreement}" for agreement, count in counts.items() if count)
    meanings = [f"{agreement}: {MEANINGS[agreement][1]}" for agreement, count in counts.items() if count]
    moved = [words for each in rechecks for words in each.moved]
    moved += [_of_backend(each.stored_backend) for each in rechecks if each.stored_backend]
    moved += [each.again.message for each in rechecks if each.again.message]
    return [line((summary, "bold")), *(line(f"  {words}") for words in (*meanings, *dict.fromkeys(moved)))]


def _of_backend(name: str) -> str:
    """Say how to train with the back end that made a record, or why that cannot be done here."""
    if name == "fused" and (problem := kernels_here().problem):
        return f'stored with back end "fused", which is not available: {problem}'
    return f"stored with another back end: --backend {name} trains as then"
