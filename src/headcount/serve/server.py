"""Start the server: on the loopback interface, under an address that cannot be guessed; also next to a run."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import HeadcountError, InputError, require
from ..store import Store

if TYPE_CHECKING:  # of an extra
    import uvicorn

HOST = "127.0.0.1"
NEEDED = 'the live page needs starlette and uvicorn: pip install "headcount[serve]"'


def check_installed() -> None:
    """Raise `InputError` with the line that installs what is missing."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(f"{NEEDED} ({error.name} is missing).") from error


def serve(root: Path, port: int = 0, on_ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve the results folders below `root` until an interrupt.

    Args:
        root: A results folder, or one that holds some.
        port: The port; 0 takes one that is free.
        on_ready: Called with the address when it can be opened.

    Raises:
        InputError: If `root` is no folder, `port` is out of range, or the packages of the extra are missing.
        HeadcountError: If the port is in use.
    """
    check_installed()
    require(os.path.isdir(root), f"{root} is no folder; give a results folder, or one that holds some.", what="folder")
    require(0 <= port < 65536, what="port", given=port, needed="between 0 and 65535")
    with bound_socket(port) as listening:
        address, server = server_of(root, listening)
        on_ready(address)  # who opens it now waits until it is answered
        server.run(sockets=[listening])


def server_of(root: Path, listening: socket.socket) -> "tuple[str, uvicorn.Server]":
    """Return the address of the folders below `root` and their server; setting `should_exit` ends it."""
    import uvicorn

    from .app import app_of

    token, port = secrets.token_hex(12), listening.getsockname()[1]
    app, site = app_of(root, token, port)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            site.close()  # streams have no end of their own
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return f"http://{HOST}:{port}/{token}/", Server(config)


def bound_socket(port: int) -> socket.socket:
    """Return a socket at a port of the loopback interface. `HeadcountError` where the port is in use."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise HeadcountError(
            f"port {port} cannot be used ({error.strerror or error}); choose another, or leave --port out."
        ) from error
    return listening


class ServerProcess:
    """The live page of a run, served by another process, so that neither can disturb the other.

    It makes the results folder where there is none, and ends with an interrupt, or with this process.

    Raises:
        InputError: If the packages of the extra are missing.
        StoreError: If the folder cannot be written.
        HeadcountError: If the server cannot be started.
    """

    def __init__(self, folder: Path):
        check_installed()
        Store.open_for_writing(folder).close()
        command = [sys.executable, "-m", "headcount.serve", str(folder)]
        # A session of its own: Ctrl-C in the terminal is for the run. Closing its standard input ends the server.
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._server.stdout is not None
        self.address = self._server.stdout.readline().strip()
        if not self.address:
            self._end()
            raise HeadcountError("the live page could not be started.")

    def wait(self) -> None:
        """Serve until an interrupt."""
        try:
            self._server.wait()
        except KeyboardInterrupt:
            self._end()

    def _end(self) -> None:
        for pipe in (self._server.stdin, self._server.stdout):
            assert pipe is not None
            pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.wait(timeout=5)
        self._server.kill()
        self._server.wait()
