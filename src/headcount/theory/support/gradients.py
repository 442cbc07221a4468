"""The gradient of a task's target with respect to each token, and which targets have none."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from jax.lax import copy_p
from jaxtyping import Array, Float

from ..._precision import traced_in_double
from ..._shapes import Tokens
from ...errors import InputError, require
from ...keys import named_generator
from ...tasks import AbstractTask, ArrayTask, GeneratedTask

Answers = Callable[[Tokens], Float[Array, " answers"]]
Sizes = Callable[[Float[Array, "sequences length dim"]], Float[Array, "sequences answers length"]]


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
    custom derivatives are used as they are, and only a certificate is independent of them. Raises `InputError` where
    JAX has no derivative.
    """
    tokens = jax.ShapeDtypeStruct((task.length, task.dim), jnp.float64)
    closed = jax.make_jaxpr(answers_of(task))(tokens)
    target = jaxpr_as_fun(closed.replace(jaxpr=_without_stops(closed.jaxpr)))
    slopes = jax.jacrev(lambda tokens: target(tokens)[0])
    try:
        jax.eval_shape(slopes, tokens)
    except Exception as error:  # whatever JAX raises for an operation without a derivative, or a loop without an end
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(
            f"{task.name}: JAX cannot differentiate the target ({first_line}); a support dimension needs a target "
            "whose operations have derivatives.",
            what="task",
        ) from error

    @jax.jit
    def sizes(sequences: Float[Array, "sequences length dim"]) -> Float[Array, "sequences answers length"]:
        blocks = jnp.max(jnp.abs(jax.vmap(slopes)(sequences)), axis=-1)
        return jnp.where(jnp.isfinite(blocks), blocks, 0.0)

    return sizes


def _without_stops(jaxpr: Jaxpr) -> Jaxpr:
    """The same program in which `stop_gradient` is the identity, also in the functions, branches and loops it calls.

    What custom derivatives call is left as it is.
    """

    def changed(value: Any) -> Any:
        if type(value) is tuple:  # and no named one, which no program is in
            return tuple(map(changed, value))
        if isinstance(value, ClosedJaxpr):
            return value.replace(jaxpr=_without_stops(value.jaxpr))
        return _without_stops(value) if isinstance(value, Jaxpr) else value

    equations = []
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "stop_gradient":
            equation = equation.replace(primitive=copy_p)
        elif not name.startswith("custom_"):
            equation = equation.replace(params={key: changed(value) for key, value in equation.params.items()})
        equations.append(equation)
    return jaxpr.replace(eqns=equations)


def count_tokens(sizes: Float[np.ndarray, "*others length"], relative: float) -> Any:
    """How many tokens have a gradient of at least `relative` times the largest of their sequence."""
    largest = sizes.max(axis=-1, keepdims=True)
    return np.sum((sizes > relative * largest) & (sizes > 0), axis=-1)
