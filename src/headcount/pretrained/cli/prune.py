"""`headcount prune`: a trained model with fewer heads."""

from pathlib import Path
from typing import Annotated

import typer

from ...cli.app import Json, say
from ...errors import require
from ..storing.changing import kept_count, prune_plan, read_request, removed_share
from ..storing.preflight import (
    LayerShape,
    original_shape,
    preflight,
    requested,
    require_possible,
    storable_counts,
)
from .options import Data, Device, DryRun, Length, Limit, ModelName, Out, Recover, RecoverWhat, Seed
from .running import change, checked_request, show_dry_run

KEEP = "Heads that every layer keeps; with --unequal, on average."
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
    recover_what: RecoverWhat = "output",
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
    device: Device = "cpu",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove the heads that a trained model misses least, and write a folder that stock transformers loads.

    Before anything is computed, a check says whether transformers can store the result. The original is never changed.
    """
    if inspection is not None:
        from ..inspection.inspected import inspections_of

        inspections_of(inspection)  # refused before anything is checked or computed
    _, config, layers = read_request(model)
    original = original_shape(config)
    total = original.heads * layers
    count = kept_count(original, layers, keep=keep, remove=remove)
    gone = (original.heads - count) * layers
    uniform = not unequal and (not zeroed or keep is not None)
    if not uniform and remove is not None:
        gone = round(removed_share(remove, total) * total)
    require(gone >= 1, _no_head(remove, original, total, uniform), what="remove", given=remove)
    if uniform or zeroed:
        shape = original if zeroed else requested(original, heads=count)
        asked = checked_request(model, shape, out, zeroed=zeroed, quiet=as_json)
    else:
        for heads in storable_counts(original):  # what is found decides how many the largest layer keeps
            require_possible(preflight(config, [requested(original, heads=heads)] * layers))
        shape = _smallest(original, (total - gone) / layers)
        asked = checked_request(model, shape, out, at_best=True, quiet=as_json)
    if remove is not None and not as_json:
        say(f"--remove {remove} removes {gone} of {total} heads ({gone / total:.0%})")
    if dry_run:
        show_dry_run(asked, as_json)
        return
    change(
        model,
        asked,
        lambda evaluation, loaded: prune_plan(
            evaluation, loaded, remove=gone, uniform=uniform, refit=refit, inspection=inspection
        ),
        examples=examples,
        out=out,
        length=length,
        limit=limit,
        seed=seed,
        recover=recover,
        recover_what=recover_what,
        device=device,
        as_json=as_json,
    )


def _no_head(remove: str | None, original: LayerShape, total: int, uniform: bool) -> str:
    if not uniform:
        return f"--remove {remove} is less than one of {total} heads."
    step = original.heads - max(storable_counts(original), default=0)
    return (
        f"--remove {remove} of {total} heads comes to no head per layer, where each of them keeps as many; remove more "
        f"(the fewest that a layer of {original.heads} can lose is {step}), or add --unequal."
    )


def _smallest(original: LayerShape, per_layer: float) -> LayerShape:
    """The shape that is stored where every layer keeps as many; the original's where that is no smaller."""
    count = next((heads for heads in storable_counts(original) if heads >= per_layer), None)
    return original if count is None else requested(original, heads=count)
