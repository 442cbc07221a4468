"""The checker of annotations while tests run: beartype, with int allowed for float as type checkers do.

jaxtyping remembers axis sizes around every call, which costs ten times the check itself. Only a function whose
annotations name an axis has sizes to remember: `checked` stands in for `jaxtyping.jaxtyped`, and spares the others.
"""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_jaxtyped = jaxtyping.jaxtyped


def checked(thing: Any = None, *, typechecker: Any) -> Any:
    """What the import hook puts around every function and class."""
    if thing is None:
        return functools.partial(checked, typechecker=typechecker)
    if inspect.isclass(thing):
        if dataclasses.is_dataclass(thing) and not hasattr(thing.__init__, "is_checked"):
            thing.__init__ = checked(thing.__init__, typechecker=typechecker)
        return thing
    around = _around(thing, typechecker)
    around.is_checked = True  # by a subclass that inherits it too
    return around


def _around(function: Callable, typechecker: Any) -> Any:
    for name, hint in list(getattr(function, "__annotations__", {}).items()):
        if hint is typing.Self:  # beartype knows it only in classes that it decorates whole
            function.__annotations__[name] = Any
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # an annotation that cannot be read yet: jaxtyping reads around it
        return _jaxtyped(function, typechecker=typechecker)
    if inspect.isgeneratorfunction(function):  # beartype alone would check at the first item, not at the call
        return _jaxtyped(function, typechecker=typechecker)
    typed = check(function)
    with_sizes = _jaxtyped(typed, typechecker=None) if any(map(names_an_axis, hints.values())) else typed

    @functools.wraps(function)
    def around(*args, **kwargs):
        __tracebackhide__ = True
        return (function if jaxtyping.config.jaxtyping_disable else with_sizes)(*args, **kwargs)

    return around


def names_an_axis(hint: Any) -> bool:
    """Whether an annotation holds one of jaxtyping's, however deep."""
    if isinstance(hint, list | tuple):  # the arguments of a callable
        return any(map(names_an_axis, hint))
    return getattr(hint, "__module__", "") == "jaxtyping" or any(map(names_an_axis, typing.get_args(hint)))
