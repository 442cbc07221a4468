"""The command of a run with some options changed, or the Python that changes them."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any


def changed(command: str, options: Mapping[str, Any]) -> str:
    """The command with these options; without a command, the call of `hc.measure` with these arguments.

    Options are named as arguments are in Python: `layers`, `learning_rates`.

    Example:
        >>> from headcount.analysis.commands import changed
        >>> changed("headcount measure mine.npz --steps 500", {"steps": 1000, "heads": range(1, 17)})
        'headcount measure mine.npz --steps 1000 --heads 1:16'
        >>> changed("", {"heads": range(1, 17), "effort": "thorough"})
        "hc.measure(..., heads=range(1, 17), effort='thorough')"
    """
    if not command:
        return f"hc.measure(..., {', '.join(f'{name}={_as_python(value)}' for name, value in options.items())})"
    words = shlex.split(command)
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words = _without(words, flag)
        words += [flag, _as_option(value)]
    return shlex.join(words)


def _without(words: list[str], flag: str) -> list[str]:
    """The words without an option and its value; the task stays where it is."""
    kept, skipping = [], False
    for word in words:
        if skipping:
            skipping = False
        elif word == flag:
            skipping = True
        elif not word.startswith(f"{flag}="):
            kept.append(word)
    return kept


def _as_option(value: Any) -> str:
    if isinstance(value, range):
        return f"{value[0]}:{value[-1]}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_as_option, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _as_python(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_python, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
