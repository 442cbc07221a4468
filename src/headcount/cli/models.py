"""From what a person types about a model to its spec, by head count."""

from collections.abc import Callable
from typing import Any

from .._errors import require
from ..engine.labelled import labelled_encoder
from ..engine.sweep import ENCODER_HIDDEN
from ..models import AbstractSpec, ClassTokenSpec, EncoderSpec
from ..tasks import AnyTask, LabelledTask


def models_for(
    task: AnyTask,
    *,
    rank: int | None,
    head_dim: int | None,
    total_dim: int | None,
    hidden: int | None,
    layers: int | None,
    positions: str,
    beta: float,
    multiplier: int,
) -> Callable[[int], AbstractSpec]:
    """The class-token model where the task is answered for the whole sequence, else an encoder as wide as a token.

    Data with labels gets the first paper's encoders, two layers of them unless more are asked for.
    """
    require(head_dim is None or total_dim is None, "give --head-dim or --total-dim, not both.")
    if isinstance(task, LabelledTask):
        unused = {"--total-dim": total_dim, "--hidden": hidden, "--multiplier": None if multiplier == 1 else multiplier}
        unused |= {"--beta": None if beta == ClassTokenSpec.beta else beta}
        for option, given in unused.items():
            require(given is None, f"{option} is not for data with labels, whose models grow with their heads.")
        others = {} if rank is None else {"rank": rank}
        others |= {} if positions == "auto" else {"positions": positions}
        return lambda heads: labelled_encoder(task.form, heads, head_dim=head_dim, layers=layers or 2, **others)
    layers = layers or ClassTokenSpec.layers
    if positions == "auto":
        positions = "additive" if task.uses_positions else "none"
    require(rank is None or total_dim is None, "give --ranks or --total-dim, which sets the rank, not both.")
    shared: dict[str, Any] = {"layers": layers, "positions": positions}
    if head_dim is not None:
        shared["head_dim"] = head_dim
    if task.answered_at == "sequence":
        require(multiplier == 1, f"--multiplier is for encoders, and {task.name} takes none; leave it out.")
        shared |= {"hidden": ClassTokenSpec.hidden if hidden is None else hidden, "beta": beta}
        if total_dim is not None:
            return lambda heads: ClassTokenSpec.with_total_dim(total_dim, heads=heads, **shared)
        shared |= {} if rank is None else {"rank": rank}
        return lambda heads: ClassTokenSpec(heads=heads, **shared)
    require(beta == ClassTokenSpec.beta, f"--beta is for class-token models, and {task.name} takes none; leave it out.")
    shared |= {"hidden": ENCODER_HIDDEN if hidden is None else hidden, "multiplier": multiplier}
    shared |= {"width": task.dim, "answered_at": task.answered_at, "norm_first": True}
    if total_dim is not None:
        return lambda heads: EncoderSpec.with_total_dim(total_dim, heads=heads, **shared)
    return lambda heads: EncoderSpec(heads=heads, rank=task.dim if rank is None else rank, **shared)
