"""Files that others may have put something else in the place of: a pipe is never waited for."""

import errno
import os
import stat
from pathlib import Path


def only_regular(path: str, flags: int) -> int:
    """An `opener` for `open`: `OSError` where the path is a pipe, a device or a folder.

    Example:
        >>> open("/dev/null", "rb", opener=only_regular)
        Traceback (most recent call last):
        OSError: [Errno 22] not a regular file: '/dev/null'
    """
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would wait for a writer
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, most: int = -1) -> bytes:
    """The bytes of a regular file, at most so many; `OSError` where it is none."""
    with open(path, "rb", opener=only_regular) as file:
        return file.read(most)
