"""What is tried where nothing is said: the only place of defaults.

The command line, Python and the studies all take their models, their training and their axes from here, so that one
question trains one set of models wherever it is asked.

    retrieval-like tasks      class-token models: heads of 8 numbers between nets of 32 units (Yu et al.)
    your arrays               the same, whether their targets are numbers or labels
    answered at tokens/query  one encoder layer as wide as a token, of full rank, fresh examples (Amsel et al.)
    your arrays, there        one encoder layer of 32 numbers per token, heads of 8, with maps to and from it
    images and passages       two encoder layers that grow with their heads, AdamW (Yu et al., section 5)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ._choices import POSITIONS, require_choice
from ._limits import require_within, shortened
from .errors import InputError, require, require_count
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

ModelOf = Callable[..., AbstractSpec]
"""`model(heads)`, or `model(heads, rank=..)` and other fields that an axis varies."""


def lengths_for(task: AbstractTask) -> tuple[int, ...]:
    """8, 16 and 32 where the task has every length; its own where it has only one."""
    try:
        return tuple(task.at(length).length for length in LENGTHS)
    except InputError:
        return (task.length,)


def train_for(task: AbstractTask, **overrides: Any) -> TrainSpec:
    """How models are trained on a task; overrides that are None are left out."""
    if task.tokenise is not None:
        usual = LABELLED_TRAIN
    else:
        usual = TRAIN if task.answered_at == "sequence" or not task.endless else FRESH_TRAIN
    return replace(usual, **_given(overrides))


def model_for(
    task: AbstractTask,
    *,
    head_dim: int | None = None,
    total_dim: int | None = None,
    hidden: int | None = None,
    layers: int | None = None,
    positions: str | None = None,
    beta: float | None = None,
    multiplier: int | None = None,
    kv_heads: int | None = None,
    window: int | None = None,
    causal: bool | None = None,
    attention: str | None = None,
    top_k: int | None = None,
    inner_hidden: int | None = None,
    final_norm: bool | None = None,
) -> ModelOf:
    """The models that are tried on a task, by heads and any other field; None takes the recipe's value.

    Raises:
        InputError: If an option is given that the task's kind of model does not have.
    """
    require(head_dim is None or total_dim is None, "give head_dim or total_dim, not both.", what="head_dim total_dim")
    options = _given({"head_dim": head_dim, "hidden": hidden, "layers": layers, "beta": beta, "multiplier": multiplier})
    options |= _given({"kv_heads": kv_heads, "window": window, "attention": attention, "top_k": top_k})
    options |= _given({"inner_hidden": inner_hidden, "causal": causal or None, "final_norm": final_norm})
    if positions is not None:
        require_choice("positions", positions, ("auto", *POSITIONS))
    places = ("additive" if task.uses_positions else "none") if positions in (None, "auto") else positions
    depth = layers or (1 if task.tokenise is None else LABELLED_LAYERS)
    if depth == 1 and task.answered_at != "tokens":
        _refuse(
            {"causal": causal or None},
            "with one layer only the last place asks, which comes after all others; use 2 layers",
        )
    if task.tokenise is not None:
        refused = {"total_dim": total_dim, "hidden": hidden, "multiplier": multiplier, "beta": beta}
        _refuse(refused, f"the encoders of {task.name} grow with their heads")
        of_encoder = {"inner_hidden": inner_hidden, "final_norm": final_norm}
        _refuse(of_encoder, f"the encoders of {task.name} have nets in every layer, and a last norm")
        of_data: dict[str, Any] = {"positions": places} | options
        return lambda heads, **fields: labelled_encoder(task, heads, **(of_data | fields))
    reads: dict[str, Any] = {"positions": places, "masks_padding": task.padded, "vocabulary": task.vocabulary}
    if task.answered_at == "sequence":
        _refuse({"multiplier": multiplier}, f"{task.name} gets class-token models")
        make: type[ClassTokenSpec] | type[EncoderSpec] = ClassTokenSpec
        shared: dict[str, Any] = reads | options
    else:
        _refuse({"beta": beta}, f"{task.name} gets encoders")
        _refuse({"inner_hidden": inner_hidden}, f"{task.name} gets encoders, whose nets have the width hidden")
        make = EncoderSpec
        of_kind, rank = (ENCODER, task.dim) if task.endless else (ARRAY_ENCODER, head_dim or ARRAY_HEAD_DIM)
        shared = {"width": task.dim, "padding": "nan" if task.padded else "zeros"} | of_kind | reads | options
        shared |= {"answered_at": task.answered_at}
        if total_dim is None:
            shared = {"rank": rank} | shared
    if total_dim is None:
        follows = make is EncoderSpec and not task.endless  # the rank of arrays' encoders, their head_dim

        def alone(heads: int, **fields: Any) -> AbstractSpec:
            rank = {"rank": fields["head_dim"]} if follows and "head_dim" in fields else {}
            return make(heads=heads, **(shared | rank | fields))

        return alone

    def sharing(heads: int, **fields: Any) -> AbstractSpec:
        both = "give head_dims or total_dim, which sets the head_dim, not both."
        require("head_dim" not in fields, both, what="head_dims total_dim")
        require("rank" not in fields, "give ranks or total_dim, which sets the rank, not both.", what="ranks total_dim")
        return make.with_total_dim(total_dim, heads=heads, **(shared | fields))

    return sharing


def labelled_encoder(
    task: AbstractTask, heads: int, *, head_dim: int | None = None, layers: int = LABELLED_LAYERS, **fields: Any
) -> EncoderSpec:
    """An encoder of width heads x head_dim, norms first, its nets four times as wide; `fields` change its others.

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


def axes_for(
    task: AbstractTask,
    *,
    heads: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    kv_heads: Sequence[int] | None = None,
    head_dims: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    seeds: int | None = None,
    learning_rates: Sequence[float] | None = None,
) -> dict[str, Sequence[Any]]:
    """The axes of a measurement: heads, length and seed, and in between those of which values are given."""
    seeds = SEEDS if seeds is None else seeds
    require_count("seeds", seeds)
    require_within(f"seeds is {shortened(seeds)}", seeds, "HEADCOUNT_MAX_MODELS")
    given = {"heads": heads, "ranks": ranks, "kv_heads": kv_heads, "head_dims": head_dims, "lengths": lengths}
    for name, values in (given | {"learning_rates": learning_rates}).items():
        several = values is None or (isinstance(values, Iterable) and not isinstance(values, str))
        require(several, what=name, given=values, needed="a sequence of values, such as [1, 2, 4]")
    axes: dict[str, Sequence[Any]] = {"heads": HEADS if heads is None else heads}
    axes |= _given({"rank": ranks, "kv_heads": kv_heads, "head_dim": head_dims})
    axes |= {"length": lengths_for(task) if lengths is None else lengths}
    axes |= {} if learning_rates is None else {"learning_rate": learning_rates}
    return axes | {"seed": range(seeds)}


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in _given(options).items():
        raise InputError(f"{name} has no use here: {why}.", what=name, given=value, needed="left out")
