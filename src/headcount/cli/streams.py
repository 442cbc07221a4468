"""Standard streams that cannot be written, because a disk is full or they are closed.

What is lost on stdout was asked for: that ends in a sentence and exit code 1. What is lost on stderr is a message: a
run continues without it. A reader that goes away (`headcount export DIR | head`) is not complained about.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import HeadcountError


class _Guarded:
    """A stream, None where it is closed; `failed` hears why something could not be written."""

    def __init__(self, stream: Any, failed: Callable[[str], None]):
        self._stream, self._failed = stream, failed

    def write(self, text: str) -> int:
        if self._stream is None:
            self._failed("it is closed")
        else:
            self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        if self._stream is not None:
            self._try(self._stream.flush)

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except OSError as error:
            _discard(self._stream)
            if isinstance(error, BrokenPipeError):
                raise
            self._failed(error.strerror or str(error))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _guarded(name: str, failed: Callable[[str], None]) -> Iterator[None]:
    before = getattr(sys, name)
    guarded = _Guarded(before, failed)
    setattr(sys, name, guarded)
    try:
        try:
            yield
        finally:
            with contextlib.suppress(BrokenPipeError):
                guarded.flush()
    finally:
        setattr(sys, name, before)


def told_stdout() -> contextlib.AbstractContextManager[None]:
    """Raise `HeadcountError` where stdout cannot be written, at the latest at the end."""
    return _guarded("stdout", _refuse)


def quiet_stderr() -> contextlib.AbstractContextManager[None]:
    """Lose what stderr does not take, and nothing else."""
    return _guarded("stderr", lambda reason: None)


def _refuse(reason: str) -> None:
    raise HeadcountError(
        f"standard output cannot be written: {reason}; the result is lost there. Send it elsewhere and run the "
        "command again; what is stored is not computed again."
    )


def _discard(stream: Any) -> None:
    """Send what is still in the stream's buffer nowhere: at its exit Python would try, and complain, once more."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
