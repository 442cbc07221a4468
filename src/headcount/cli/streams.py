"""Standard streams that cannot be written, because a disk is full or they are closed.

What is lost on stdout was asked for: that ends in a sentence and exit code 1. What is lost on stderr is a message: a
run goes on without it. A reader that goes away (`headcount export DIR | head`) is not complained about.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from ..errors import HeadcountError


class _Stream:
    """A stream, None where it is closed, whose failures are turned into what `_failed` makes of them."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        return self._tried("write", text) or len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._tried("flush")

    def _tried(self, method: str, *arguments: str) -> Any:
        try:
            if self._stream is not None:
                return getattr(self._stream, method)(*arguments)
            if arguments:
                self._failed("it is closed")
        except BrokenPipeError:
            _discard(self._stream)
            raise
        except OSError as error:
            _discard(self._stream)
            self._failed(error.strerror or str(error))
        return None

    def _failed(self, reason: str) -> None:
        """On stderr there is nobody left to tell."""

    def __getattr__(self, name: str) -> Any:
        if self._stream is None:
            raise AttributeError(name)
        return getattr(self._stream, name)


class _Output(_Stream):
    def _failed(self, reason: str) -> None:
        raise HeadcountError(
            f"standard output cannot be written: {reason}; the result is lost there. Send it elsewhere and run the "
            "command again; what is stored is not computed again."
        )


@contextlib.contextmanager
def told_stdout() -> Iterator[None]:
    """Within it, `HeadcountError` is raised where stdout cannot be written, at the latest at the end."""
    before, sys.stdout = sys.stdout, cast(TextIO, _Output(sys.stdout))
    try:
        try:
            yield
        finally:
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.flush()
    finally:
        sys.stdout = before


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Within it, what stderr does not take is lost, and nothing else is."""
    before, sys.stderr = sys.stderr, cast(TextIO, _Stream(sys.stderr))
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.flush()
        sys.stderr = before


def _discard(stream: Any) -> None:
    """Send what is still in the stream's buffer nowhere: at its exit Python would try, and complain, once more."""
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
