"""`headcount shrink`: a trained model with a smaller head_dim."""

from typing import Annotated

import typer

from ...cli.app import Json
from ..storing.changing import read_request, shrink_plan
from ..storing.preflight import original_shape, requested
from .options import Data, Device, DryRun, Length, Limit, ModelName, Out, Recover, RecoverWhat, Seed
from .running import change, checked_request, show_dry_run


def shrink(
    model: ModelName,
    head_dim: Annotated[int, typer.Option(help="Numbers per query, key and value of a head.")],
    examples: Data = None,
    out: Out = None,
    recover: Recover = 0,
    recover_what: RecoverWhat = "output",
    length: Length = None,
    limit: Limit = None,
    seed: Seed = 0,
    device: Device = "cpu",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Lower the rank of every head of a trained model: fewer numbers per query, key and value.

    Where positions rotate queries and keys, whole rotary pairs are kept, the same ones in every layer. Before anything
    is computed, a check says whether transformers can store the result. The original is never changed.
    """
    _, config, _ = read_request(model)
    shape = requested(original_shape(config), head_dim=head_dim)
    asked = checked_request(model, shape, out, quiet=as_json)
    if dry_run:
        show_dry_run(asked, as_json)
        return
    change(
        model,
        asked,
        lambda evaluation, loaded: shrink_plan(evaluation, loaded, head_dim=head_dim),
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
