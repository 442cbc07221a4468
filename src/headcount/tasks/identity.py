"""Who a user's function is: a hash of its code and of everything that the code reads.

    code      the syntax tree, where the source is there and is what runs; else the bytecode
    reads     closures, defaults, global variables, attributes: functions by their code, arrays and other data by
              their content

Names of files, modules and lines, comments, docstrings, annotations and formatting do not count. The syntax tree is the
same in every version of Python; bytecode is not, and a function without source has another identity in another version.

A function of an installed package or of Python itself is known by its name. What it computes is in the traced program,
`traced.py`, which together with this identifies a task at a length.
"""

import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from .base import GeneratedTask, fingerprint, user_supplied
from .kept_traces import forget_changed
from .source import code_text
from .traced import traced
from .user_code import has_user_code, importable_name, is_installed, is_installed_file

PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    type(Ellipsis),
    type(NotImplemented),
    np.dtype,
)
WRAPPERS = (type(jax.jit(abs)), type(functools.cache(abs)))
"""Of functions that they do not change."""
WRITTEN_IN_PYTHON = 1 << 9
"""The flag of a class that is not compiled into a library."""
CONTAINERS = (dict, list, tuple, set, frozenset)
READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
NAMES = frozenset((*functools.WRAPPER_ASSIGNMENTS, "__wrapped__"))
GENERATED = frozenset(
    ("__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__replace__")
)
"""Methods that a dataclass writes itself, from fields whose values count anyway."""
OF_PYTHON = frozenset(
    (
        "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__", "__hash__",
        "__firstlineno__", "__static_attributes__", "__parameters__", "__orig_bases__", "__type_params__",
        "__abstractmethods__", "__match_args__", "__dataclass_fields__", "__dataclass_params__", "__classcell__",
        "__annotations_cache__", "__conditional_annotations__", "__slotnames__",
    )
)  # fmt: skip
"""Attributes that Python gives a class or a dataclass; any other of such a name is a user's."""
UNSEEN_READS = frozenset(("globals", "vars", "getattr", "eval", "exec", "open", "__import__"))
UNSEEN_ATTRIBUTES = frozenset(("__dict__", "__globals__", "attrgetter", "import_module", "environ", "getenv"))
"""Ways in which code reads what its text does not name."""


def code_of(functions: Any) -> str:
    """A short hash of functions: their code and what it reads. From here on they are traced as they are now."""
    identity = Identity(functions)
    forget_changed(identity.parts)
    return identity.digest[:16]


def probe_of(task: GeneratedTask, functions: Any, *, is_named: bool = False) -> str:
    """A short hash of the program that a task's target is at its length; empty for one that a name identifies.

    The functions are traced from here on as they are now.

    Args:
        task: The task.
        functions: A user's functions that its target calls.
        is_named: Whether the task is identified by its name and options alone.

    Raises:
        InputError: If a function fails, if tracing it changes what it reads or gives another program each time, or if
            neither its code nor its program can be seen.
    """
    if is_named and not has_user_code(functions):
        return ""
    before = Identity(functions)
    forget_changed(before.parts)
    if is_named:
        return ""
    program, again = (
        user_supplied(traced, task.target, task.length, task.dim, anew, name=task.name) for anew in (False, True)
    )
    way_out = 'Identify the task by a name and a version of your own: name="..", options={"version": 1}.'
    if Identity(functions).digest != before.digest:
        raise InputError(f"{task.name}: the user-supplied function changes something that it reads. {way_out}")
    if program.digest != again.digest:
        raise InputError(
            f"{task.name}: the user-supplied function is another one each time it is traced, as if it drew random "
            f"numbers in Python: draw them once, outside of it. {way_out}"
        )
    if program.calls_python and before.unknown:
        raise InputError(
            f"{task.name}: the user-supplied function calls back into Python with {before.unknown[0]}, whose content "
            f"cannot be seen, so that it cannot be told from another function. {way_out}"
        )
    return program.digest


class Identity:
    """The hash of a value. `unknown` are the types of all parts whose content cannot be read, such as a lock's; `parts`
    are those that can be compared by their hashes, each with its own.

    Example:
        >>> from headcount.tasks.identity import Identity
        >>> one, other = (Identity(lambda x, power=power: x**power) for power in (2, 3))
        >>> one.digest == other.digest, one.unknown
        (False, [])
    """

    def __init__(self, value: Any):
        self.unknown: list[str] = []
        self.parts: list[tuple[Any, str]] = []
        self._known: dict[int, str] = {}
        self._pending: dict[int, int] = {}
        self._outermost = 0
        self._held: list[Any] = []  # an id is that of one value only as long as the value lives
        self.digest = self._of(value)

    def _of(self, value: Any) -> str:
        """The hash of a value, each looked at once; of one that contains itself, where it is met again."""
        if type(value) in PLAIN:
            return _hashed(type(value).__name__, repr(value))
        known = self._known.get(id(value))
        if known is not None:
            return known
        if id(value) in self._pending:
            self._outermost = min(self._outermost, self._pending[id(value)])
            return _hashed("again", str(len(self._pending) - self._pending[id(value)]))
        place = self._pending[id(value)] = len(self._pending)
        outermost, self._outermost = self._outermost, place
        try:
            digest = _hashed(*self._parts(value), *self._attributes(value))
        except RecursionError:
            digest = self._opaque(value)
        finally:
            del self._pending[id(value)]
        if self._outermost == place:  # it contains nothing that it is inside of
            self.parts.append((value, digest))
        self._outermost = min(outermost, self._outermost)
        self._held.append(value)
        self._known[id(value)] = digest
        return digest

    def _all(self, values: Iterable[Any]) -> Iterator[str]:
        return (self._of(value) for value in values)

    def _named(self, values: dict[str, Any]) -> Iterator[str]:
        for name in sorted(values):
            yield name
            yield self._of(values[name])

    def _parts(self, value: Any) -> Iterator[str]:
        """A value's kind and the hashes of what it consists of."""
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            yield from ("array", *self._array(value))
        elif isinstance(value, types.ModuleType):
            yield from ("module", value.__name__) if is_installed(value) else ("file", _file_hash(value))
        elif isinstance(value, enum.Enum):
            yield from ("enum", self._of(type(value)), value.name)
        elif isinstance(value, set | frozenset):
            yield from (type(value).__name__, *sorted(self._all(value)))
        elif isinstance(value, dict):
            yield from ("dict", self._class(value, dict), *self._all(part for item in value.items() for part in item))
        elif isinstance(value, list | tuple):
            kind = list if isinstance(value, list) else tuple
            yield from (kind.__name__, self._class(value, kind), *self._all(value))
        elif (name := importable_name(value)) is not None:
            yield from ("named", name)
        elif isinstance(value, types.FunctionType):
            yield from ("function", *self._function(value))
        elif isinstance(value, types.MethodType):
            yield from ("method", *self._all((value.__func__, value.__self__)))
        elif isinstance(value, functools.partial):
            yield from ("partial", *self._all((value.func, value.args, value.keywords)))
        elif isinstance(value, staticmethod | classmethod):
            yield from (type(value).__name__, self._of(value.__func__))
        elif isinstance(value, inspect.Signature):
            yield from ("signature", *self._all(value.parameters.values()))
        elif isinstance(value, inspect.Parameter):
            yield from ("parameter", value.name, value.kind.name, self._of(value.default))
        elif isinstance(value, functools.cached_property):
            yield from ("cached_property", self._of(value.func))
        elif isinstance(value, property):
            yield from ("property", *self._all((value.fget, value.fset)))
        elif isinstance(value, type):
            in_python = value.__flags__ & WRITTEN_IN_PYTHON
            yield from ("class", *(self._class_parts(value) if in_python else (value.__module__, value.__qualname__)))
        elif isinstance(value, types.BuiltinMethodType | types.MethodWrapperType) and value.__self__ is not None:
            yield from ("bound", value.__name__, self._of(value.__self__))
        elif isinstance(value, WRAPPERS):
            yield from ("wrapped", self._of(value.__wrapped__))  # pyright: ignore[reportAttributeAccessIssue]
        else:
            yield from self._object(value)

    def _array(self, array: Any) -> Iterator[str]:
        if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.random.key_data(array)
        array = np.asarray(array)
        if array.dtype.hasobject:
            yield from (str(array.shape), *self._all(array.ravel().tolist()))
        else:
            yield fingerprint(array)

    def _class(self, value: Any, plain: type) -> str:
        """The class of a container that is not a plain one."""
        return "" if type(value) is plain else self._of(type(value))

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        code = function.__code__
        if is_installed_file(code.co_filename):
            yield from (str(function.__globals__.get("__name__")), code.co_qualname)
        else:
            yield code_text(code)
            self.unknown += _unseen_reads(function)
            yield from self._read(function)
        yield from self._all((function.__defaults__, function.__kwdefaults__))
        closure = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        names = _names_in(code)
        for name in sorted(closure):
            try:
                yield from (name, *self._reached(closure[name].cell_contents, names))
            except ValueError:  # it has no value yet
                yield from (name, "empty")
        yield from self._named(_without_names(vars(function)))

    def _read(self, function: types.FunctionType) -> Iterator[str]:
        """The global variables that a function's code reads, and the modules that it imports."""
        code, names = function.__code__, _names_in(function.__code__)
        for name in sorted(_reads_of(code)):
            if name in function.__globals__:
                yield from (name, *self._reached(function.__globals__[name], names))
            else:  # Python's own, or not there
                yield from (name, "builtin")
        for name in sorted(_imports_of(code)):
            try:
                yield from (name, *self._reached(importlib.import_module(name), names))
            except Exception:  # importing runs the module, which may raise anything
                yield from (name, "missing")

    def _reached(self, value: Any, names: frozenset[str]) -> Iterator[str]:
        """A value that code reads; of a module next to it, those of its parts that the code names."""
        if not isinstance(value, types.ModuleType) or is_installed(value):
            yield self._of(value)
            return
        if id(value) in self._pending:
            return
        self._pending[id(value)] = len(self._pending)
        for name in sorted(names & vars(value).keys()):
            yield from (name, *self._reached(vars(value)[name], names))
        del self._pending[id(value)]

    def _class_parts(self, cls: type) -> Iterator[str]:
        """The bases of a user's class, its methods, and its other attributes."""
        yield from self._all(cls.__bases__)
        written = {}
        for name, value in vars(cls).items():
            is_function = isinstance(value, types.FunctionType)
            generated = is_function and name in GENERATED and value.__code__.co_filename.startswith("<")
            special = name in OF_PYTHON and not callable(value)
            if not (generated or special or name.startswith("_abc_") or name.startswith("__annotate")):
                written[name] = value
        if "__dataclass_fields__" in vars(cls):
            written = {name: value for name, value in written.items() if name not in GENERATED or _is_written(value)}
        yield from self._named(written)

    def _object(self, value: Any) -> Iterator[str]:
        """Any other object: its class and its state, as copying it would read them.

        Not the values of cached properties, which follow from the rest and are there only once they have been read.
        """
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # it has no state that can be read
            yield self._opaque(value)
            return
        if isinstance(reduced, str):
            yield from ("object", self._of(type(value)), reduced)
            return
        _, arguments, *rest = reduced
        state, items, pairs = (*rest, None, None, None)[:3]
        state = _without_names(state, type(value)) if isinstance(state, dict) else state
        yield from ("object", self._of(type(value)), *self._all((arguments, state)))
        yield from self._all((list(items or ()), list(pairs or ())))

    def _attributes(self, value: Any) -> Iterator[str]:
        """Of a user's containers, and of objects that say themselves how they are copied: all that they hold."""
        kind = type(value)
        module = sys.modules.get(kind.__module__)
        if isinstance(value, enum.Enum) or (module is not None and is_installed(module)):
            return
        if isinstance(value, CONTAINERS) or not _copied_plainly(kind):
            slots = {name: getattr(value, name) for name in copyreg._slotnames(kind) if hasattr(value, name)}  # pyright: ignore[reportAttributeAccessIssue]
            attributes = _without_names(slots | getattr(value, "__dict__", {}), kind)
            yield from ("attributes", self._of(kind), *self._named(attributes)) if attributes else ()

    def _opaque(self, value: Any) -> str:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        self.unknown.append(kind)
        return _hashed("unknown", kind)


def _without_names(state: dict[Any, Any], kind: type = object) -> dict[Any, Any]:
    """The attributes of an object in a fixed order, without what `functools.wraps` copies, and without the values of
    cached properties."""
    kept = {name: value for name, value in state.items() if name not in NAMES and not _is_cached(kind, name)}
    return dict(sorted(kept.items(), key=str))


def _is_cached(kind: type, name: Any) -> bool:
    return isinstance(inspect.getattr_static(kind, str(name), None), functools.cached_property)


def _copied_plainly(kind: type) -> bool:
    """Whether copying an object gives all of its attributes."""
    names = ("__reduce_ex__", "__reduce__", "__getstate__")
    return all(getattr(kind, name, None) is getattr(object, name, None) for name in names)


def _unseen_reads(function: types.FunctionType) -> list[str]:
    """What code calls to read something that it does not name."""
    reads = _reads_of(function.__code__) & UNSEEN_READS - function.__globals__.keys()
    return sorted(reads | (_names_in(function.__code__) & UNSEEN_ATTRIBUTES))


def _is_written(method: Any) -> bool:
    """Whether someone wrote a method, rather than `dataclasses` or a library."""
    code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
    return code is not None and not code.co_filename.startswith("<") and not is_installed_file(code.co_filename)


def _hashed(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="surrogatepass")).hexdigest()


def _file_hash(module: types.ModuleType) -> str:
    """Of a user's module that is passed about as a value: all of its file."""
    try:
        return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()
    except OSError:
        return module.__name__


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names_in(code: types.CodeType) -> frozenset[str]:
    """Every name that code mentions: of variables, and of attributes."""
    return frozenset(name for each in _codes(code) for name in each.co_names)


def _instructions(code: types.CodeType, wanted: Callable[[str], bool]) -> set[str]:
    return {str(each.argval) for part in _codes(code) for each in dis.get_instructions(part) if wanted(each.opname)}


def _reads_of(code: types.CodeType) -> set[str]:
    """Names of the global variables that code reads."""
    return _instructions(code, lambda name: name in READS)


def _imports_of(code: types.CodeType) -> set[str]:
    """Names of the modules that code imports when it runs."""
    return {name for name in _instructions(code, lambda name: name == "IMPORT_NAME") if name}
