"""`headcount prune`, `group` and `shrink`: a trained model made smaller, as a folder that stock transformers loads.

Before anything is computed, a check says whether transformers can store the result.
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from ...cli.app import say
from ...errors import require
from ...report.document import Document
from ..storing.plan import group_plan, prune_plan, shrink_plan
from ..storing.preflight import AttentionShape, described, preflight, requested, require_possible, storable_counts
from ..storing.request import Source, kept_count, read_source, removed_share
from .running import AT_BEST, change, checked

MODEL = "A folder with config.json and weights, or a name on the Hugging Face hub."
DATA = "Text lines, scored pairs, an image folder, or FILE.py:loss (default: drawn from the model itself)."
OUT = "Where the smaller model is written; must be new or empty."
RECOVER = "After the refit, train for this many steps towards the original's answers; 0: the refit alone."
RECOVERED = "What --recover trains: output (the output projections), low-rank (a rank-8 update of all projections)."
KEEP = "Heads that every layer keeps; with --unequal, on average."
REMOVE = "Instead: a share of all heads (20%) or a number of them (12), rounded to one count per layer."
UNEQUAL = "Let layers keep different numbers; what is stored is padded with zero heads to the largest."
INSPECTION = "An inspection's folder: its order of heads is used, instead of a new search."


def _shared(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    examples: Annotated[str | None, typer.Option("--data", metavar="FILE|DIR", help=DATA)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help=OUT)] = None,
    recover: Annotated[int, typer.Option(metavar="STEPS", min=0, help=RECOVER)] = 0,
    recover_what: Annotated[str, typer.Option(metavar="output|low-rank", help=RECOVERED)] = "output",
    length: Annotated[int | None, typer.Option(min=2, help="Tokens per sequence (default: by the model).")] = None,
    limit: Annotated[int | None, typer.Option("--examples", min=2, help="Examples read at most.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the split of the data, and all else that is drawn.")] = 0,
    device: Annotated[str, typer.Option(help="Where torch runs: cpu, cuda.")] = "cpu",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be stored and stop.")] = False,
) -> None:
    """The argument and the options of every verb here."""


def changing(verb: Callable[..., Document]) -> Callable[..., Document]:
    """Add the shared options to a verb, which gets them as its first argument."""
    own = list(inspect.signature(verb).parameters.values())[1:]
    first, *others = inspect.signature(_shared).parameters.values()

    @functools.wraps(verb)
    def run(**given: Any) -> Document:
        mine = {option.name: given.pop(option.name) for option in own}
        return verb(SimpleNamespace(**given), **mine)

    parameters = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (first, *own, *others)]
    run.__signature__ = inspect.Signature(parameters, return_annotation=Document)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    del run.__wrapped__  # pyright: ignore[reportAttributeAccessIssue]
    return run


@changing
def prune(
    shared: SimpleNamespace,
    keep: Annotated[int | None, typer.Option(help=KEEP)] = None,
    remove: Annotated[str | None, typer.Option(metavar="SHARE|COUNT", help=REMOVE)] = None,
    inspection: Annotated[Path | None, typer.Option(metavar="DIR", help=INSPECTION)] = None,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Fit the output projections of the heads that stay.")
    ] = True,
    unequal: Annotated[bool, typer.Option("--unequal", help=UNEQUAL)] = False,
    zeroed: Annotated[
        bool, typer.Option("--zeroed", help="Store zeros in the original's shapes: saves nothing.")
    ] = False,
) -> Document:
    """Remove the heads that a trained model misses least, and write a folder that stock transformers loads.

    Before anything is computed, a check says whether transformers can store the result. The original is never changed.
    """
    if inspection is not None:
        from ..inspection.order import inspections_of

        inspections_of(inspection)  # refused before anything is checked or computed
    source = read_source(shared.model)
    count = kept_count(source.shape, source.layers, keep=keep, remove=remove)
    gone = (source.shape.heads - count) * source.layers
    uniform = not unequal and (not zeroed or keep is not None)
    if not uniform and remove is not None:
        gone = round(removed_share(remove, source.total_heads) * source.total_heads)
    require(gone >= 1, _no_head(source, remove, uniform), what="remove", given=remove)
    if uniform or zeroed:
        shape = source.shape if zeroed else requested(source.shape, heads=count)
        check = checked(source, shape, shared, zeroed=zeroed)
    else:
        shape, words = _best_shape(source, gone)
        check = checked(source, shape, shared, words=words)
    if remove is not None:
        say(f"--remove {remove} removes {gone} of {source.total_heads} heads ({gone / source.total_heads:.0%})")
    options = {"remove": gone, "uniform": uniform, "refit": refit, "inspection": inspection}
    return change(source, check, lambda evaluation: prune_plan(evaluation, **options), shared)


def _no_head(source: Source, remove: str | None, uniform: bool) -> str:
    if not uniform:
        return f"--remove {remove} is less than one of {source.total_heads} heads."
    step = source.shape.heads - max(storable_counts(source.shape), default=0)
    return (
        f"--remove {remove} of {source.total_heads} heads comes to no head per layer, where each of them keeps as "
        f"many; remove more (the fewest that a layer of {source.shape.heads} can lose is {step}), or add --unequal."
    )


def _best_shape(source: Source, gone: int) -> tuple[AttentionShape, tuple[str, ...]]:
    """What is stored at best where layers keep different numbers: the shape if all kept the same, and words."""
    counts = storable_counts(source.shape)
    for heads in counts:  # what is found decides how many the largest layer keeps
        require_possible(preflight(source.config, [requested(source.shape, heads=heads)] * source.layers))
    per_layer = (source.total_heads - gone) / source.layers
    count = next((heads for heads in counts if heads >= per_layer), None)
    if count is None:
        return source.shape, (AT_BEST, "So few heads go that a layer keeps all of its heads: nothing is saved.")
    shape = requested(source.shape, heads=count)
    saved = f"At best {described(shape)} are stored; nothing is saved if one layer keeps all its heads."
    return shape, (AT_BEST, saved)


@changing
def group(
    shared: SimpleNamespace,
    key_heads: Annotated[int, typer.Option(help="Key heads per layer, shared by all its heads.")],
) -> Document:
    """Let heads of a trained model share keys and values (grouped queries): a smaller cache per token.

    Heads are aligned before their keys are merged, groups are searched, output projections are refitted. Before
    anything is computed, a check says whether transformers can store the result. The original is never changed.
    """
    source = read_source(shared.model)
    check = checked(source, requested(source.shape, key_heads=key_heads), shared)
    return change(source, check, lambda evaluation: group_plan(evaluation, key_heads=key_heads), shared)


@changing
def shrink(
    shared: SimpleNamespace,
    head_dim: Annotated[int, typer.Option(help="Numbers per query, key and value of a head.")],
) -> Document:
    """Lower the rank of every head of a trained model: fewer numbers per query, key and value.

    Where positions rotate queries and keys, whole rotary pairs are kept, the same ones in every layer. Before anything
    is computed, a check says whether transformers can store the result. The original is never changed.
    """
    source = read_source(shared.model)
    check = checked(source, requested(source.shape, head_dim=head_dim), shared)
    return change(source, check, lambda evaluation: shrink_plan(evaluation, head_dim=head_dim), shared)
