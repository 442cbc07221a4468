"""What is tried where nothing is said: the only place of defaults.

The command line, Python and the studies all take their models, their training and their axes from here, so that one
question trains one set of models wherever it is asked.

    retrieval-like tasks      class-token models: heads of 8 numbers between nets of 32 units (Yu et al.)
    your arrays               the same, whether their targets are numbers or labels
    answered at tokens/query  one encoder layer as wide as a token, of full rank, fresh examples (Amsel et al.)
    your arrays, there        one encoder layer of 32 numbers per token, heads of 8, with maps to and from it
    images and passages       two encoder layers that grow with their heads, AdamW (Yu et al., section 5)
"""

from collections.abc import Callable
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

from ._choices import POSITIONS, require_choice
from ._options import Option, field_options, merged
from .errors import InputError, require
from .models import AbstractSpec, ClassTokenSpec, EncoderSpec
from .store import TrainSpec
from .tasks import AbstractTask, Classification

HEADS = (1, 2, 3, 4, 5, 6)
"""Head counts of random starts."""
TOP_HEADS, MAX_HEADS = 12, 32
"""Where a descent begins, and how far up it may begin again."""
LENGTHS = (8, 16, 32)
SEEDS = 4

TRAIN = TrainSpec()
"""On 8,000 stored examples, as published; see `TrainSpec` for the rest."""
FRESH_TRAIN = replace(TRAIN, train_examples=0)
"""Encoders learn from a stream, as in the second paper."""
LABELLED_TRAIN = TrainSpec(
    steps=1000, batch=32, learning_rate=1e-3, weight_decay=0.05, second_moment_decay=0.999, train_examples=1_000_000
)
"""AdamW, on all the examples there are; as many steps as two cores do in minutes, and a GPU in seconds."""

ENCODER_HIDDEN = 256
"""Feed-forward width of an encoder; the second paper's 2,048 needs a GPU."""
ENCODER: dict[str, Any] = {"hidden": ENCODER_HIDDEN, "norm_first": True}
"""Of tasks that are drawn: as published, but for norms that come first, which train in fewer steps."""
ARRAY_HEAD_DIM = 8
ARRAY_ENCODER: dict[str, Any] = {
    "width": 32,
    "hidden": 64,
    "norm": "layer",
    "norm_first": True,
    "final_norm": True,
    "activation": "gelu",
    "always_maps": True,
}
"""Of arrays, whose tokens have any size and any units."""
LABELLED_LAYERS = 2
IMAGE_HEAD_DIM, CANDIDATE_HEAD_DIM = 16, 32
"""Published widths of a head, on images and on candidate passages."""
IMAGE_DROPOUT = 0.1

MODEL_OPTIONS = merged(
    field_options(ClassTokenSpec),
    field_options(EncoderSpec),
    {"total_dim": Option("Width shared by all heads, instead of --head-dim.", kind=int)},
)
TRAIN_OPTIONS = field_options(TrainSpec)
GROWN = ("total_dim", "hidden", "multiplier", "beta", "inner_hidden", "final_norm")
"""Options that encoders of data with labels do not have."""

ModelOf = Callable[..., AbstractSpec]
"""`model(heads)`, or `model(heads, rank=..)` and other fields that an axis varies."""


def lengths_for(task: AbstractTask) -> tuple[int, ...]:
    """Return 8, 16 and 32 where the task has every length; its own where it has only one."""
    try:
        return tuple(task.at(length).length for length in LENGTHS)
    except InputError:
        return (task.length,)


def train_for(task: AbstractTask, **overrides: Any) -> TrainSpec:
    """Return how models are trained on a task; overrides that are None are left out."""
    if task.tokenise is not None:
        usual = LABELLED_TRAIN
    else:
        usual = TRAIN if task.answered_at == "sequence" or not task.endless else FRESH_TRAIN
    return replace(usual, **_given(overrides))


def model_for(task: AbstractTask, **options: Any) -> ModelOf:
    """Return the models that are tried on a task, by heads and any other field.

    Arguments: `options` are fields of the specs, or `total_dim`; None takes the recipe's value.

    Raises:
        InputError: If an option is given that the task's kind of model does not have.
    """
    given = {name: value for name, value in _given(options).items() if (name, value) != ("causal", False)}
    _require_options(task, given)
    total_dim, positions = given.pop("total_dim", None), given.pop("positions", "auto")
    fields: dict[str, Any] = {"positions": positions}
    if positions == "auto":
        fields = {"positions": "additive" if task.uses_positions else "none"}
    if task.tokenise is not None:
        fields |= given
        return lambda heads, **more: labelled_encoder(task, heads, **(fields | more))
    fields |= {"masks_padding": task.padded, "vocabulary": task.vocabulary}
    if task.answered_at == "sequence":
        return _family(ClassTokenSpec, fields | given, total_dim)
    usual = ENCODER if task.endless else ARRAY_ENCODER | {"width": max(ARRAY_ENCODER["width"], total_dim or 0)}
    fields = {"width": task.dim, "padding": "nan" if task.padded else "zeros"} | usual | fields | given
    fields |= {"answered_at": task.answered_at}
    if total_dim is not None:
        return _family(EncoderSpec, fields, total_dim)
    if task.endless:
        return _family(EncoderSpec, {"rank": task.dim} | fields)

    def of_arrays(heads: int, **more: Any) -> EncoderSpec:
        """Return the spec; its rank is the head_dim, unless it is given."""
        rank = more.get("head_dim", given.get("head_dim", ARRAY_HEAD_DIM))
        return EncoderSpec(heads=heads, **({"rank": rank} | fields | more))

    return of_arrays


def _family(
    make: type[ClassTokenSpec] | type[EncoderSpec], fields: dict[str, Any], total_dim: int | None = None
) -> ModelOf:
    """Return specs by their heads, which share `total_dim` where it is given."""
    if total_dim is None:
        return lambda heads, **more: make(heads=heads, **(fields | more))

    def sharing(heads: int, **more: Any) -> AbstractSpec:
        both = "give head_dims or total_dim, which sets the head_dim, not both."
        require("head_dim" not in more, both, what="head_dims total_dim")
        require("rank" not in more, "give ranks or total_dim, which sets the rank, not both.", what="ranks total_dim")
        return make.with_total_dim(total_dim, heads=heads, **(fields | more))

    return sharing


def _require_options(task: AbstractTask, given: dict[str, Any]) -> None:
    """Refuse options that contradict each other, or that the task's kind of model does not have."""
    both = {"head_dim", "total_dim"} <= given.keys()
    require(not both, "give head_dim or total_dim, not both.", what="head_dim total_dim")
    if "positions" in given:
        require_choice("positions", given["positions"], ("auto", *POSITIONS))
    depth = given.get("layers") or (1 if task.tokenise is None else LABELLED_LAYERS)
    make = ClassTokenSpec if task.answered_at == "sequence" and task.tokenise is None else EncoderSpec
    known = {each.name for each in fields_of(make)} | {"total_dim"}
    kind = "class-token models" if make is ClassTokenSpec else "encoders"
    for name, value in given.items():
        why = "" if name in known else f"{task.name} gets {kind}"
        if name == "causal" and depth == 1 and task.answered_at != "tokens":
            why = "with one layer only the last place asks, which comes after all others; use 2 layers"
        if name in GROWN and task.tokenise is not None:
            why = f"the encoders of {task.name} grow with their heads, with nets in every layer and a last norm"
        if why:
            raise InputError(f"{name} has no use here: {why}.", what=name, given=value, needed="left out")


def labelled_encoder(
    task: AbstractTask, heads: int, *, head_dim: int | None = None, layers: int = LABELLED_LAYERS, **fields: Any
) -> EncoderSpec:
    """Return an encoder of width heads x head_dim, norms first, its nets four times as wide; `fields` change others.

    Published: head_dim 16 on images, 32 on candidates. Ours: gelu, and a dropout of 0.1 on images.
    """
    images = isinstance(task.objective, Classification)
    head_dim = head_dim or (IMAGE_HEAD_DIM if images else CANDIDATE_HEAD_DIM)
    width = heads * head_dim
    options = {
        "rank": head_dim,
        "hidden": 4 * width,
        "dropout": IMAGE_DROPOUT if images else 0.0,
        "positions": "additive" if task.uses_positions else "none",
    } | fields
    return EncoderSpec(
        heads=heads,
        head_dim=head_dim,
        width=width,
        layers=layers,
        norm="layer",
        norm_first=True,
        final_norm=True,
        activation="gelu",
        answered_at=task.answered_at,
        query_is_key=True,
        masks_padding=task.padded,
        always_maps=True,
        **options,
    )


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
