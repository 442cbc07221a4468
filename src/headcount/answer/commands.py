"""What the command of a run says, and the command with some options changed, or the Python that changes them."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

FLAGS = ("--labels", "--regression", "--live", "--dry-run", "--json")
"""Options of `headcount measure` without a value."""


def changed_command(command: str, options: Mapping[str, Any]) -> str:
    """Return the command with these options; without a command, the call of `hc.measure` with these arguments.

    Options are named as arguments are in Python: `layers`, `learning_rates`.

    Example:
        >>> from headcount.answer.commands import changed_command
        >>> changed_command("headcount measure mine.npz --steps 500", {"steps": 1000, "heads": range(1, 17)})
        'headcount measure mine.npz --steps 1000 --heads 1:16'
        >>> changed_command("", {"heads": range(1, 17), "effort": "thorough"})
        "hc.measure(..., heads=range(1, 17), effort='thorough')"
    """
    if not _split(command):
        return f"hc.measure(..., {as_arguments(options)})"
    flags = {f"--{name.replace('_', '-')}": as_option(value) for name, value in options.items()}
    kept = [word for flag, words in _split(command) if flag not in flags for word in words]
    return shlex.join([*kept, *(word for pair in flags.items() for word in pair)])


def as_arguments(options: Mapping[str, Any]) -> str:
    """Write options as arguments in Python: `layers=2, heads=range(1, 17)`."""
    return ", ".join(f"{name}={_as_python(value)}" for name, value in options.items())


def measured_task(command: str) -> str:
    """Return what a command measures: its first word that is no option and no value of one; "" without one.

    Example:
        >>> from headcount.answer.commands import measured_task
        >>> measured_task("headcount measure --labels --steps 500 mine.npz")
        'mine.npz'
    """
    return next((words[0] for flag, words in _split(command)[2:] if not flag), "")


def option_value(command: str, option: str) -> str:
    """Return the value of an option, such as `--targets`; "" where it is not given."""
    given = (words[-1].removeprefix(f"{option}=") for flag, words in _split(command) if flag == option)
    return next(given, "")


def as_option(value: Any) -> str:
    """Write a value as it is typed: `1:6` for a range, `1,2,4` for a list."""
    if isinstance(value, range):
        return f"{value[0]}:{value[-1]}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(as_option, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _split(command: str) -> list[tuple[str, list[str]]]:
    """Split a command into its options, each a flag and its words, and other words, whose flag is "".

    Nothing is returned for what is no command, such as one with an unclosed quotation mark.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    parts: list[tuple[str, list[str]]] = []
    for word in words:
        flag = word.partition("=")[0] if word.startswith("-") else ""
        wants_value = parts and parts[-1][0] not in ("", *FLAGS) and len(parts[-1][1]) == 1
        if wants_value and "=" not in parts[-1][1][0] and not word.startswith("--"):
            parts[-1][1].append(word)
        else:
            parts.append((flag, [word]))
    return parts


def _as_python(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_python, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
