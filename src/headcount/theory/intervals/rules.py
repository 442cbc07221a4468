"""Rules of enclosure: for every JAX operation, the operation on intervals that contains its result."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import erf, expit

from . import arithmetic
from .arithmetic import Box, EnclosureError, point

WAVE_SLACK = 2.0**-48
"""Error of sin and cos, relative to 1 and to the argument."""


def _dot_general(x: Box, y: Box, *, dimension_numbers: Any, **_) -> Box:
    """Enclose a matrix product, after transposing to (batch, rows, terms) and (batch, terms, columns)."""
    (summed_x, summed_y), (batch_x, batch_y) = dimension_numbers
    free_x = [axis for axis in range(len(x.shape)) if axis not in (*summed_x, *batch_x)]
    free_y = [axis for axis in range(len(y.shape)) if axis not in (*summed_y, *batch_y)]
    batch = [x.shape[axis] for axis in batch_x]
    rows, columns = [x.shape[axis] for axis in free_x], [y.shape[axis] for axis in free_y]
    count, terms = int(np.prod(batch)), int(np.prod([x.shape[axis] for axis in summed_x]))
    height, width = int(np.prod(rows)), int(np.prod(columns))
    left = x.map(lambda a: a.transpose(*batch_x, *free_x, *summed_x).reshape(count, height, terms))
    right = y.map(lambda a: a.transpose(*batch_y, *summed_y, *free_y).reshape(count, terms, width))
    return arithmetic.product(left, right).map(lambda a: a.reshape([*batch, *rows, *columns]))


def _reshape(x: Box, *, new_sizes: Any, dimensions: Any = None, **_) -> Box:
    if dimensions is not None:
        raise EnclosureError("a reshape that permutes axes has no rule.")
    return x.map(lambda a: a.reshape(new_sizes))


def _broadcast(x: Box, *_, shape: Any, broadcast_dimensions: Any, **__) -> Box:
    spread = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        spread[place] = x.shape[axis]
    return x.map(lambda a: np.broadcast_to(a.reshape(spread), shape))


def _slice(x: Box, *, start_indices: Any, limit_indices: Any, strides: Any, **_) -> Box:
    steps = strides or (1,) * len(start_indices)
    where = tuple(slice(*edges) for edges in zip(start_indices, limit_indices, steps, strict=True))
    return x.map(lambda a: a[where])


def _joined(function: Callable[..., np.ndarray], parts: tuple[Box, ...], axis: int) -> Box:
    return Box(function([part.low for part in parts], axis), function([part.high for part in parts], axis))


def _parted(x: Box, function: Callable[[np.ndarray], Any]) -> list[Box]:
    return [Box(low, high) for low, high in zip(function(x.low), function(x.high), strict=True)]


def _select(which: Box, *cases: Box, **_) -> Box:
    if len(cases) != 2:
        raise EnclosureError(f"a select between {len(cases)} cases has no rule.")
    return arithmetic.choose(which, *cases)


def _convert(x: Box, *, new_dtype: Any, **_) -> Box:
    if jnp.issubdtype(new_dtype, jnp.floating):
        return x.map(lambda a: a.astype(np.float64))  # over the real numbers a cast to float32 does not round
    if np.issubdtype(x.low.dtype, np.floating):
        raise EnclosureError("a cast from float to integer has no bound.")
    if not np.can_cast(x.low.dtype, new_dtype, "safe"):
        raise EnclosureError("a narrowing cast of an integer that depends on the input has no bound.")
    return x.map(lambda a: a.astype(new_dtype))


def _iota(*_, shape: Any, dimension: Any, dtype: Any, **__) -> Box:
    places = np.arange(shape[dimension], dtype=np.float64 if jnp.issubdtype(dtype, jnp.floating) else dtype)
    spread = [1] * len(shape)
    spread[dimension] = -1
    return point(np.broadcast_to(places.reshape(spread), shape))


def _wave(x: Box, phase: float) -> Box:
    """sin(x + phase): its values at both ends, and 1 or -1 where a maximum or minimum may lie between."""
    low, high = x.low + phase, x.high + phase
    ends = (np.sin(low), np.sin(high))
    slack = WAVE_SLACK * (1 + np.maximum(np.abs(low), np.abs(high)))
    turn = 2 * np.pi

    def contains(place: float) -> np.ndarray:
        """Return whether place + 2 pi k may lie inside, for some k."""
        return np.asarray(np.ceil((low - slack - place) / turn) <= np.floor((high + slack - place) / turn))

    smallest, largest = np.minimum(*ends) - slack, np.maximum(*ends) + slack
    return Box(
        np.where(contains(-np.pi / 2), -1.0, np.maximum(smallest, -1.0)),
        np.where(contains(np.pi / 2), 1.0, np.minimum(largest, 1.0)),
    )


def _power(x: Box, exponent: Box, **_) -> Box:
    """x^p for x >= 0 and a constant p >= 0."""
    power = exponent.low.ravel()[0] if exponent.low.size else 1.0
    if np.any(exponent.low != power) or np.any(exponent.high != power) or power < 0 or np.any(x.low < 0):
        raise EnclosureError("a power has a bound only for a constant exponent >= 0 and a base >= 0.")
    return arithmetic.increasing(lambda a: a**power, x)


def _sort(*arrays: Box, dimension: int, **_) -> Box:
    if len(arrays) != 1:
        raise EnclosureError("a sort of several arrays at once has no bound.")
    return arrays[0].map(lambda a: np.sort(a, axis=dimension))


def _running(function: np.ufunc) -> Callable[..., Box]:
    """Return the rule of a running maximum or minimum along an axis, from its end where `reverse`."""

    def rule(x: Box, *, axis: int, reverse: bool, **_) -> Box:
        turned = (lambda a: np.flip(a, axis)) if reverse else (lambda a: a)
        return x.map(lambda a: turned(function.accumulate(turned(a), axis)))

    return rule


def _ends(function: Callable[..., np.ndarray]) -> Callable[..., Box]:
    """Return the rule of an exact function that increases in every argument."""
    return lambda *inputs, **_: Box(function(*(x.low for x in inputs)), function(*(x.high for x in inputs)))


ARITHMETIC = ("add", "add_any", "sub", "mul", "div", "neg", "abs", "square", "integer_pow", "dot_general")
ARITHMETIC += ("reduce_prod", "rem", "xor", "shift_left", "shift_right_logical")
"""Operations whose rules hold for real numbers only: integers overflow, and divide with a remainder. (Sums of integers
are allowed: they are counts.)"""

EXACT = {"max": np.maximum, "min": np.minimum, "and": np.logical_and, "or": np.logical_or, "sign": np.sign}
SMOOTH = {"exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}
SMOOTH |= {"tanh": np.tanh, "atan": np.arctan, "erf": erf, "logistic": expit}
REDUCTIONS = {"reduce_max": np.max, "reduce_min": np.min, "reduce_and": np.all, "reduce_or": np.any}
"""Functions that increase in every argument: without rounding, with rounding, over axes."""

RULES: dict[str, Callable[..., Box | list[Box]]] = {
    **{name: _ends(function) for name, function in EXACT.items()},
    **{name: lambda x, *, _f=function, **_: arithmetic.increasing(_f, x) for name, function in SMOOTH.items()},
    **{
        name: lambda x, *, axes, _f=function, **_: x.map(lambda a: _f(a, axis=tuple(axes)))
        for name, function in REDUCTIONS.items()
    },
    "add": lambda x, y, **_: arithmetic.add(x, y),
    "add_any": lambda x, y, **_: arithmetic.add(x, y),
    "sub": lambda x, y, **_: arithmetic.subtract(x, y),
    "mul": lambda x, y, **_: arithmetic.multiply(x, y),
    "div": lambda x, y, **_: arithmetic.divide(x, y),
    "neg": lambda x, **_: arithmetic.negative(x),
    "abs": lambda x, **_: Box(x.mignitude, x.magnitude),
    "square": lambda x, **_: arithmetic.power(x, 2),
    "integer_pow": lambda x, *, y, **_: arithmetic.power(x, y),
    "pow": _power,
    "rsqrt": lambda x, **_: arithmetic.divide(point(np.ones(x.shape)), arithmetic.increasing(np.sqrt, x)),
    "erfc": lambda x, **_: arithmetic.subtract(point(np.ones(x.shape)), arithmetic.increasing(erf, x)),
    "sin": lambda x, **_: _wave(x, 0.0),
    "cos": lambda x, **_: _wave(x, np.pi / 2),
    "dot_general": _dot_general,
    "reduce_sum": lambda x, *, axes, **_: arithmetic.sum_over(x, tuple(int(axis) for axis in axes)),
    "reduce_prod": lambda x, *, axes, **_: arithmetic.product_over(x, tuple(int(axis) for axis in axes)),
    "not": lambda x, **_: Box(~x.high, ~x.low),
    "is_finite": lambda x, **_: Box(np.isfinite(x.low) & np.isfinite(x.high), np.ones(x.shape, bool)),
    "eq": lambda x, y, **_: arithmetic.equals(x, y),
    "ne": lambda x, y, **_: RULES["not"](arithmetic.equals(x, y)),
    "gt": lambda x, y, **_: Box(x.low > y.high, x.high > y.low),
    "ge": lambda x, y, **_: Box(x.low >= y.high, x.high >= y.low),
    "lt": lambda x, y, **_: Box(x.high < y.low, x.low < y.high),
    "le": lambda x, y, **_: Box(x.high <= y.low, x.low <= y.high),
    # By NumPy: XLA takes denormal numbers for zero when it compares.
    "sort": _sort,
    "cummax": _running(np.maximum),
    "cummin": _running(np.minimum),
    "select_n": _select,
    "stop_gradient": lambda x, **_: x,
    "convert_element_type": _convert,
    "broadcast_in_dim": _broadcast,
    "transpose": lambda x, *, permutation, **_: x.map(lambda a: a.transpose(permutation)),
    "reshape": _reshape,
    "squeeze": lambda x, *, dimensions, **_: x.map(lambda a: a.squeeze(tuple(dimensions))),
    "expand_dims": lambda x, *, dimensions, **_: x.map(lambda a: np.expand_dims(a, tuple(dimensions))),
    "slice": _slice,
    "concatenate": lambda *parts, dimension, **_: _joined(np.concatenate, parts, dimension),
    "stack": lambda *parts, axis, **_: _joined(np.stack, parts, axis),
    "split": lambda x, *, sizes, axis, **_: _parted(x, lambda a: np.split(a, np.cumsum(sizes)[:-1], axis)),
    "unstack": lambda x, *, axis, **_: _parted(x, lambda a: np.moveaxis(a, axis, 0)),
    "iota": _iota,
}
