"""Files are written whole or not at all, and nobody waits for a pipe that lies where a file should be."""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

UNFINISHED = ".unfinished"
"""The ending of a file that is being written."""


def only_regular(path: str, flags: int) -> int:
    """Return an `opener` for `open`: `OSError` where the path is a pipe, a device or a folder.

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
    """Return the bytes of a regular file, at most `most` of them; `OSError` where it is none."""
    with open(path, "rb", opener=only_regular) as file:
        return file.read(most)


def write_whole(path: Path, content: bytes, *, durable: bool = False, unfinished: Path | None = None) -> None:
    """Write a file whole or not at all: one that was there stays until the new one is complete.

    Args:
        path: The file; its folder is there.
        content: What is in it.
        durable: Return only when it survives a power loss.
        unfinished: Its name until it is complete, in the same folder; a random one where None. A kill leaves that file,
            so that a process which alone writes `path`, and often, gives a fixed one.

    Raises:
        OSError: If it cannot be written.
    """
    unfinished = unfinished or path.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make new names last; a system that cannot sync a folder (Windows) does without."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
