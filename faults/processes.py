"""Processes that run headcount: warm ones for most trials, plain ones where the start itself matters."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WATCHED = HERE / "watched"
SECONDS = 300.0
"""A command that takes longer hangs."""
KILLED = -signal.SIGALRM
"""How a process ends that `watched` kills."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (minus the signal that ended it), and what it printed."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """Its last line, where that is one of headcount's messages."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return lines[-1] if lines and lines[-1].startswith("headcount: ") else ""

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.err + self.out


@dataclass(frozen=True)
class Scratch:
    """Where a campaign works: the folder of its trials, the compiled programs, and the library of `syscalls.c`."""

    root: Path
    cache: Path
    library: Path | None

    def new(self) -> Path:
        """A folder for one trial."""
        folder = self.root / uuid.uuid4().hex[:12]
        folder.mkdir()
        return folder

    def environment(self) -> dict[str, str]:
        """What every process of the campaign gets."""
        paths = [str(WATCHED), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        given = {
            "PYTHONPATH": os.pathsep.join(paths),
            "HEADCOUNT_CACHE": str(self.cache),
            "HEADCOUNT_BACKEND": "reference",
            "FAULTS_MEMBERS": "3",
            "OPENBLAS_NUM_THREADS": "1",
            "JAX_PLATFORMS": "cpu",
            "COLUMNS": "100",
        }
        # Unbuffered output fails where it is written, buffered output, a user's, when it is flushed.
        return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | given


def build_library(root: Path) -> Path | None:
    """The library of `syscalls.c`; None where there is no C compiler, or no way to load it before others."""
    library = root / "libsyscalls.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "syscalls.c"), "-ldl"]
    if sys.platform != "linux":
        return None
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library


class Warm:
    """Runs commands in forks of a process that has imported headcount. For one thread."""

    def __init__(self, scratch: Scratch):
        self.scratch = scratch
        environment = scratch.environment()
        if scratch.library is not None:
            environment |= {"LD_PRELOAD": str(scratch.library)}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "faults.warm"],
            cwd=HERE.parent,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        stdout: str | None = None,
        file_bytes: int = 0,
        during: Callable[[int], None] | None = None,
        seconds: float = SECONDS,
    ) -> Ended:
        """Run a command to its end.

        Args:
            arguments: Those of `headcount`, or of the commit loop.
            environment: Variables besides the campaign's own.
            stdout: Where its output goes instead of being read.
            file_bytes: The most that a file may hold; 0 for no limit.
            during: Called with the number of the process while it runs, in another thread.
            seconds: Time after which it is killed, because it hangs.
        """
        out, err = (self.scratch.root / f"{uuid.uuid4().hex}.{stream}" for stream in ("out", "err"))
        request = {
            "arguments": [str(argument) for argument in arguments],
            "environment": dict(environment or {}),
            "stdout": stdout or str(out),
            "stderr": str(err),
            "file_bytes": file_bytes,
        }
        process = int(self._ask(json.dumps(request)))
        watchdog = threading.Timer(seconds, _kill, (process,))
        watchdog.start()
        disturbing = threading.Thread(target=during, args=(process,)) if during else None
        if disturbing:
            disturbing.start()
        code = int(self._answer())
        if disturbing:
            disturbing.join()
        watchdog.cancel()
        texts = []
        for path in (out, err):
            texts.append(path.read_text(errors="replace") if path.exists() else "")
            path.unlink(missing_ok=True)
        return Ended(code, *texts)

    def _ask(self, line: str) -> str:
        assert self._server.stdin is not None
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError("the warm process has ended; its messages are above.")
        return line

    def close(self) -> None:
        with self._server as server:  # closes both streams, and waits; without requests it ends by itself
            assert server.stdin is not None


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


@contextlib.contextmanager
def plain(
    scratch: Scratch,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    closed: Sequence[int] = (),
    **options: Any,
) -> Iterator[subprocess.Popen]:
    """`headcount` in a process of its own from its very start; whatever of it is left at the end is killed.

    `closed` are streams that it does not have at all: a shell closes them, since closing them in a fork of this process
    would fork one that computes.
    """
    without = ["sh", "-c", f'exec "$@" {" ".join(f"{each}>&-" for each in closed)}', "sh"] if closed else []
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        [*without, sys.executable, "-m", "headcount", *map(str, arguments)],
        env=scratch.environment() | dict(environment or {}),
        text=True,
        start_new_session=True,
        **(streams | options),
    )
    try:
        yield process
    finally:
        _kill(process.pid)
        process.wait()


def ended(process: subprocess.Popen, seconds: float = SECONDS) -> Ended:
    """Wait for a plain process; one that hangs is killed, and its code says so."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill(process.pid)
        out, err = process.communicate()
    return Ended(process.returncode, out or "", err or "")


def lives(process: int) -> bool:
    """Whether there is such a process; one that has ended and was not waited for yet does not live."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Ask until it is so."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.002)
    return False
