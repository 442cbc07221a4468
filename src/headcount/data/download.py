"""One file from the network: received in `NAME.part`, checked against its hash, and only then renamed.

A `.part` file left by a broken connection is resumed: the hash of the whole file decides whether the pieces fit.
"""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import HeadcountError

OnBytes = Callable[[int, int | None], None]
TIMEOUT_SECONDS = 30
BLOCK_BYTES = 2**18


@dataclass(frozen=True)
class Source:
    """The address of a file, its local name and the SHA-256 of its content."""

    url: str
    file_name: str
    sha256: str


def ignore_bytes(done: int, total: int | None) -> None:
    """A progress callback that does nothing."""


def fetch(source: Source, folder: Path, on_bytes: OnBytes = ignore_bytes) -> Path:
    """Download `source` into `folder`, unless it is there already.

    Args:
        source: what to download.
        folder: where to; created if missing.
        on_bytes: called as `on_bytes(done, total)` while bytes arrive; `total` is None if the server does not tell.

    Returns:
        The path of the file, whose hash has been checked.

    Raises:
        HeadcountError: no network, a server or disk error, or a file with another hash.
    """
    path, part = folder / source.file_name, folder / f"{source.file_name}.part"
    try:
        if path.exists():
            if sha256(path) == source.sha256:
                return path
            raise HeadcountError(f"{path} does not have sha256 {source.sha256}; delete it to download it again.")
        folder.mkdir(parents=True, exist_ok=True)
        if not part.exists() or sha256(part) != source.sha256:
            _receive(source.url, part, on_bytes)
        received = sha256(part)
        if received == source.sha256:
            os.replace(part, path)
            return path
        part.unlink()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise HeadcountError(
            f"{source.url} could not be downloaded to {part} ({str(error).strip('<>') or type(error).__name__}); "
            f"run again to continue with what arrived, or put {source.file_name} into {folder} yourself."
        ) from error
    raise HeadcountError(
        f"the download from {source.url} has sha256 {received} instead of {source.sha256} and was deleted; run again."
    )


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _receive(url: str, part: Path, on_bytes: OnBytes) -> None:
    """Append the bytes that `part` lacks; start over if the server cannot continue."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "headcount"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        part.unlink()  # at least as long as the file, and its hash is wrong
        return _receive(url, part, on_bytes)
    with response, open(part, "ab") as file:
        if response.status != http.client.PARTIAL_CONTENT:
            done = 0
            file.truncate(0)
        total = None if response.length is None else done + response.length
        while block := response.read1(BLOCK_BYTES):
            file.write(block)
            done += len(block)
            on_bytes(done, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise OSError(f"the connection ended after {done:,} of {total:,} bytes")
    return None
