"""A live page beside a run: served by another process, so that neither can disturb the other."""

import contextlib
import subprocess
import sys
from pathlib import Path

from ..errors import HeadcountError
from ..store import Store
from .server import check_installed


class LivePage:
    """A server of one results folder, which is made where there is none. It ends with `close`, or with this process.

    Args:
        folder: The results folder of the run.
        port: The port; 0 takes one that is free.

    Raises:
        InputError: If the packages of the extra are missing.
        StoreError: If the folder cannot be written.
        HeadcountError: If the server cannot be started.
    """

    def __init__(self, folder: Path, port: int = 0):
        check_installed()
        Store.open_for_writing(folder).close()
        command = [sys.executable, "-m", "headcount.serve", str(folder), str(port)]
        # A session of its own: Ctrl-C in the terminal is for the run. Closing its standard input ends the server.
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._server.stdout is not None
        self.address = self._server.stdout.readline().strip()
        if not self.address:
            self.close()
            raise HeadcountError("the live page could not be started.")

    def wait(self) -> None:
        """Go on serving until an interrupt."""
        try:
            self._server.wait()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.wait(timeout=5)
        self._server.kill()
        self._server.wait()
        self._server.stdout.close()
