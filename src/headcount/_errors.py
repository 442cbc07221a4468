"""What headcount raises when it cannot do what was asked.

Every message says what was wrong, what was given and what would be right, in one sentence; the command line prints
it without a traceback and exits with the error's `exit_code`.
"""

import difflib
from collections.abc import Iterable


class HeadcountError(Exception):
    """The work failed for a reason outside the request (a full disk, a damaged store)."""

    exit_code = 1


class InputError(HeadcountError, ValueError):
    """The request itself cannot be right (heads 0, NaN targets, an unknown task)."""

    exit_code = 2


class StoreError(HeadcountError):
    """The results folder cannot be read or written; what was committed to it is untouched."""


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless `condition` holds."""
    if not condition:
        raise InputError(message)


def require_count(name: str, value: int, least: int = 1) -> None:
    """Raise `InputError` unless `value` is a whole number of at least `least`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, f"{name} must be a whole number of at least {least}, got {value!r}.")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A hint such as ` Did you mean "max-plus-min"?`, or the empty string when nothing known is near `given`."""
    near = difflib.get_close_matches(str(given), list(known), n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""
