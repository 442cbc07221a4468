"""The gradient of a task's target with respect to each token, and which targets have none."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Array, Float

from ..._errors import InputError, require
from ..._keys import named_generator
from ..._precision import traced_in_double
from ..._shapes import Tokens
from ...tasks import AbstractTask, ArrayTask, GeneratedTask

Answers = Callable[[Tokens], Float[Array, " answers"]]
Sizes = Callable[[Float[Array, "sequences length dim"]], Float[Array, "sequences answers length"]]

CALLS = ("jit", "pjit", "closed_call", "remat", "remat2", "checkpoint")
"""Operations that only call a function, by JAX's own derivative of it."""


def require_gradient(task: AbstractTask) -> GeneratedTask:
    """The task, where its target is a function of real tokens to real numbers that JAX can differentiate.

    Raises `InputError` otherwise: stored examples, integer targets, code that JAX cannot trace.
    """
    if not isinstance(task, GeneratedTask) or isinstance(task, ArrayTask):
        raise InputError(
            f"{getattr(task, 'name', task)}: stored examples have no gradient; a support dimension needs a target that "
            "is a JAX function of the tokens. `estimate_support` estimates it from a trained model.",
            what="task",
        )
    tokens = jax.ShapeDtypeStruct((task.length, task.dim), jnp.float32)
    try:
        shape = jax.eval_shape(task.target, tokens)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise InputError(
            f"{task.name}: JAX cannot trace the target, so it has no gradient; write it with jax.numpy instead of "
            "NumPy, and without if statements about tokens.",
            what="task",
        ) from error
    except Exception as error:
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(
            f"{task.name}: the user-supplied function raised {type(error).__name__}: {first_line}."
        ) from error
    require(
        jnp.issubdtype(shape.dtype, jnp.floating),
        f"{task.name}: targets of type {shape.dtype} have no gradient; a target must be a real number that changes "
        "smoothly with the tokens.",
        what="task",
    )
    return task


def answers_of(task: GeneratedTask) -> Answers:
    """One number per answer: a target's numbers in a fixed random combination, whose gradient is zero at a token only
    if theirs are (but for combinations of measure zero).

    A task has one answer, or one per token where every token is answered. Use it under `jax.enable_x64(True)`.
    """
    target_of = traced_in_double(task.target, task.length, task.dim)

    def answers(tokens: Tokens) -> Float[Array, " answers"]:
        target = target_of(tokens)
        rows = target if target.ndim == 2 else target[None]
        if rows.shape[1] == 1:
            return rows[:, 0]
        weights = named_generator(0, "combination of targets").uniform(0.5, 1.5, rows.shape[1])
        return jnp.sum(rows * weights, axis=1)

    return answers


def gradient_sizes(task: GeneratedTask) -> Sizes:
    """The largest entry of the gradient at each token, per answer, of many sequences; compiled.

    Use it under `jax.enable_x64(True)`. A gradient that is not finite counts as zero. `stop_gradient` is the identity;
    custom derivatives are used as they are, and only a certificate is independent of them.
    """
    closed = jax.make_jaxpr(answers_of(task))(jax.ShapeDtypeStruct((task.length, task.dim), jnp.float64))
    slopes = jax.jacrev(lambda tokens: _without_stops(closed.jaxpr, closed.consts, [tokens])[0])

    @jax.jit
    def sizes(sequences: Float[Array, "sequences length dim"]) -> Float[Array, "sequences answers length"]:
        blocks = jnp.max(jnp.abs(jax.vmap(slopes)(sequences)), axis=-1)
        return jnp.where(jnp.isfinite(blocks), blocks, 0.0)

    return sizes


def _without_stops(jaxpr: Jaxpr, constants: list[Any], arguments: list[Any]) -> list[Any]:
    """The outputs of a traced function in which `stop_gradient` is the identity, also in functions that it calls."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else known[variable]

    for equation in jaxpr.eqns:
        inputs, primitive = [read(variable) for variable in equation.invars], equation.primitive
        inner = equation.params.get("jaxpr")
        if primitive.name == "stop_gradient":
            outputs = inputs
        elif primitive.name in CALLS and isinstance(inner, ClosedJaxpr | Jaxpr):
            closed = isinstance(inner, ClosedJaxpr)
            outputs = _without_stops(inner.jaxpr if closed else inner, inner.consts if closed else [], inputs)
        else:
            outputs = primitive.bind(*inputs, **primitive.get_bind_params(equation.params))
            outputs = outputs if primitive.multiple_results else [outputs]
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def count_tokens(sizes: Float[np.ndarray, "*others length"], relative: float) -> Any:
    """How many tokens have a gradient of at least `relative` times the largest of their sequence."""
    largest = sizes.max(axis=-1, keepdims=True)
    return np.sum((sizes > relative * largest) & (sizes > 0), axis=-1)
