"""`headcount prune`: a trained model with fewer heads."""

from pathlib import Path
from typing import Annotated

import typer

from .._errors import require
from ..pretrained.storing.changing import kept_count, prune_plan, read_request, removed_share
from ..pretrained.storing.preflight import original_shape, preflight, requested, require_possible, storable_counts
from .app import Json, say
from .pretrained_options import Data, DryRun, Length, Limit, ModelName, Out, Recover, Seed
from .pretrained_running import change, checked_request, show_dry_run

KEEP = "Heads that every layer keeps."
REMOVE = "Instead: a share of all heads (20%) or a number of them (12), rounded to one count per layer."
UNEQUAL = "Let layers keep different numbers; what is stored is padded with zero heads to the largest."
INSPECTION = "An inspection's folder: its order of heads is used, instead of a new search."


def prune(
    model: ModelName,
    keep: Annotated[int | None, typer.Option(help=KEEP)] = None,
    remove: Annotated[str | None, typer.Option(metavar="SHARE|COUNT", help=REMOVE)] = None,
    examples: Data = None,
    inspection: Annotated[Path | None, typer.Option(metavar="DIR", help=INSPECTION)] = None,
    out: Out = None,
    recover: Recover = 0,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Fit the output projections of the heads that stay.")
    ] = True,
    unequal: Annotated[bool, typer.Option("--unequal", help=UNEQUAL)] = False,
    zeroed: Annotated[
        bool, typer.Option("--zeroed", help="Store zeros in the original's shapes: saves nothing.")
    ] = False,
    length: Length = None,
    limit: Limit = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove the heads that a trained model misses least, and write a folder that stock transformers loads.

    Before anything is computed, a check says whether a stock class stores the result. The original is never changed.
    """
    _, config, layers = read_request(model)
    original = original_shape(config)
    total = original.heads * layers
    count = kept_count(original, layers, keep=keep, remove=remove)
    gone = (original.heads - count) * layers
    if unequal or zeroed:
        gone = gone if remove is None else round(removed_share(remove, total) * total)
        require(gone >= 1, f"--remove {remove} is less than one of {total} heads.", what="remove", given=remove)
        shape = original if zeroed else requested(original, heads=max(storable_counts(original)))
    else:
        require(gone >= 1, f"--remove {remove} rounds to no head of {original.heads} per layer.", what="remove")
        shape = requested(original, heads=count)
    asked = checked_request(model, shape, out, zeroed=zeroed, quiet=as_json)
    if unequal and not zeroed:  # what is found decides how many the largest layer keeps
        for heads in storable_counts(original):
            require_possible(preflight(config, [requested(original, heads=heads)] * layers))
    elif remove is not None and not as_json:
        say(f"--remove {remove}: {gone} of {total} heads go ({gone / total:.0%})")
    if dry_run:
        show_dry_run(asked, as_json)
        return
    change(
        model,
        asked,
        lambda evaluation, loaded: prune_plan(
            evaluation, loaded, remove=gone, uniform=not (unequal or zeroed), refit=refit, inspection=inspection
        ),
        examples=examples,
        out=out,
        length=length,
        limit=limit,
        seed=seed,
        recover=recover,
        as_json=as_json,
    )
