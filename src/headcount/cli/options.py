"""The options of `headcount measure`, made from the fields of specs and requests, and options that verbs share."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union

import typer

from .._options import Option, field_options
from ..recipes import MODEL_OPTIONS, TRAIN_OPTIONS
from ..request import Request
from ..tasks.find import DATA_OPTIONS, FILE_OPTIONS
from ..tasks.presets import PRESET_OPTIONS
from . import arguments
from .backend import BACKEND_HELP, use_backend

TARGETS, SEQUENCE, TOKENS = (FILE_OPTIONS[name].words for name in ("targets", "sequence", "tokens"))
ON = "Where models are trained: threads (default), ray, or a Ray cluster's ray://HOST:PORT; see docs/clusters.md."
On = Annotated[str | None, typer.Option("--on", metavar="WHERE", help=ON)]
WORKERS = "At most this many workers of a Ray cluster (default: one per GPU, or per core where there is none)."
Workers = Annotated[int | None, typer.Option("--workers", help=WORKERS)]
TrainingBackend = Annotated[
    str | None, typer.Option("--backend", help=BACKEND_HELP, callback=use_backend, rich_help_panel="Training")
]

GROUPS: dict[str, Mapping[str, Option]] = {
    "": field_options(Request),
    "Your data": DATA_OPTIONS,
    "Task": PRESET_OPTIONS,
    "Training": TRAIN_OPTIONS,
    "Model": MODEL_OPTIONS,
}
PARSERS: dict[Any, Callable[[str, str], Any]] = {
    Sequence[int]: arguments.counts,
    int | Sequence[int]: arguments.one_or_counts,
    Sequence[float]: arguments.numbers,
    Sequence[tuple[float, float]]: arguments.windows,
}
"""How values are read that are several numbers in one argument."""


def _options() -> dict[str, tuple[str, Option]]:
    """Return every option with its group; a name in two groups is the first's."""
    known: dict[str, tuple[str, Option]] = {}
    for group, options in GROUPS.items():
        known |= {name: (each.panel or group, each) for name, each in options.items() if name not in known}
    return known


OPTIONS = _options()


def with_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb all options of `OPTIONS`, and the `context` of its command; it receives them as keywords."""
    signature = inspect.signature(verb)
    kept = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    made = [_parameter(name, *each) for name, each in OPTIONS.items()]
    last = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made.append(inspect.Parameter("context", last, default=None, annotation=typer.Context))
    changed = signature.replace(parameters=[kept[0], *made, *kept[1:]])
    verb.__signature__ = changed  # pyright: ignore[reportFunctionMemberAccess]
    verb.__annotations__ |= {each.name: each.annotation for each in made}
    return verb


def _parameter(name: str, panel: str, each: Option) -> inspect.Parameter:
    kind = str if each.kind in PARSERS else each.kind
    flags = (each.flags or f"--{name.replace('_', '-')}",) if kind is bool or each.flags else ()
    shown = typer.Option(
        *flags,
        help=each.words,
        metavar=each.metavar,
        rich_help_panel=panel or None,
        autocompletion=(lambda: list(each.choices)) if each.choices else None,
    )
    hint = Annotated[Union[kind, None], shown]  # noqa: UP007 - of a type that is known only here
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=hint)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Read the options that were given."""
    values = {name: value for name, value in options.items() if value is not None and not _is_off(name, value)}
    for name, value in values.items():
        if (read := PARSERS.get(OPTIONS[name][1].kind)) is not None:
            values[name] = read(value, f"--{name.replace('_', '-')}")
    return values


def _is_off(name: str, value: Any) -> bool:
    """Whether a flag without an opposite was not given."""
    return value is False and OPTIONS[name][1].flags is None
