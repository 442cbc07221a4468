"""Ctrl-C and a polite kill: acknowledged at once, obeyed at the next checkpoint."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

from .app import messages, say

STOPPING = "Stopping at the next checkpoint; Ctrl-C again stops at once."


@contextlib.contextmanager
def stop_on_signals(on_stop: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """An event that Ctrl-C and a polite kill set; a second Ctrl-C ends the process.

    An exception in their place could be swallowed by whatever the main thread is doing just then (a garbage collector's
    callback swallows it), or could cut a commit in two. A handler in Python would wait until the main thread comes back
    from what it compiles; a thread of its own hears of a signal while that goes on.

    Args:
        on_stop: Called when the event is set; an exception of it is ignored.
    """
    stop = threading.Event()
    heard, told = socket.socketpair()
    told.setblocking(False)

    def listen() -> None:
        while number := heard.recv(1):
            if stop.is_set() and number[0] == signal.SIGINT:
                with contextlib.suppress(Exception):
                    messages.show_cursor(True)  # a progress bar hides it
                os._exit(130)  # what is committed is safe from any kill
            if not stop.is_set() and number[0] in (signal.SIGINT, signal.SIGTERM):
                stop.set()
                with contextlib.suppress(Exception):  # a closed stderr must not end this thread: it hears Ctrl-C again
                    on_stop()
                with contextlib.suppress(Exception):
                    say(STOPPING)

    listener = threading.Thread(target=listen, name="signals", daemon=True)
    listener.start()
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    woken = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        told.close()
        listener.join()
        heard.close()
