"""What is tried on data with labels where nothing is said: the first paper's encoders, and a recipe for them."""

from typing import Any

from ..models import EncoderSpec
from ..store import TrainSpec
from ..tasks import Form

LABELLED_TRAIN = TrainSpec(
    steps=1000, batch=32, learning_rate=1e-3, weight_decay=0.05, second_moment_decay=0.999, train_examples=1_000_000
)
"""AdamW, on all the examples there are; as many steps as two cores do in minutes, and a GPU in seconds."""


def labelled_encoder(
    form: Form, heads: int, *, head_dim: int | None = None, layers: int | None = None, **others: Any
) -> EncoderSpec:
    """An encoder of width heads x head_dim, norms first, its nets four times as wide; `others` change its other fields.

    Published: for images four layers and head_dim 16, for candidates two layers and head_dim 32. Ours: gelu, and a
    tenth of the numbers dropped on images, none on candidates.
    """
    images = form.graded_by == "class"
    head_dim = head_dim or (16 if images else 32)
    width = heads * head_dim
    options = {
        "rank": head_dim,
        "hidden": 4 * width,
        "dropout": 0.1 if images else 0.0,
        "positions": "additive" if form.uses_positions else "none",
    } | others
    return EncoderSpec(
        heads=heads,
        head_dim=head_dim,
        width=width,
        layers=layers or (4 if images else 2),
        norm="layer",
        norm_first=True,
        final_norm=True,
        activation="gelu",
        answered_at=form.answered_at,
        query_is_key=True,
        masks_padding=form.padded,
        always_maps=True,
        **options,
    )
