"""`headcount verify`: do stored results come out again?"""

import functools
import math
from pathlib import Path
from typing import Annotated

import typer

from ..report.progress import training_progress
from ..store import Store
from ..studies.labelled import cache_folder
from ..tasks.find import task_of_spec
from ..verify import Agreement, Recheck, sample, verify
from .app import Folder, Json, app, data, print_json, talk
from .running import stop_on_signals
from .views.verify import recheck_view


@app.command("verify")
def verify_folder(
    folder: Folder,
    cells: Annotated[int, typer.Option(help="How many cells are trained again.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Draws which cells.")] = 0,
    task: Annotated[
        str | None, typer.Option(metavar="FILE|DIR", help="Your own task: FILE.npz, FILE.py:NAME, a folder.")
    ] = None,
    targets: Annotated[Path | None, typer.Option(help="y.npy, when the file holds x alone.")] = None,
    embeddings: Annotated[Path | None, typer.Option(help="Folder of the BERT model of passages.")] = None,
    as_json: Json = False,
) -> None:
    """Train a random sample of stored cells again and say whether they come out the same. Nothing stored is changed."""
    with Store.open_for_reading(folder) as store:
        records = store.records()
    chosen = sample(records, cells, seed)
    steps = sum(record.cell.train.steps for record in chosen)
    talk.print(f"training {len(chosen)} of {len(records)} cells of {folder} again", markup=False, highlight=False)
    task_of = functools.partial(
        task_of_spec, reference=task, targets=targets, embeddings=embeddings, cache=cache_folder()
    )
    try:
        with training_progress(talk, steps) as on_steps, stop_on_signals() as stop:
            found = verify(records, chosen, task_of, on_steps=on_steps, stop=stop)
    except KeyboardInterrupt:
        talk.print("Stopped. Nothing was verified.")
        raise typer.Exit(130) from None
    if as_json:
        print_json([_as_json(recheck) for recheck in found])
    else:
        data.print(recheck_view(found))
    if any(recheck.agreement is Agreement.DIFFERENT for recheck in found):
        raise typer.Exit(1)


def _as_json(recheck: Recheck) -> dict:
    cell = recheck.stored.cell
    return {
        "key": cell.key,
        "heads": cell.model.heads,
        "length": cell.length,
        "seed": cell.seed,
        "stored_error": None if math.isnan(recheck.stored.error) else recheck.stored.error,
        "error": None if math.isnan(recheck.again.error) else recheck.again.error,
        "agreement": recheck.agreement.value,
        "moved": list(recheck.moved),
    }
