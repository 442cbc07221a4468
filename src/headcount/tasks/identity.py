"""Identity of a user's function: a hash of the program that JAX traces it to, with all its constants.

Two functions share a hash only where they are the same operations on the same numbers. A program is exact where values
at some points are not: functions that differ for rare inputs only are other programs. It does not depend on the device,
but may change with the version of JAX.

    probe    the program of a task's target at one length; part of the keys of that length's cells
    code     the programs at lengths that are the same for every task; part of the task's spec
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from .._user_files import user_supplied
from ..errors import InputError
from .base import has_user_code

CODE_LENGTHS = (4, 16, 64)
"""Lengths at which a function of sequences is traced for its task's spec, which has no length of its own."""
SKIPPED = re.compile("^name|debug|source_info|metadata|jvp|fwd|bwd|out_trees|sharding|layout|mesh|device")
"""Parameters of operations that change no value: names, derivatives, and where something is computed."""
ADDRESS = re.compile("0x[0-9a-f]+")
LIBRARIES = ("builtins", "jax", "jaxlib", "numpy", "ml_dtypes")
"""Packages whose objects say in their text all that they are."""

_retrace = jax.make_user_context(0)
_numbers = itertools.count(1)


class TracedProgram(NamedTuple):
    """A program's hash, and the kinds of its parts that no hash can cover: what calls Python, or holds a state."""

    digest: str
    unseen: tuple[str, ...]


def program_of(
    function: Callable[..., Any], shape: tuple[int, ...], *, name: str = "function", afresh: bool = True
) -> TracedProgram:
    """Return the program of a function of one float32 array of this shape; `InputError` where the function fails.

    JAX traces the body of a loop and a jitted function once, whatever variables they read. `afresh`: trace them now.
    """
    with _retrace(next(_numbers) if afresh else 0):
        closed = user_supplied(lambda: jax.make_jaxpr(function)(jax.ShapeDtypeStruct(shape, np.float32)), name=name)
    unseen: list[str] = []
    words = "\n".join(_closed(closed, unseen))
    return TracedProgram(hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()[:16], tuple(unseen))


def code_of(name: str, *functions: tuple[Callable[..., Any], Sequence[tuple[int, ...]]]) -> str:
    """Hash functions, each with the shapes at which it is traced; one that fails at a shape has no hash there.

    Raises `InputError` if a function calls back into Python.
    """
    digests = []
    for function, shapes in functions:
        for shape in shapes:
            try:
                program = program_of(function, shape)
            except InputError:  # the function may be for other lengths
                digests.append("")
                continue
            _require_seen(name, program)
            digests.append(program.digest)
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def probe_of(task: Any, functions: Any, *, is_named: bool) -> str:
    """Return the program of a task's target at its length; empty where the task `is_named` by options of its own.

    What JAX has kept of the functions is forgotten if they are other programs now. Raises `InputError` if a function
    fails, is another program each time it is traced, or calls back into Python.
    """
    if is_named and not has_user_code(functions):
        return ""

    def traced(afresh: bool) -> TracedProgram:
        return program_of(task.target, (task.length, task.dim), name=task.name, afresh=afresh)

    kept, program = traced(False), traced(True)
    if kept != program:
        jax.clear_caches()
    if is_named:
        return ""
    if kept != program and traced(False) != program:
        raise InputError(
            f"{task.name}: the user-supplied function is another one each time it is traced: it draws random numbers "
            f"in Python, or changes what it reads; do that once, outside of it, or {_way_out}."
        )
    _require_seen(task.name, program)
    return program.digest


_way_out = 'identify the task by a name and a version of your own: name="..", options={"version": 1}'


def _require_seen(name: str, program: TracedProgram) -> None:
    if program.unseen:
        raise InputError(
            f"{name}: the user-supplied function uses {program.unseen[0]}, which JAX cannot trace, so that it cannot "
            f"be told from another function; {_way_out}."
        )


def _closed(closed: ClosedJaxpr, unseen: list[str]) -> Iterator[str]:
    yield from _operations(closed.jaxpr, unseen)
    for constant in closed.consts:
        yield from _value(constant, unseen)


def _operations(jaxpr: Jaxpr, unseen: list[str]) -> Iterator[str]:
    """Return the operations in order; a variable is the number of those before it."""
    numbers: dict[Any, int] = {}

    def number_them(variables: Any) -> str:
        for variable in variables:
            numbers[variable] = len(numbers)
        return " ".join(str(variable.aval) for variable in variables)

    def operand_words(operand: Any) -> Iterator[str]:
        if isinstance(operand, Literal):
            yield from _value(operand.val, unseen)
            yield str(operand.aval)
        else:
            yield str(numbers[operand])

    yield number_them(jaxpr.constvars)
    yield number_them(jaxpr.invars)
    for equation in jaxpr.eqns:
        kind = equation.primitive.name
        yield kind
        for operand in equation.invars:
            yield from operand_words(operand)
        if kind.endswith("callback"):
            unseen += [kind] if kind != "debug_callback" else []  # which prints, and changes no value
        else:
            for name in sorted(name for name in equation.params if not SKIPPED.search(name)):
                yield name
                yield from _value(equation.params[name], unseen)
        yield number_them(equation.outvars)
    for operand in jaxpr.outvars:
        yield from operand_words(operand)


def _value(value: Any, unseen: list[str]) -> Iterator[str]:
    """Write a parameter or a constant as text."""
    kind = type(value)
    if isinstance(value, ClosedJaxpr):
        yield from _closed(value, unseen)
    elif isinstance(value, Jaxpr):
        yield from _operations(value, unseen)
    elif isinstance(value, jax.Ref):
        unseen.append("a mutable array")
    elif isinstance(value, np.ndarray | np.generic | jax.Array):
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        array = np.asarray(value)
        yield f"{array.shape} {array.dtype} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
    elif isinstance(value, tuple | list):
        yield f"{len(value)}"
        for part in value:
            yield from _value(part, unseen)
    elif isinstance(value, dict):
        yield from _value(sorted(value.items(), key=str), unseen)
    elif callable(value) and not isinstance(value, type):
        module = str(getattr(value, "__module__", None))
        yield f"{module}.{getattr(value, '__qualname__', kind.__name__)}"
        if module.partition(".")[0] not in LIBRARIES:
            unseen.append(kind.__name__)
    else:
        yield f"{kind.__name__} {ADDRESS.sub('', str(value))}"
        if kind.__module__.partition(".")[0] not in LIBRARIES:
            unseen.append(kind.__name__)
