"""End what is left of a local cluster once the process that started it is gone, and remove its files.

A killed process cannot stop its cluster. Ray's own processes notice it, but some of them only after minutes. This file
is run by itself (`watch` starts it), and imports nothing but Python's own: it waits for the end of that process.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

GRACE_SECONDS = 3.0
"""Ray's processes have so long to end by themselves, and again after they were asked to."""


def watch(folder: str) -> subprocess.Popen | None:
    """Start watching over the cluster that has its files in this folder; None where processes cannot be looked at.

    Close its stdin to end it.
    """
    if not os.path.isdir("/proc/self/fd"):
        return None
    return subprocess.Popen(
        [sys.executable, "-S", "-E", __file__, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives whoever is killed with all of its group
    )


def processes_of(folder: str) -> Iterator[int]:
    """The processes that have a file of this folder open, such as their log."""
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            opened = (os.readlink(f"/proc/{name}/fd/{number}") for number in os.listdir(f"/proc/{name}/fd"))
            if any(path.startswith(folder + os.sep) for path in opened):
                yield int(name)


def main(folder: str) -> None:
    sys.stdin.buffer.read()  # ends when the process that started this one does
    for number in (signal.SIGTERM, signal.SIGKILL):
        time.sleep(GRACE_SECONDS)
        for process in processes_of(folder):
            with contextlib.suppress(OSError):
                os.kill(process, number)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
