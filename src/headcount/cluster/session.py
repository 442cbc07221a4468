"""A connection to Ray: to a cluster that is there, or to one that is started on this machine and leaves nothing."""

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray
from ray._private import services, worker

from ..errors import InputError
from ..store.live import process_exists
from .dispatch import ClusterLostError
from .remains import watch

ANSWER_SECONDS = 5.0
LOST_SECONDS = 20.0
"""A head that was not started here may be started again within so many seconds."""
LOST = (
    "the Ray cluster does not answer any more: its head, or Ray on this machine, has ended. What is committed is safe; "
    "start the cluster again where it is not a local one, and the same command goes on."
)
FOLDER = "headcount-ray-"
MAX_FOLDER = 40
"""Characters of the folder for sockets: a socket's path has 107 at most, of which Ray needs 60."""


class Session:
    """Ray, connected; disconnected by `close` where it was not before.

    Args:
        on: As for `ray_executor`.
        cpus: Of a cluster that is started here: as many as this machine has where None.
    """

    def __init__(self, on: str, cpus: int | None = None):
        self.folder: Path | None = None
        """That of a cluster that was started here."""
        self._watching: subprocess.Popen | None = None
        self._answered = time.monotonic()
        address = (os.environ.get("RAY_ADDRESS") or "local") if on == "ray" else on
        _knock(on, address)
        self._connected = ray.is_initialized()
        if self._connected:  # by whoever calls us, so theirs to end
            _require_connected_to(on, address)
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address == "local":
            self.folder = _fresh_folder()
            options |= {"num_cpus": cpus, "include_dashboard": False, "_temp_dir": str(self.folder)}
            options |= {"num_gpus": 0} if os.environ.get("JAX_PLATFORMS") == "cpu" else {}
            self._watching = watch(str(self.folder))
        self._silent = contextlib.ExitStack()
        self._silent.enter_context(_silence())
        printed: list[str] = []
        try:
            with (
                _our_signals(),
                _printing_into(printed),
                self._sessions_of_their_own(),
                warnings.catch_warnings(),
            ):
                # Ray starts its processes by fork and exec, which JAX's threads do not mind.
                warnings.filterwarnings("ignore", message="os.fork")
                ray.init(address, **options)
        except BaseException as error:
            self.close()
            if not isinstance(error, Exception):
                raise
            way_out = _way_out(address, f"{error} {''.join(printed)}")
            message = f"no Ray cluster could be joined at {address}: {_first_line(error)}. {way_out}"
            raise InputError(message, what="on", given=on) from error

    @property
    def local(self) -> bool:
        """Whether the cluster was started here."""
        return self.folder is not None

    def answers(self) -> bool:
        """Whether the head answers. Raises `ClusterLostError` where it or Ray on this machine has ended.

        Ray itself would end this process with a line of its own: ten seconds or a minute later.
        """
        node = _node()
        if node is None:  # a client: its calls raise what is wrong
            return True
        host, _, port = str(node.gcs_address).rpartition(":")
        now = time.monotonic()
        if _answers_at((host.strip("[]"), int(port))):
            self._answered = now
        waits = LOST_SECONDS if self.folder is None else 0.0
        if now - self._answered > waits or not _answers_at(node.raylet_socket_name):
            raise ClusterLostError(LOST)
        return self._answered == now

    @contextlib.contextmanager
    def _sessions_of_their_own(self) -> Iterator[None]:
        """Ray's processes, as far as they are started here, are in another process group than this one.

        A signal to this group, such as Ctrl-C in a terminal or `timeout`, would end them while they are still needed.
        Where nobody watches over them they stay in the group: whoever kills all of it kills them too.
        """
        popen = getattr(services, "ConsolePopen", None)
        if self._watching is None or popen is None:
            yield
            return
        services.ConsolePopen = functools.partial(popen, start_new_session=True)
        try:
            yield
        finally:
            services.ConsolePopen = popen

    def close(self) -> None:
        """Disconnect; a cluster that was started here ends with it."""
        if not self._connected:
            with _our_signals():
                ray.shutdown()
            self._silent.close()
            if self._watching is not None:
                self._watching.kill()
                self._watching.communicate()
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)


def _answers_at(address: str | tuple[str, int]) -> bool:
    """Whether somebody listens at a socket: a path, or a host and a port."""
    try:
        if isinstance(address, str):
            with socket.socket(socket.AF_UNIX) as knocking:
                knocking.connect(address)
        else:
            socket.create_connection(address, ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _knock(on: str, address: str) -> None:
    """Raise `InputError` where nothing answers: Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address in ("auto", "local"):
        return
    if not (host and colon and port.isdigit()):
        needed = '"ray", "auto", the "host:port" of a head, or "ray://host:port"'
        raise InputError(what="on", given=on, needed=needed)
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({_first_line(error)}). Start one there with `ray start --head`, or "
            "leave the address out to use this machine.",
            what="on",
            given=on,
        ) from error


def _require_connected_to(on: str, address: str) -> None:
    """Raise `InputError` where Ray is connected already, to another cluster than the one that was asked for."""
    node, client = _node(), address.startswith("ray://")
    if address in ("auto", "local") or (client and node is None):
        return
    connected = "another address" if node is None else str(node.gcs_address)
    if client or node is None or _place(address) != _place(connected):
        raise InputError(
            f"on {on} was asked for, but this process is connected to the Ray cluster at {connected}: call "
            'ray.shutdown() first, or pass "auto" to use that cluster.',
            what="on",
            given=on,
        )


def _node() -> Any:
    """Ray's description of where this process is connected; None for a client, which is no part of the cluster."""
    return getattr(worker.global_worker, "node", None)


def _place(address: str) -> tuple[str, str]:
    """The host's number and the port of an address; this machine has one number, whichever way it is named."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host.strip("[]"))
    return ray.util.get_node_ip_address() if host.startswith("127.") else host, port


def _fresh_folder() -> Path:
    """A folder for the files of a cluster; those whose process was killed before it could remove them are removed."""
    parent = Path(tempfile.gettempdir())
    if len(str(parent)) > MAX_FOLDER - len(FOLDER) - 10:
        parent = Path("/tmp")
    for folder in parent.glob(f"{FOLDER}*"):
        pid = folder.name.removeprefix(FOLDER).partition("-")[0]
        if pid.isdigit() and not process_exists(int(pid)) and not _answers(folder):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-", dir=parent))


def _answers(folder: Path) -> bool:
    """Whether a cluster lives there, perhaps of a container that has other process ids."""
    return any(_answers_at(str(path)) for path in folder.glob("session_*/sockets/*"))


@contextlib.contextmanager
def _our_signals() -> Iterator[None]:
    """Ray puts a handler of its own in place of ours, which would end the process at a polite kill."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # not in the main thread, where Ray sets none either
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Ray prints the death of every worker, on stdout; here the count of workers says it, and a bucket's record."""
    printing = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        if printing is not None:
            worker.print_to_stdstream = printing


@contextlib.contextmanager
def _printing_into(printed: list[str]) -> Iterator[None]:
    """What is written to stderr within it, by the parts of Ray that are not Python too, goes there instead."""
    with tempfile.TemporaryFile() as file, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # stderr is closed: nobody sees it anyway
            sys.stderr.flush()
            stderr = os.dup(2)
            stack.callback(os.close, stderr)
            stack.callback(os.dup2, stderr, 2)
            os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            file.seek(0)
            printed.append(file.read().decode(errors="replace"))


def _way_out(address: str, said: str) -> str:
    """What to do where Ray has said this instead of joining a cluster."""
    token = "set RAY_AUTH_MODE=token, and put the cluster's token into ~/.ray/auth_token or RAY_AUTH_TOKEN"
    if "InvalidAuthToken" in said or "token is missing" in said:
        return f"It asks for a token, which is missing here or another one: {token}."
    if address.startswith("ray://") and "timeout" in said:
        return f"If its head asks for a token, {token}; otherwise see that the head's Ray client server still runs."
    return "Start one there with `ray start --head`, or leave the address out to use this machine."


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
