"""`headcount group`: a trained model whose heads share keys and values."""

from typing import Annotated

import typer

from ...cli.app import Json
from ..storing.changing import group_plan, read_request
from ..storing.preflight import original_shape, requested
from .options import Data, Device, DryRun, Length, Limit, ModelName, Out, Recover, RecoverWhat, Seed
from .running import change, checked_request, show_dry_run


def group(
    model: ModelName,
    key_heads: Annotated[int, typer.Option(help="Key heads per layer, shared by all its heads.")],
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
    """Let heads of a trained model share keys and values (grouped queries): a smaller cache per token.

    Heads are aligned before their keys are merged, groups are searched, output projections are refitted. Before
    anything is computed, a check says whether transformers can store the result. The original is never changed.
    """
    _, config, _ = read_request(model)
    shape = requested(original_shape(config), key_heads=key_heads)
    asked = checked_request(model, shape, out, quiet=as_json)
    if dry_run:
        show_dry_run(asked, as_json)
        return
    change(
        model,
        asked,
        lambda evaluation, loaded: group_plan(evaluation, loaded, key_heads=key_heads),
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
