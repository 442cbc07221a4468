"""Ctrl-C and a polite kill: acknowledged at once, obeyed at the next checkpoint."""

import contextlib
import os
import signal
import threading
import types
from collections.abc import Callable, Iterator

from .app import messages, say

STOPPING = "Stopping at the next checkpoint; Ctrl-C again stops at once."


@contextlib.contextmanager
def stop_on_signals(on_stop: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and a polite kill set; a second Ctrl-C ends the process.

    Nothing is raised: an exception could be swallowed by what the main thread is doing, or cut a commit in two.

    Args:
        on_stop: Called when the event is set; an exception of it is ignored.
    """
    stop = threading.Event()

    def handle(number: int, frame: types.FrameType | None) -> None:
        if stop.is_set():
            if number == signal.SIGINT:
                with contextlib.suppress(Exception):
                    messages.show_cursor(True)  # a progress bar hides it
                os._exit(130)  # what is committed is safe from any kill
            return
        stop.set()
        for tell in (on_stop, lambda: say(STOPPING)):
            with contextlib.suppress(Exception):  # a closed stderr must not end the run
                tell()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
