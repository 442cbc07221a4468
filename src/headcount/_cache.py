"""Where headcount keeps what can be computed again: compiled programs and mined negatives.

Compiled programs are kept up to a size. They are pruned here rather than by JAX (`jax_compilation_cache_max_size`),
which needs another package for that, reads under one lock for all threads and processes, and stores nothing more once
it meets an entry that was written without a limit.
"""

import atexit
import contextlib
import os
import shutil
import stat
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

from .errors import require

DEFAULT_CACHE_MB = 1024
"""Of compiled programs: about two thousand small models, each a few hundred kilobytes."""
LEAST_FREE_BYTES = 64 << 20
"""On a disk with less space, nothing is kept."""
WRITING_SECONDS = 60
"""An entry younger than this may still be written."""


def cache_folder() -> Path | None:
    """Return HEADCOUNT_CACHE, or headcount in the user's cache folder; None for a user without a home."""
    given, caches = os.environ.get("HEADCOUNT_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given)
    try:
        return (Path(caches) if caches else Path.home() / ".cache") / "headcount"
    except RuntimeError:  # no home directory
        return None


def cache_bytes() -> int:
    """Return what compiled programs may take: HEADCOUNT_CACHE_MB in bytes. Raises InputError if that is no number."""
    given = os.environ.get("HEADCOUNT_CACHE_MB") or str(DEFAULT_CACHE_MB)
    needed = "a whole number of megabytes; 0 keeps no compiled programs"
    require(given.isascii() and given.isdigit(), what="HEADCOUNT_CACHE_MB", given=given, needed=needed)
    return int(given) << 20


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs on disk for later processes, unless its own variable says where.

    A folder that cannot be written, a full disk or a damaged entry cost a compilation, and nothing else.
    """
    folder, most = cache_folder(), cache_bytes()
    if folder is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    compiled = folder / "compiled"
    if most == 0:
        prune_cache(compiled, 0)
        return
    if not _can_hold(compiled):
        return
    prune_cache(compiled, most)
    atexit.register(prune_cache, compiled, most)
    import jax

    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(compiled))
    # Small programs too: tens of them, each read in a tenth of the time that it takes to compile.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def _can_hold(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > LEAST_FREE_BYTES
    except OSError:
        return False


def prune_cache(folder: Path, most: int) -> None:
    """Remove what was not used for longest until at most `most` bytes are left, and what a full disk cut short.

    Other processes may write, read and prune the folder meanwhile: an entry that is gone is compiled again.
    """
    with contextlib.suppress(OSError):  # there is no folder, or it is not ours
        _remove_damaged(folder)
        entries = [(max(each.st_atime, each.st_mtime), each.st_size, path) for path, each in _files(folder)]
        excess = sum(size for _, size, _ in entries) - most
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            with contextlib.suppress(OSError):  # one that cannot be removed keeps no other
                path.unlink(missing_ok=True)
                excess -= size


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of a folder that are still there; remove a pipe in the place of one, which JAX would wait for."""
    for path in folder.iterdir():
        try:
            status = path.stat()
        except OSError:  # another process was quicker
            continue
        if stat.S_ISFIFO(status.st_mode):
            with contextlib.suppress(OSError):
                path.unlink()
        if stat.S_ISREG(status.st_mode):
            yield path, status


def _remove_damaged(folder: Path) -> None:
    """Remove entries that end too early, which JAX would neither read nor replace. Each is looked at once."""
    looked = folder / ".looked"
    since = looked.stat().st_mtime if looked.exists() else 0.0
    until = time.time() - WRITING_SECONDS
    for path, status in _files(folder):
        if not path.name.endswith("-cache") or not since < status.st_mtime <= until:
            continue
        with contextlib.suppress(OSError):
            if _is_whole(path.read_bytes()):
                os.utime(path, (status.st_atime, status.st_mtime))  # this was no use of it
            else:
                path.unlink(missing_ok=True)
    looked.touch()
    os.utime(looked, (until, until))


def _is_whole(entry: bytes) -> bool:
    if entry[:1] != b"\x78":  # compressed by another library, where JAX finds it
        return bool(entry)
    stream = zlib.decompressobj()
    try:
        stream.decompress(entry)
    except zlib.error:
        return False
    return stream.eof
