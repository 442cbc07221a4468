"""Connect this process to a Ray cluster, and notice when the cluster is lost."""

import contextlib
import os
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from typing import Any

import ray

from ..errors import HeadcountError, InputError

ANSWER_SECONDS = 5.0
LOST_SECONDS = 20.0
"""A head may be started again within this time. Ray itself ends the process after a minute."""
SENT_VARIABLES = ("HEADCOUNT_", "JAX_", "XLA_FLAGS")
LOCAL = "local"


class ClusterLostError(HeadcountError):
    """The cluster does not answer any more; what is committed is safe."""

    def __init__(self):
        super().__init__(
            "the Ray cluster does not answer any more: its head, or Ray on this machine, has ended. What is committed "
            "is safe; start the cluster again where it is not a local one, and the same command continues."
        )


class Connection:
    """A connection to a Ray cluster; `close` ends it unless this process was connected before.

    Raises `InputError` if no cluster can be joined there, or this process is connected to one already, and another may
    be meant.
    """

    def __init__(self, on: str):
        address = (os.environ.get("RAY_ADDRESS") or LOCAL) if on == "ray" else on
        self._ours = not ray.is_initialized()
        if self._ours:
            _join(on, address)
        elif on not in ("ray", "auto"):
            message = f"on {on} was asked for, but this process is connected to a Ray cluster already: call "
            message += 'ray.shutdown() first, or pass "auto" to use that cluster.'
            raise InputError(message, what="on", given=on)
        self._head = None if address.startswith("ray://") else _host_and_port(ray.get_runtime_context().gcs_address)
        self._answered = time.monotonic()

    def head_answers(self) -> bool:
        """Whether the head answers. Raises `ClusterLostError` where it has not for a while: Ray itself would wait for a
        minute and then end this process. What a client calls raises by itself."""
        if self._head is None or _listens(self._head):
            self._answered = time.monotonic()
            return True
        if time.monotonic() - self._answered > LOST_SECONDS:
            raise ClusterLostError
        return False

    def close(self) -> None:
        """Disconnect; a local cluster ends with it."""
        if self._ours:
            with _own_signals():
                ray.shutdown()


def _join(on: str, address: str) -> None:
    place = _host_and_port(address)
    if address not in ("auto", LOCAL) and not (place and _listens(place)):  # Ray itself would wait for minutes
        raise _not_joined(on, address, "nothing answers there")
    if address == LOCAL:
        options: dict[str, Any] = {"include_dashboard": False}
    else:  # on this machine workers inherit the environment
        sent = {name: value for name, value in os.environ.items() if name.startswith(SENT_VARIABLES)}
        options = {"runtime_env": {"env_vars": sent}}
    try:
        with _own_signals(), warnings.catch_warnings():
            # Ray starts its processes by fork and exec, which JAX's threads do not mind.
            warnings.filterwarnings("ignore", message="os.fork")
            ray.init(address, log_to_driver=False, logging_level="error", **options)
    except Exception as error:
        why = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise _not_joined(on, address, why) from error


def _not_joined(on: str, address: str, why: str) -> InputError:
    return InputError(
        f"no Ray cluster could be joined at {address}: {why}. Start one there with `ray start --head`, or leave the "
        "address out to use this machine; where its head asks for a token, set RAY_AUTH_MODE=token and put the token "
        "into ~/.ray/auth_token.",
        what="on",
        given=on,
    )


def _host_and_port(address: str) -> tuple[str, int] | None:
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    return (host.strip("[]"), int(port)) if host and colon and port.isdigit() else None


def _listens(place: tuple[str, int]) -> bool:
    with contextlib.suppress(OSError, OverflowError):
        socket.create_connection(place, ANSWER_SECONDS).close()
        return True
    return False


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handlers of signals: Ray puts its own in their place, which would end the process at a polite kill."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # not in the main thread, where Ray sets none either
            for number, handler in handlers.items():
                signal.signal(number, handler)
