"""A live page beside a run: served by another process, so that neither can disturb the other."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .._errors import HeadcountError
from .server import check_installed


@contextlib.contextmanager
def page_beside(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder, which is made where there is none, while the block runs; yields the address.

    Raises:
        InputError: If the packages of the extra are missing.
        HeadcountError: If the server cannot be started.
    """
    check_installed()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadcountError(f"{folder} cannot be made: {error.strerror or error}.") from error
    command = [sys.executable, "-m", "headcount.serve", str(folder.resolve()), str(port)]
    # A session of its own: Ctrl-C in the terminal is for the run, which then ends the server too.
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        if not address:
            raise HeadcountError("the live page could not be started.")
        yield address
    finally:
        server.stdin.close()  # its sign to end
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=5)
        server.kill()
        server.wait()
        server.stdout.close()
