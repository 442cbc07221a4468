"""Enclosures of JAX functions: the code of a model or a task, evaluated on intervals instead of numbers.

A function is traced to its jaxpr, and every operation is replaced by its rule in `rules`. The program itself is
enclosed, derivatives included, as a function of real numbers: casts to float32 are ignored. An operation without a rule
raises `EnclosureError`, which names it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from .arithmetic import Box, EnclosureError, point
from .rules import ARITHMETIC, RULES

INNER = ("jit", "pjit", "closed_call", "remat", "remat2", "checkpoint")
INNER += ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
"""Operations that only call a function."""
CARRYING = ("broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy", "select_n")
"""Operations that may pass on a NaN that is never selected, as in the variance of an empty array."""
MOVING = ("copy", "copy_p", "gather", "dynamic_slice", "pad", "rev", "tile")
"""Operations that only move entries."""
Value = TypeVar("Value")


def enclose(function: Callable[..., Any], *boxes: Box) -> Box:
    """Return an interval that contains function(x, ..) for all x in the boxes.

    `function` takes one array per box and returns one array. Call it under `jax.enable_x64(True)`: tracing must not
    round to float32. Raises `EnclosureError` where an operation has no rule, or a result has no bound; its `operation`
    names the operation of JAX.
    """
    if jnp.asarray(0.0).dtype != jnp.float64:
        raise EnclosureError("an enclosure needs float64; use jax.enable_x64(True).")
    shapes = [jax.ShapeDtypeStruct(box.shape, jnp.float64) for box in boxes]
    closed = jax.make_jaxpr(function)(*shapes)
    with np.errstate(invalid="ignore", over="ignore"):
        (result,) = run_program(closed, list(boxes), constant, _enclosed_step)
    return _checked(result)


def constant(value: Any) -> Box:
    """Return the interval of one known array, in float64 where it is real."""
    if jnp.issubdtype(getattr(value, "dtype", np.int64), jax.dtypes.extended):
        raise EnclosureError("random keys have no bound.")
    array = np.asarray(value)
    if jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(np.float64)  # exact: the weights of a model are float32 numbers
    return point(array)


def run_program(
    program: ClosedJaxpr | Jaxpr,
    arguments: list[Value],
    lifted: Callable[[Any], Value],
    step: Callable[[Any, list[Value]], list[Value]],
) -> list[Value]:
    """Run a program of JAX on values of another kind: `lifted` makes one of a known array, `step` those of an equation.

    Operations that only call a function are run inside.
    """
    jaxpr, constants = (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, [])
    values = [*map(lifted, constants), *arguments]
    known: dict[Any, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))

    def value_of(variable: Any) -> Value:
        return lifted(variable.val) if isinstance(variable, Literal) else known[variable]

    for equation in needed(jaxpr):
        inputs = [value_of(variable) for variable in equation.invars]
        if equation.primitive.name in INNER:
            inner = next(value for value in equation.params.values() if isinstance(value, ClosedJaxpr | Jaxpr))
            outputs = run_program(inner, inputs, lifted, step)
        else:
            outputs = step(equation, inputs)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [value_of(variable) for variable in jaxpr.outvars]


def _enclosed_step(equation: Any, inputs: list[Box]) -> list[Box]:
    name = equation.primitive.name
    try:
        return apply_rule(equation, inputs if name in CARRYING else [_checked(x) for x in inputs])
    except EnclosureError as error:
        error.operation = error.operation or name
        raise


def _checked(x: Box) -> Box:
    """`x`, checked to be float64 without NaN."""
    if jnp.issubdtype(x.low.dtype, jnp.floating):
        if x.low.dtype != np.float64:
            raise EnclosureError(f"values of type {x.low.dtype} have no bound.")
        if np.any(np.isnan(x.low) | np.isnan(x.high)):
            raise EnclosureError("an intermediate result is NaN.")
    return x


def needed(jaxpr: Jaxpr) -> list[Any]:
    """Return the equations that the outputs depend on: tracing a derivative leaves comparisons that nothing uses."""
    wanted = {variable for variable in jaxpr.outvars if not isinstance(variable, Literal)}
    kept = []
    for equation in reversed(jaxpr.eqns):
        if any(variable in wanted for variable in equation.outvars):
            kept.append(equation)
            wanted.update(variable for variable in equation.invars if not isinstance(variable, Literal))
    return kept[::-1]


def apply_rule(equation: Any, inputs: list[Box]) -> list[Box]:
    """Return the results of one operation on intervals; raises `EnclosureError` where it has no rule."""
    name = equation.primitive.name
    known = bool(inputs) and all(_is_integer(x) and np.array_equal(x.low, x.high) for x in inputs)
    if known and not any(jnp.issubdtype(variable.aval.dtype, jnp.floating) for variable in equation.outvars):
        # Integers and truth values that do not depend on the input are computed by JAX itself.
        result = equation.primitive.bind(*(jnp.asarray(x.low) for x in inputs), **equation.params)
        return [constant(part) for part in (result if equation.primitive.multiple_results else [result])]
    logical = name in ("and", "or", "not") and any(x.low.dtype != bool for x in inputs)
    if logical or (name in ARITHMETIC and any(_is_integer(x) for x in inputs)):
        raise EnclosureError(f'"{name}" of integers that depend on the input has no bound.')
    if name in MOVING:
        return _at_both_ends(equation, inputs)
    if name not in RULES:
        raise EnclosureError(f'no rule encloses the operation "{name}".')
    result = RULES[name](*inputs, **equation.params)
    return result if isinstance(result, list) else [result]


def _is_integer(x: Box) -> bool:
    return not np.issubdtype(x.low.dtype, np.floating)


def _at_both_ends(equation: Any, inputs: list[Box]) -> list[Box]:
    name = equation.primitive.name
    for index in inputs[1:]:
        if not (np.issubdtype(index.low.dtype, np.floating) or np.array_equal(index.low, index.high)):
            raise EnclosureError(f'"{name}" at indices that depend on the input has no bound.')
    low, high = (
        equation.primitive.bind(*(jnp.asarray(end) for end in ends), **equation.params)
        for ends in ([x.low for x in inputs], [x.high for x in inputs])
    )
    return [Box(np.asarray(low), np.asarray(high))]
