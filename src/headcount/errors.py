"""What headcount raises when it cannot do what was asked.

A message says in one sentence what was wrong, what was given and what would be right. The command line prints it
without a traceback, names flags instead of arguments, and exits with the error's `exit_code`.
"""

import difflib
import re
from collections.abc import Collection, Iterable


class HeadcountError(Exception):
    """The work failed for a reason outside the request, such as a full disk or a damaged store.

    Catch it to catch everything that headcount raises on purpose.

    Example:
        >>> import headcount as hc
        >>> try:
        ...     hc.find_task("sum-of-maxima", intrinsic_dim=0)
        ... except hc.HeadcountError as error:
        ...     print(error)
        intrinsic_dim must be a whole number of at least 1, got 0.
    """

    exit_code = 1

    def on_command_line(self, flags: Collection[str]) -> str:
        """Return the message for someone who typed a command that takes these flags."""
        return str(self)


class InputError(HeadcountError, ValueError):
    """The request itself cannot be right: 0 heads, NaN targets, an unknown task.

    `what` names the argument, `given` is its value and `needed` says what it must be, where the error is about one
    argument; the message is made from them unless one is passed. Of an error about several, `what` has all names.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, what: str = "", given: object = None, needed: str = ""):
        super().__init__(message or f"{what} must be {needed}, got {given!r}.")
        self.what, self.given, self.needed = what, given, needed

    def on_command_line(self, flags: Collection[str]) -> str:
        """Put flags in place of arguments: `--head-dim` for head_dim, `--ranks` for the rank of one model.

        A message that does not spell its argument out is put behind the flag.
        """
        message = str(self)
        for name in self.what.split():
            flag = next((flag for flag in (_flag(name), f"{_flag(name)}s") if flag in flags), None)
            if flag is not None and flag not in message:
                # Not within a path or another word.
                put = re.sub(rf'(?<![\w/.-])"?{name}"?(?![\w/-])', flag, message, count=1)
                message = put if flag in put else f"{flag}: {message}"
        return message


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class BudgetError(InputError):
    """The time that was given was over before there was anything to answer from."""

    exit_code = 4


class StoreError(HeadcountError):
    """The results folder cannot be read or written; what was committed to it is untouched."""


def require(condition: bool, message: str = "", *, what: str = "", given: object = None, needed: str = "") -> None:
    """Raise an `InputError` of these fields unless `condition` holds."""
    if not condition:
        raise InputError(message, what=what, given=given, needed=needed)


def require_count(name: str, value: int, least: int = 1) -> None:
    """Raise `InputError` unless `value` is a whole number of at least `least`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, what=name, given=value, needed=f"a whole number of at least {least}")


def one_line_of(error: Exception) -> str:
    """Return another library's error message on one line, without its full stop."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a hint such as ` Did you mean "max-plus-min"?`, or the empty string when nothing known is near `given`."""
    near = difflib.get_close_matches(str(given), list(known), n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""
