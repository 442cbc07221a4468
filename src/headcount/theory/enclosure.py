"""Enclosures of JAX functions: the same code a model or a task runs, evaluated on intervals instead of numbers.

A function is traced to its jaxpr, and every operation in it is replaced by one of `intervals`. What is enclosed is the
program itself, derivatives included, read as a function of real numbers: a cast to float32 on the way is not seen. An
operation without a rule is refused by name.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from scipy.special import erf, expit

from . import intervals
from .intervals import EnclosureError, Interval, point

INNER = (
    "jit",
    "pjit",
    "closed_call",
    "remat",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
)
"""Operations that only hold a function."""
CARRYING = ("broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy", "select_n")
"""Operations through which a NaN may pass that is chosen nowhere, as in a variance of no numbers."""
MOVING = ("copy", "copy_p", "gather", "dynamic_slice", "pad", "rev", "tile", "sort", "cummax", "cummin")
"""Operations without rounding that increase in every entry, mostly because they only move entries about."""


def enclose(function: Callable[..., Any], *boxes: Interval) -> Interval:
    """An interval that holds function(x, ..) for all x in the boxes; the function takes and gives one array each.

    Call it under `jax.enable_x64(True)`: tracing must not cut the numbers short.
    """
    if jnp.asarray(0.0).dtype != jnp.float64:
        raise EnclosureError("an enclosure wants float64; use jax.enable_x64(True).")
    shapes = [jax.ShapeDtypeStruct(box.shape, jnp.float64) for box in boxes]
    closed = jax.make_jaxpr(function)(*shapes)
    with np.errstate(invalid="ignore", over="ignore"):
        (result,) = _evaluate(closed.jaxpr, [_constant(value) for value in closed.consts], list(boxes))
    return _checked(result)


def _constant(value: Any) -> Interval:
    array = np.asarray(value)
    if jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(np.float64)  # exact: the weights of a model are float32 numbers
    return point(array)


def _evaluate(jaxpr: Jaxpr, constants: list[Interval], arguments: list[Interval]) -> list[Interval]:
    known: dict[Any, Interval] = dict(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> Interval:
        return _constant(variable.val) if isinstance(variable, Literal) else known[variable]

    for equation in _needed(jaxpr):
        inputs = [read(variable) for variable in equation.invars]
        name = equation.primitive.name
        if name not in (*INNER, *CARRYING):
            inputs = [_checked(x) for x in inputs]
        outputs = _apply(name, inputs, equation.params, equation)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _checked(x: Interval) -> Interval:
    """`x`, unless it holds what no comparison could see through."""
    if jnp.issubdtype(x.low.dtype, jnp.floating):
        if x.low.dtype != np.float64:
            raise EnclosureError(f"numbers of type {x.low.dtype} have no bound.")
        if np.any(np.isnan(x.low) | np.isnan(x.high)):
            raise EnclosureError("something on the way is not a number.")
    return x


def _needed(jaxpr: Jaxpr) -> list[Any]:
    """The equations the outputs rest on: tracing a derivative leaves comparisons behind that nothing uses."""
    wanted = {variable for variable in jaxpr.outvars if not isinstance(variable, Literal)}
    kept = []
    for equation in reversed(jaxpr.eqns):
        if any(variable in wanted for variable in equation.outvars):
            kept.append(equation)
            wanted.update(variable for variable in equation.invars if not isinstance(variable, Literal))
    return kept[::-1]


def _apply(name: str, inputs: list[Interval], params: dict[str, Any], equation: Any) -> list[Interval]:
    if name in INNER:
        inner = next(value for value in params.values() if isinstance(value, ClosedJaxpr | Jaxpr))
        consts = [_constant(value) for value in inner.consts] if isinstance(inner, ClosedJaxpr) else []
        return _evaluate(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner, consts, inputs)
    if _is_constant(equation, inputs):
        return _exactly(equation, inputs)
    if name in ("and", "or", "not") and any(x.low.dtype != bool for x in inputs):
        raise EnclosureError(f'"{name}" of whole numbers that depend on the input has no bound.')
    if name in ARITHMETIC and any(_is_whole(x) for x in inputs):
        raise EnclosureError(f'"{name}" of whole numbers that depend on the input has no bound.')
    if name in MOVING:
        return _at_both_ends(equation, inputs)
    if name not in RULES:
        raise EnclosureError(f'no rule encloses the operation "{name}".')
    result = RULES[name](*inputs, **params)
    return result if isinstance(result, list) else [result]


def _is_whole(x: Interval) -> bool:
    return not np.issubdtype(x.low.dtype, np.floating)


def _is_constant(equation: Any, inputs: list[Interval]) -> bool:
    """Whether whole numbers that do not depend on the input become whole numbers."""
    known = all(_is_whole(x) and np.array_equal(x.low, x.high) for x in inputs)
    return bool(inputs) and known and not any(jnp.issubdtype(v.aval.dtype, jnp.floating) for v in equation.outvars)


def _exactly(equation: Any, inputs: list[Interval]) -> list[Interval]:
    """Whole numbers and truth values that do not depend on the input, computed by JAX itself."""
    found = equation.primitive.bind(*(jnp.asarray(x.low) for x in inputs), **equation.params)
    parts = found if equation.primitive.multiple_results else [found]
    return [_constant(part) for part in parts]


def _at_both_ends(equation: Any, inputs: list[Interval]) -> list[Interval]:
    name = equation.primitive.name
    for index in inputs[1:]:
        if not (np.issubdtype(index.low.dtype, np.floating) or np.array_equal(index.low, index.high)):
            raise EnclosureError(f'"{name}" at places that depend on the input has no bound.')
    if len(equation.outvars) != 1:
        raise EnclosureError(f'"{name}" of several arrays at once has no bound.')
    low, high = (
        equation.primitive.bind(*(jnp.asarray(end) for end in ends), **equation.params)
        for ends in ([x.low for x in inputs], [x.high for x in inputs])
    )
    low, high = (np.asarray(end[0] if equation.primitive.multiple_results else end) for end in (low, high))
    return [Interval(low, high)]


def _dot_general(x: Interval, y: Interval, *, dimension_numbers: Any, **_) -> Interval:
    """Both operands brought to (batch, rows, terms) and (batch, terms, columns)."""
    (summed_x, summed_y), (batch_x, batch_y) = dimension_numbers
    free_x = [axis for axis in range(len(x.shape)) if axis not in (*summed_x, *batch_x)]
    free_y = [axis for axis in range(len(y.shape)) if axis not in (*summed_y, *batch_y)]
    batch = [x.shape[axis] for axis in batch_x]
    rows, columns = [x.shape[axis] for axis in free_x], [y.shape[axis] for axis in free_y]
    count, terms = int(np.prod(batch)), int(np.prod([x.shape[axis] for axis in summed_x]))
    height, width = int(np.prod(rows)), int(np.prod(columns))
    left = x.map(lambda a: a.transpose(*batch_x, *free_x, *summed_x).reshape(count, height, terms))
    right = y.map(lambda a: a.transpose(*batch_y, *summed_y, *free_y).reshape(count, terms, width))
    return intervals.product(left, right).map(lambda a: a.reshape(*batch, *rows, *columns))


def _reshape(x: Interval, *, new_sizes: Any, dimensions: Any = None, **_) -> Interval:
    if dimensions is not None:
        raise EnclosureError("a reshape that turns axes has no rule.")
    return x.map(lambda a: a.reshape(new_sizes))


def _broadcast(x: Interval, *_, shape: Any, broadcast_dimensions: Any, **__) -> Interval:
    spread = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        spread[place] = x.shape[axis]
    return x.map(lambda a: np.broadcast_to(a.reshape(spread), shape))


def _slice(x: Interval, *, start_indices: Any, limit_indices: Any, strides: Any, **_) -> Interval:
    steps = strides or (1,) * len(start_indices)
    where = tuple(slice(*edges) for edges in zip(start_indices, limit_indices, steps, strict=True))
    return x.map(lambda a: a[where])


def _concatenate(*parts: Interval, dimension: Any, **_) -> Interval:
    low, high = ([getattr(part, end) for part in parts] for end in ("low", "high"))
    return Interval(np.concatenate(low, axis=dimension), np.concatenate(high, axis=dimension))


def _stack(*parts: Interval, axis: Any, **_) -> Interval:
    return Interval(np.stack([part.low for part in parts], axis), np.stack([part.high for part in parts], axis))


def _unstack(x: Interval, *, axis: Any, **_) -> list[Interval]:
    ends = zip(np.moveaxis(x.low, axis, 0), np.moveaxis(x.high, axis, 0), strict=True)
    return [Interval(low, high) for low, high in ends]


def _split(x: Interval, *, sizes: Any, axis: Any, **_) -> list[Interval]:
    edges = np.cumsum(sizes)[:-1]
    return [
        Interval(low, high)
        for low, high in zip(np.split(x.low, edges, axis), np.split(x.high, edges, axis), strict=True)
    ]


def _select(which: Interval, *cases: Interval, **_) -> Interval:
    if len(cases) != 2:
        raise EnclosureError(f"a choice between {len(cases)} cases has no rule.")
    return intervals.choose(which, *cases)


def _convert(x: Interval, *, new_dtype: Any, **_) -> Interval:
    if jnp.issubdtype(new_dtype, jnp.floating):
        return x.map(lambda a: a.astype(np.float64))  # read as real numbers: a cast to float32 is no rounding here
    if np.issubdtype(x.low.dtype, np.floating):
        raise EnclosureError("a number cut to a whole one has no bound.")
    if not np.can_cast(x.low.dtype, new_dtype, "safe"):
        raise EnclosureError("a whole number that depends on the input has no bound in another type.")
    return x.map(lambda a: a.astype(new_dtype))


def _iota(*_, shape: Any, dimension: Any, dtype: Any, **__) -> Interval:
    places = np.arange(shape[dimension], dtype=np.float64 if jnp.issubdtype(dtype, jnp.floating) else dtype)
    spread = [1] * len(shape)
    spread[dimension] = -1
    return point(np.broadcast_to(places.reshape(spread), shape))


def _wave(x: Interval, phase: float) -> Interval:
    """sin(x + phase): its ends, and 1 or -1 where a crest or a trough may lie between."""
    low, high = x.low + phase, x.high + phase
    ends = (np.sin(low), np.sin(high))
    slack = ULPS_OF_WAVE * (1 + np.maximum(np.abs(low), np.abs(high)))
    turn = 2 * np.pi

    def holds(place: float) -> np.ndarray:
        return np.asarray(np.ceil((low - slack - place) / turn) <= np.floor((high + slack - place) / turn))

    least, most = np.minimum(*ends) - slack, np.maximum(*ends) + slack
    return Interval(
        np.where(holds(-np.pi / 2), -1.0, np.maximum(least, -1.0)),
        np.where(holds(np.pi / 2), 1.0, np.minimum(most, 1.0)),
    )


def _power(x: Interval, exponent: Interval, **_) -> Interval:
    """x^p for x from 0 on and one p from 0 on for all of them."""
    power = exponent.low.ravel()[0] if exponent.low.size else 1.0
    if np.any(exponent.low != power) or np.any(exponent.high != power) or power < 0 or np.any(x.low < 0):
        raise EnclosureError("a power has a bound for one exponent from 0 on and numbers from 0 on.")
    return intervals.increasing(lambda a: a**power, x)


ULPS_OF_WAVE = 2.0**-48


def _differ(x: Interval, y: Interval, **_) -> Interval:
    same = intervals.equals(x, y)
    return Interval(~same.high, ~same.low)


def _increasing(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Interval]:
    return lambda x, **_: intervals.increasing(function, x)


def _ends(function: Callable[..., np.ndarray]) -> Callable[..., Interval]:
    """An exact function that increases in every argument."""
    return lambda *inputs, **_: Interval(function(*(x.low for x in inputs)), function(*(x.high for x in inputs)))


def _rule(function: Callable[..., Interval]) -> Callable[..., Interval]:
    return lambda *inputs, **_: function(*inputs)


ARITHMETIC = ("add", "add_any", "sub", "mul", "div", "neg", "abs", "square", "integer_pow", "dot_general")
ARITHMETIC += ("reduce_prod", "rem", "xor", "shift_left", "shift_right_logical")
"""Operations whose rules are of real numbers; whole numbers wrap around, and divide with a remainder. (Sums of them
are counts, in what people write.)"""

RULES: dict[str, Callable[..., Interval | list[Interval]]] = {
    "add": _rule(intervals.add),
    "add_any": _rule(intervals.add),
    "sub": _rule(intervals.subtract),
    "mul": _rule(intervals.multiply),
    "div": _rule(intervals.divide),
    "neg": _rule(intervals.negative),
    "abs": _rule(intervals.absolute),
    "square": lambda x, **_: intervals.power(x, 2),
    "integer_pow": lambda x, *, y, **_: intervals.power(x, y),
    "dot_general": _dot_general,
    "reduce_sum": lambda x, *, axes, **_: intervals.total(x, tuple(int(axis) for axis in axes)),
    "reduce_max": lambda x, *, axes, **_: x.map(lambda a: a.max(axis=tuple(axes))),
    "reduce_min": lambda x, *, axes, **_: x.map(lambda a: a.min(axis=tuple(axes))),
    "max": _ends(np.maximum),
    "min": _ends(np.minimum),
    "and": _ends(np.logical_and),
    "or": _ends(np.logical_or),
    "not": lambda x, **_: Interval(~x.high, ~x.low),
    "reduce_and": lambda x, *, axes, **_: x.map(lambda a: a.all(axis=tuple(axes))),
    "reduce_or": lambda x, *, axes, **_: x.map(lambda a: a.any(axis=tuple(axes))),
    "reduce_prod": lambda x, *, axes, **_: intervals.multiplied(x, tuple(int(axis) for axis in axes)),
    "is_finite": lambda x, **_: Interval(np.isfinite(x.low) & np.isfinite(x.high), np.ones(x.shape, bool)),
    "ne": _differ,
    "gt": lambda x, y, **_: intervals.greater(x, y, equal=False),
    "ge": lambda x, y, **_: intervals.greater(x, y, equal=True),
    "lt": lambda x, y, **_: intervals.greater(y, x, equal=False),
    "le": lambda x, y, **_: intervals.greater(y, x, equal=True),
    "eq": _rule(intervals.equals),
    "select_n": _select,
    "exp": _increasing(np.exp),
    "exp2": _increasing(np.exp2),
    "expm1": _increasing(np.expm1),
    "log": _increasing(np.log),
    "log1p": _increasing(np.log1p),
    "sqrt": _increasing(np.sqrt),
    "tanh": _increasing(np.tanh),
    "atan": _increasing(np.arctan),
    "erf": _increasing(erf),
    "logistic": _increasing(expit),
    "pow": _power,
    "sign": _ends(np.sign),
    "erfc": lambda x, **_: intervals.subtract(point(np.ones(x.shape)), intervals.increasing(erf, x)),
    "rsqrt": lambda x, **_: intervals.divide(point(np.ones(x.shape)), intervals.increasing(np.sqrt, x)),
    "sin": lambda x, **_: _wave(x, 0.0),
    "cos": lambda x, **_: _wave(x, np.pi / 2),
    "stop_gradient": lambda x, **_: x,
    "convert_element_type": _convert,
    "broadcast_in_dim": _broadcast,
    "transpose": lambda x, *, permutation, **_: x.map(lambda a: a.transpose(permutation)),
    "reshape": _reshape,
    "squeeze": lambda x, *, dimensions, **_: x.map(lambda a: a.squeeze(tuple(dimensions))),
    "expand_dims": lambda x, *, dimensions, **_: x.map(lambda a: np.expand_dims(a, tuple(dimensions))),
    "slice": _slice,
    "concatenate": _concatenate,
    "split": _split,
    "stack": _stack,
    "unstack": _unstack,
    "iota": _iota,
}
