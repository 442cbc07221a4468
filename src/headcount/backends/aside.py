"""Advance members beside XLA's stream on a GPU: the kernels of several calls run at the same time.

XLA does one thing after another on its stream, and a bucket of few members fills a small part of a GPU. A call returns
at once; its results may be read, and its arguments let go, when `join` was called after it.
"""

import ctypes
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._choices import POSITIONS
from .advance import ModelSizes, Moving, Step, attributes
from .library import kernels


class Aside(NamedTuple):
    """What a call works on; all of it must live until `join`."""

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
    """`advance` beside XLA's stream; the errors of all steps are added to `totals`, whose memory is used up, too."""
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
    """The token, once everything beside XLA's stream is done; what is called later comes after that."""
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
    """The most floats of scratch memory that a call needs on any GPU."""
    model = (sizes.length, sizes.dim, sizes.code, sizes.hidden, sizes.heads, sizes.groups, sizes.rank, sizes.head_dim)
    return _library().headcount_kernels_gpu_scratch(
        *model, sizes.outputs, POSITIONS.index(sizes.positions), members, batch
    )


@functools.cache
def _library() -> ctypes.CDLL:
    loaded = kernels("gpu").library
    assert loaded is not None
    library = ctypes.CDLL(str(loaded.path))
    for function, arguments in (("work", 3), ("scratch", 12), ("together", 1)):
        symbol = getattr(library, f"headcount_kernels_gpu_{function}")
        symbol.restype, symbol.argtypes = ctypes.c_int64, [ctypes.c_int64] * arguments
    library.headcount_kernels_gpu_together.restype = None
    return library
