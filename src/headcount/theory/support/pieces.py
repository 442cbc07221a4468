"""A function on a small box, with every comparison decided: there it equals a smooth function that can be enclosed.

The derivative of a minimum, as JAX writes it, asks which entry is equal to the result, which intervals cannot decide.
On a box where one entry is certainly the lowest, the minimum *is* that entry; likewise maxima, sorts and reads at an
index. What remains has derivatives that `enclose` bounds. They are those of the function itself: `stop_gradient` is the
identity, and custom derivatives are not used.
"""

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..intervals import Box, EnclosureError
from ..intervals.arithmetic import negative
from ..intervals.enclosure import apply_rule, constant, run_program

EXACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


class _Traced(NamedTuple):
    """An intermediate result: an interval that holds it over the box, and its value as JAX traces it."""

    interval: Box
    value: Any


def decided_on(function: Callable[[Array], Array], box: Box) -> Callable[[Array], Array]:
    """Return a smooth function that equals `function` on the box, as a function of real numbers.

    Call it under `jax.enable_x64(True)`. It raises `EnclosureError` when traced, where a minimum, a maximum or an order
    is not the same all over the box, or an operation has no rule.
    """
    closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct(box.shape, jnp.float64))

    def piece(x: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            (result,) = run_program(closed, [_Traced(box, x)], _traced, _decided_step)
        return result.value

    return piece


def _traced(value: Any) -> _Traced:
    interval = constant(value)
    return _Traced(interval, interval.low)


def _decided_step(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    name, params = equation.primitive.name, equation.params
    if name == "stop_gradient":
        return inputs  # the identity: what is enclosed is the derivative of the function, not what JAX makes of it
    if name in ("eq", "ne") and equation.invars[0] is equation.invars[1]:
        return [_traced(np.full(inputs[0].interval.shape, name == "eq"))]  # how NaN is looked for
    if name in DECIDED and _is_float(inputs[0].interval):
        return DECIDED[name](equation, inputs)
    if name in EXACT and _exact_sum(name, inputs) is not None:
        return [_traced(_exact_sum(name, inputs))]
    with jax.ensure_compile_time_eval():
        intervals = apply_rule(equation, [each.interval for each in inputs])
    if all(_is_certain(interval) for interval in intervals):
        return [_traced(interval.low) for interval in intervals]
    values = equation.primitive.bind(*(each.value for each in inputs), **params)
    values = values if equation.primitive.multiple_results else [values]
    return [_Traced(interval, value) for interval, value in zip(intervals, values, strict=True)]


def _exact_sum(name: str, inputs: list[_Traced]) -> np.ndarray | None:
    """Return a sum, difference or product of two known numbers where rounding does not change it."""
    one, other = (each.interval for each in inputs)
    if one.shape or other.shape or not all(_is_float(x) and np.array_equal(x.low, x.high) for x in (one, other)):
        return None
    if not (np.isfinite(one.low) and np.isfinite(other.low)):
        return None
    result = EXACT[name](float(one.low), float(other.low))
    same = np.isfinite(result) and EXACT[name](Fraction(float(one.low)), Fraction(float(other.low))) == Fraction(result)
    return np.asarray(result) if same else None


def _is_float(x: Box) -> bool:
    return bool(np.issubdtype(x.low.dtype, np.floating))


def _is_certain(x: Box) -> bool:
    """Return whether it is a truth value or an integer that is the same all over the box."""
    return not _is_float(x) and np.array_equal(x.low, x.high)


def _require_decided(decided: Any, name: str, why: str = "two of its values are too close together") -> None:
    if not np.all(decided):
        raise EnclosureError(f'"{name}" is not decided: {why}.')


def _lowest(x: Box, name: str) -> np.ndarray:
    """Return the index along the last axis of the entry that is certainly the lowest."""
    index = np.asarray(np.argmin(x.high, axis=-1))
    best = np.take_along_axis(x.high, index[..., None], -1)
    others = np.where(np.arange(x.shape[-1]) == index[..., None], np.inf, x.low)
    _require_decided(best < others, name)
    return index


def _picked(x: _Traced, places: np.ndarray) -> _Traced:
    """Return the entries of a flattened array at these places: a sum over a constant mask has a derivative."""
    flat = x.interval.map(np.ravel)
    interval = flat.map(lambda a: a[places])
    mask = np.arange(flat.shape[0]) == places[..., None]
    return _Traced(interval, jnp.sum(jnp.where(mask, jnp.ravel(x.value), 0.0), axis=-1))


def _reduced(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    (x,), name = inputs, equation.primitive.name
    axes = tuple(int(axis) % len(x.interval.shape) for axis in equation.params["axes"])
    kept = [axis for axis in range(len(x.interval.shape)) if axis not in axes]
    turned = x.interval.map(lambda a: _flattened_rows(a, kept, axes))
    index = _lowest(negative(turned) if "max" in name else turned, name)
    if name.startswith("arg"):
        return [_traced(index.astype(equation.params["index_dtype"]))]
    ids = _flattened_rows(np.arange(x.interval.low.size).reshape(x.interval.shape), kept, axes)
    return [_picked(x, np.asarray(np.take_along_axis(ids, index[..., None], -1)[..., 0]))]


def _flattened_rows(a: np.ndarray, kept: list[int], axes: tuple[int, ...]) -> np.ndarray:
    return a.transpose(*kept, *axes).reshape(*(a.shape[axis] for axis in kept), -1)


def _larger(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    """max and min of two arrays: one of them is certainly the larger, entry by entry."""
    one, other = inputs
    first = one.interval.low > other.interval.high
    second = other.interval.low > one.interval.high
    same = (one.interval.low == one.interval.high) & (one.interval.low == other.interval.low)
    same &= other.interval.low == other.interval.high
    name = equation.primitive.name
    _require_decided(first | second | same, name)
    take_first = first if name == "max" else second | same
    interval = Box(*(np.where(take_first, *ends) for ends in zip(_ends(one), _ends(other), strict=True)))
    return [_Traced(interval, jnp.where(take_first, one.value, other.value))]


def _ends(x: _Traced) -> tuple[np.ndarray, np.ndarray]:
    return x.interval.low, x.interval.high


def _sorted(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    """Return a sort by its first array: its order is the same all over the box, and the other arrays follow it."""
    key, axis = inputs[0].interval, equation.params["dimension"]
    order = np.argsort(key.low, axis=axis, kind="stable")
    low, high = (np.take_along_axis(end, order, axis) for end in (key.low, key.high))
    before, after = np.split(high, [key.shape[axis] - 1], axis)[0], np.split(low, [1], axis)[1]
    _require_decided(before < after, "sort")
    places = np.take_along_axis(np.arange(key.low.size).reshape(key.shape), order, axis)
    return [_moved(each, places) for each in inputs]


def _top(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    (x,), count = inputs, equation.params["k"]
    order = np.argsort(-x.interval.low, axis=-1, kind="stable")
    low, high = (np.take_along_axis(end, order, -1) for end in _ends(x))
    largest_after = np.maximum.accumulate(high[..., ::-1], -1)[..., ::-1][..., 1:]
    decided = np.concatenate([low[..., :-1] > largest_after, np.ones((*low.shape[:-1], 1), bool)], -1)
    _require_decided(decided[..., :count], "top_k")
    ids = np.arange(x.interval.low.size).reshape(x.interval.shape)
    return [_picked(x, np.take_along_axis(ids, order, -1)[..., :count]), _traced(order[..., :count].astype(np.int32))]


def _moved(x: _Traced, places: np.ndarray) -> _Traced:
    if _is_float(x.interval):
        return _picked(x, places)
    if not _is_certain(x.interval):
        raise EnclosureError("an integer that depends on the input has no bound.")
    return _traced(np.ravel(x.interval.low)[places])


def _indexed(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    """gather and dynamic_slice at indices that are the same all over the box."""
    x, indices = inputs[0], [each.interval for each in inputs[1:]]
    if not all(_is_certain(index) for index in indices):
        raise EnclosureError(f'"{equation.primitive.name}" at indices that depend on the input has no bound.')
    params = equation.params | ({"fill_value": -1} if "fill_value" in equation.params else {})
    with jax.ensure_compile_time_eval():
        ids = jnp.arange(x.interval.low.size).reshape(x.interval.shape)
        places = np.asarray(equation.primitive.bind(ids, *(jnp.asarray(index.low) for index in indices), **params))
    if np.any(places < 0):
        raise EnclosureError(f'"{equation.primitive.name}" reads outside its array.')
    return [_picked(x, places)]


def _stepped(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    """floor, ceil, round and casts to integers of numbers that lie on one step."""
    (x,), name = inputs, equation.primitive.name
    if name == "convert_element_type" and jnp.issubdtype(equation.params["new_dtype"], jnp.floating):
        return [_Traced(x.interval, equation.primitive.bind(x.value, **equation.params))]
    with jax.ensure_compile_time_eval():
        low, high = (np.asarray(equation.primitive.bind(jnp.asarray(end), **equation.params)) for end in _ends(x))
    _require_decided(low == high, name, "a value may lie on either side of a step")
    return [_traced(low)]


def _clamped(equation: Any, inputs: list[_Traced]) -> list[_Traced]:
    low, x, high = inputs
    inside = (low.interval.high <= x.interval.low) & (x.interval.high <= high.interval.low)
    _require_decided(inside, "clamp", "a value may lie outside its limits")
    return [x]


DECIDED: dict[str, Callable[[Any, list[_Traced]], list[_Traced]]] = {
    **dict.fromkeys(("reduce_min", "reduce_max", "argmin", "argmax"), _reduced),
    **dict.fromkeys(("max", "min"), _larger),
    **dict.fromkeys(("gather", "dynamic_slice"), _indexed),
    **dict.fromkeys(("floor", "ceil", "round", "convert_element_type"), _stepped),
    "clamp": _clamped,
    "sort": _sorted,
    "top_k": _top,
}
"""Operations on real numbers that pick entries, or are constant around most of them."""
