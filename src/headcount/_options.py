"""Options that stand where the value does: a field of a spec, an argument of a task.

The command line makes its options of them, and Python its keywords, so that a new field is a new option.
"""

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Option:
    """An option: `words` and `metavar` of its help, under the title `panel`, unusual `flags`, the type `kind`, and the
    `choices` that a shell completes."""

    words: str
    metavar: str | None = None
    flags: str | None = None
    panel: str = ""
    kind: Any = str
    choices: tuple[str, ...] = ()


def option(default: Any, words: str, **shown: Any) -> Any:
    """A field of a dataclass that is an option of `measure` too."""
    return dataclasses.field(default=default, metadata={"option": Option(words, **shown)})


def field_options(spec: type) -> dict[str, Option]:
    """The fields of a dataclass that are options, with their types."""
    kinds = get_type_hints(spec)
    own_first = sorted(dataclasses.fields(spec), key=lambda each: each.name not in spec.__annotations__)
    shown = {each.name: each.metadata["option"] for each in own_first if "option" in each.metadata}
    return {name: dataclasses.replace(each, kind=_kind(kinds[name])) for name, each in shown.items()}


def argument_options(function: Callable[..., Any]) -> dict[str, Option]:
    """The arguments of a function that are annotated as options, with their types."""
    kinds = get_type_hints(function, include_extras=True)
    annotated = {name: get_args(kind) for name, kind in kinds.items() if get_origin(kind) is Annotated}
    shown = {
        name: (kind, each) for name, (kind, *more) in annotated.items() for each in more if isinstance(each, Option)
    }
    return {name: dataclasses.replace(each, kind=_kind(kind)) for name, (kind, each) in shown.items()}


def merged(*several: Mapping[str, Option]) -> dict[str, Option]:
    """All options, each in the words of the first that has it."""
    options: dict[str, Option] = {}
    for more in several:
        options |= {name: each for name, each in more.items() if name not in options}
    return options


def _kind(hint: Any) -> Any:
    """The type of a value that is given."""
    if isinstance(hint, types.UnionType):
        hint = functools.reduce(operator.or_, (each for each in get_args(hint) if each is not types.NoneType))
    return str if get_origin(hint) is typing.Literal else hint
