"""Advance members by some training steps in one call of the fused kernels: forward, backward, clipping and Adam.

`advance` does so in XLA's stream, one call after another. `advance_aside` does so next to that stream on a GPU, of
which a bucket of few members fills a small part: the kernels of several calls run at the same time. A call returns at
once; its results may be read, and its arguments let go, when `join` was called after it.

A member's weights are one vector, its leaves one after another, and so are Adam's two moments. What one step is, is
said by `engine.train.Program.step_one`, which the tests compare with.
"""

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._choices import POSITIONS, Positions
from .library import kernels_for


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
    """Settings of a training step, and whether the targets are labels."""

    labels: bool
    clip: float
    second_moment_decay: float
    weight_decay: float


class Moving(NamedTuple):
    """State that the kernels change: weights, and Adam's moments."""

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
    """Return the members after `count` more steps, and the sum of their batches' errors before each update.

    The memory of `moving` is used up. `taken` are the steps that each member has taken, `heads` its heads: those beyond
    are padding, and 0 is an empty slot, which stays as it is. `count` is at most the room that `rates`, the learning
    rate of every step, and `chosen`, the examples of its batch, have. A target that is a label is one number.
    """
    results = [jax.ShapeDtypeStruct(each.shape, jnp.float32) for each in (*moving, taken)]
    call = jax.ffi.ffi_call("headcount_advance", results, input_output_aliases={0: 0, 1: 1, 2: 2})
    *moved, error = call(*moving, taken, heads, count, rates, chosen, tokens, targets, **attributes(sizes, step))
    return Moving(*moved), error


def attributes(sizes: ModelSizes, step: Step) -> dict[str, np.generic]:
    """Return the attributes of a kernel call: the model and its training."""
    plain = asdict(sizes) | asdict(step)
    plain |= {"positions": POSITIONS.index(sizes.positions), "objective": plain.pop("labels")}
    return {name: np.float32(value) if isinstance(value, float) else np.int64(value) for name, value in plain.items()}


class Aside(NamedTuple):
    """Buffers of a call; all must live until `join`."""

    moving: Moving
    totals: Float[Array, " members"]
    scratch: Float[Array, " floats"]


def advance_aside(
    moving: Moving,
    totals: Float[Array, " members"],
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
) -> Aside:
    """Do as `advance`, next to XLA's stream; errors are added to `totals`, whose memory is used up too."""
    members, _, batch = chosen.shape
    scratch = jax.ShapeDtypeStruct((scratch_floats(sizes, members, batch),), jnp.float32)
    results = [*(jax.ShapeDtypeStruct(each.shape, jnp.float32) for each in (*moving, totals)), scratch]
    aliases = {0: 0, 1: 1, 2: 2, 3: 3}
    call = jax.ffi.ffi_call("headcount_advance_aside", results, input_output_aliases=aliases, has_side_effect=True)
    given = (taken, heads, count, rates, chosen, tokens, targets)
    *moved, totals, room = call(*moving, totals, *given, **attributes(sizes, step))
    return Aside(Moving(*moved), totals, room)


@jax.jit
def join(token: Int[Array, ""]) -> Int[Array, ""]:
    """Return the token, once everything next to XLA's stream is done; what is called later comes after that."""
    result = jax.ShapeDtypeStruct(token.shape, token.dtype)
    return jax.ffi.ffi_call("headcount_join", result, has_side_effect=True)(token)


def share(calls: Sequence[tuple[int, int, int]]) -> None:
    """Say which calls come next, up to `join`: each takes a part of the GPU that fits its work.

    A call is its members, its batch and its length. This decides how fast they are, never what they compute.
    """
    library = _library()
    library.headcount_kernels_gpu_together(sum(library.headcount_kernels_gpu_work(*call) for call in calls))


@functools.cache
def scratch_floats(sizes: ModelSizes, members: int, batch: int) -> int:
    """Return the most floats of scratch memory that a call needs on any GPU."""
    model = (sizes.length, sizes.dim, sizes.code, sizes.hidden, sizes.heads, sizes.groups, sizes.rank, sizes.head_dim)
    return _library().headcount_kernels_gpu_scratch(
        *model, sizes.outputs, POSITIONS.index(sizes.positions), members, batch
    )


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(kernels_for("gpu").path))
    for function, arguments in (("work", 3), ("scratch", 12), ("together", 1)):
        symbol = getattr(library, f"headcount_kernels_gpu_{function}")
        symbol.restype, symbol.argtypes = ctypes.c_int64, [ctypes.c_int64] * arguments
    library.headcount_kernels_gpu_together.restype = None
    return library
