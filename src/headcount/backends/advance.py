"""Advance members by some training steps in one call of the fused kernels: forward, backward, clipping and Adam.

A member's weights are one vector, its leaves one after another, and so are Adam's two moments. What one step is, is
said by `engine.train.Program.step_one`, which the tests compare with.
"""

from dataclasses import asdict, dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._choices import POSITIONS, Positions


@dataclass(frozen=True, kw_only=True)
class ModelSizes:
    """A model of one layer as the kernels see it; `heads` is how many the arrays have room for."""

    length: int
    dim: int
    code: int
    hidden: int
    heads: int
    groups: int
    rank: int
    head_dim: int
    outputs: int
    positions: Positions
    masks: bool
    beta: float


@dataclass(frozen=True, kw_only=True)
class Step:
    """What training does with a gradient, and whether the targets are labels."""

    labels: bool
    clip: float
    second_moment_decay: float
    weight_decay: float


class Moving(NamedTuple):
    """What changes: weights, and Adam's moments."""

    weights: Float[Array, "members parameters"]
    mean: Float[Array, "members parameters"]
    square: Float[Array, "members parameters"]


def advance(
    moving: Moving,
    taken: Int[Array, " members"],
    heads: Int[Array, " members"],
    count: Int[Array, ""],
    rates: Float[Array, "members room"],
    chosen: Int[Array, "members room batch"],
    tokens: Float[Array, "examples length dim"],
    targets: Float[Array, "examples outputs"],
    *,
    sizes: ModelSizes,
    step: Step,
) -> tuple[Moving, Float[Array, " members"]]:
    """The members after `count` more steps, and the sum over these of their batch's error before the update.

    Args:
        moving: Weights and moments; their memory is used up.
        taken: Steps that each member has taken.
        heads: Heads that each member has; those beyond are padding. 0: an empty slot, which stays as it is.
        count: How many steps to take now, at most the room that `rates` and `chosen` have.
        rates: The learning rate of every step.
        chosen: The examples of every step's batch.
        tokens: All examples.
        targets: Their targets; a label is one number.
        sizes: The model.
        step: The training.
    """
    results = [jax.ShapeDtypeStruct(each.shape, jnp.float32) for each in (*moving, taken)]
    call = jax.ffi.ffi_call("headcount_advance", results, input_output_aliases={0: 0, 1: 1, 2: 2})
    *moved, error = call(*moving, taken, heads, count, rates, chosen, tokens, targets, **attributes(sizes, step))
    return Moving(*moved), error


def attributes(sizes: ModelSizes, step: Step) -> dict[str, np.generic]:
    """What the kernels are told of a model and its training."""
    plain = asdict(sizes) | asdict(step)
    plain |= {"positions": POSITIONS.index(sizes.positions), "objective": plain.pop("labels")}
    return {name: np.float32(value) if isinstance(value, float) else np.int64(value) for name, value in plain.items()}
