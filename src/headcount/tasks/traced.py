"""The program that a function traces to at a length, as a hash: every operation, shape and constant of it.

It is exact where values at some points are not: functions that differ only for rare inputs are other programs. It does
not depend on the device. It may change with the version of JAX.
"""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

SKIPPED = re.compile("^name|debug|source_info|metadata|jvp|fwd|bwd|callback|sharding|layout|mesh|device")
"""Parameters of operations that change no value: names, derivatives, and where something is computed."""
ADDRESS = re.compile("0x[0-9a-f]+")


class Traced(NamedTuple):
    """The hash of a program, and whether it calls back into Python, where it does what cannot be seen."""

    digest: str
    calls_python: bool


def traced(function: Callable[..., Any], length: int, dim: int, anew: bool = False) -> Traced:
    """The program of a function of one float32 array of shape (length, dim).

    Traced `anew`, without what JAX keeps of the parts that it has traced before: it keeps them by the device as well,
    and that which is the default anyway is another one to it when named.
    """
    named = jax.default_device(jax.local_devices()[0]) if anew else contextlib.nullcontext()
    with named:
        closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((length, dim), np.float32))
    words = list(_closed(closed))
    digest = hashlib.sha256("\n".join(words).encode(errors="surrogatepass")).hexdigest()
    return Traced(digest[:16], any(word.endswith("_callback") and word != "debug_callback" for word in words))


def _closed(closed: ClosedJaxpr) -> Iterator[str]:
    yield from _program(closed.jaxpr)
    for constant in closed.consts:
        yield from _value(constant)


def _program(jaxpr: Jaxpr) -> Iterator[str]:
    """The operations in order; a variable is the number of those before it."""
    numbers: dict[Any, int] = {}

    def bound(variables: Any) -> str:
        for variable in variables:
            numbers[variable] = len(numbers)
        return " ".join(str(variable.aval) for variable in variables)

    def used(operand: Any) -> Iterator[str]:
        if isinstance(operand, Literal):
            yield from _value(operand.val)
            yield str(operand.aval)
        else:
            yield str(numbers[operand])

    yield bound(jaxpr.constvars)
    yield bound(jaxpr.invars)
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for operand in equation.invars:
            yield from used(operand)
        for name, value in sorted(equation.params.items()):
            if not SKIPPED.search(name):
                yield name
                yield from _value(value)
        yield bound(equation.outvars)
    for operand in jaxpr.outvars:
        yield from used(operand)


def _value(value: Any) -> Iterator[str]:
    """A parameter or a constant as text."""
    if isinstance(value, ClosedJaxpr):
        yield from _closed(value)
    elif isinstance(value, Jaxpr):
        yield from _program(value)
    elif isinstance(value, np.ndarray | np.generic | jax.Array):
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        array = np.asarray(value)
        yield f"{array.shape} {array.dtype} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
    elif isinstance(value, tuple | list):
        yield f"{len(value)}"
        for part in value:
            yield from _value(part)
    elif isinstance(value, dict):
        yield from _value(sorted(value.items(), key=str))
    elif callable(value) and not isinstance(value, type):
        yield type(value).__name__  # its code is reached from the function that was traced
    else:
        yield f"{type(value).__name__} {ADDRESS.sub('', str(value))}"
