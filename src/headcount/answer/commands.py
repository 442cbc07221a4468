"""What the command of a run says, and the command with some options changed, or the Python that changes them."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

FLAGS = ("--labels", "--regression", "--live", "--dry-run", "--json")
"""Options of `headcount measure` without a value."""


def changed(command: str, options: Mapping[str, Any]) -> str:
    """The command with these options; without a command, the call of `hc.measure` with these arguments.

    Options are named as arguments are in Python: `layers`, `learning_rates`.

    Example:
        >>> from headcount.answer.commands import changed
        >>> changed("headcount measure mine.npz --steps 500", {"steps": 1000, "heads": range(1, 17)})
        'headcount measure mine.npz --steps 1000 --heads 1:16'
        >>> changed("", {"heads": range(1, 17), "effort": "thorough"})
        "hc.measure(..., heads=range(1, 17), effort='thorough')"
    """
    words = _words(command)
    if not words:
        return f"hc.measure(..., {as_arguments(options)})"
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words = _without(words, flag)
        words += [flag, as_option(value)]
    return shlex.join(words)


def as_arguments(options: Mapping[str, Any]) -> str:
    """Options as arguments in Python: `layers=2, heads=range(1, 17)`."""
    return ", ".join(f"{name}={_as_python(value)}" for name, value in options.items())


def task_of(command: str) -> str:
    """What a command measures: its first word that is neither an option nor the value of one; empty without one.

    Example:
        >>> from headcount.answer.commands import task_of
        >>> task_of("headcount measure --labels --steps 500 mine.npz")
        'mine.npz'
    """
    words = iter(_words(command)[2:])
    for word in words:
        if not word.startswith("-"):
            return word
        if word not in FLAGS and "=" not in word:
            next(words, "")
    return ""


def value_of(command: str, option: str) -> str:
    """The value of an option, such as `--targets`; empty where it is not given."""
    words = _words(command)
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return ""


def _words(command: str) -> list[str]:
    """The words of a command; none where it is no command, such as one with an unclosed quotation mark."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


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


def as_option(value: Any) -> str:
    """A value as it is typed: `1:6` of a range, `1,2,4` of a list."""
    if isinstance(value, range):
        return f"{value[0]}:{value[-1]}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(as_option, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _as_python(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_python, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
