"""Files from the network: received beside their place, checked, and only then given their name.

What has come of a file lies in `NAME.part`, so that a broken connection costs only what had not come yet. A file
whose hash nobody knows beforehand goes on only where the server vouches that it is still the same one (its entity
tag or date, kept in `NAME.part.tag`); otherwise two versions could be joined into one.
"""

import contextlib
import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .._errors import HeadcountError, require

OnBytes = Callable[[int, int | None], None]
SECONDS_OF_SILENCE = 30
BLOCK = 2**18


@dataclass(frozen=True)
class Source:
    """Where a file is on the network, its name here, and what its bytes must be; None where nobody knows."""

    url: str
    file_name: str
    sha256: str | None = None
    size: int | None = None

    def __post_init__(self):
        require(
            self.url.startswith(("https://", "http://")),
            f'a file can be fetched from an https:// or http:// address, got "{self.url}".',
        )
        require(
            self.file_name not in ("", "..") and Path(self.file_name).name == self.file_name,
            f'the name of a fetched file must be a plain file name, got "{self.file_name}".',
        )

    def fault(self, path: Path) -> str | None:
        """What is wrong with the bytes at `path`, or None."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"has {size:,} bytes rather than {self.size:,}"
        if self.sha256 is not None:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != self.sha256.lower():
                return f"has sha256 {found} rather than {self.sha256.lower()}"
        return None


class _BrokenOffError(Exception):
    """The network gave no more; the text says why."""


def _in_silence(done: int, total: int | None) -> None:
    pass


def fetch(source: Source, folder: Path, *, on_bytes: OnBytes = _in_silence) -> Path:
    """The path of `source` in `folder`, from the network unless it is there already.

    `on_bytes(done, total)` is called as bytes come; `total` is None where the server does not say.
    """
    path, part = folder / source.file_name, folder / f"{source.file_name}.part"
    with _disk(path):
        if path.exists():
            fault = source.fault(path)
            if fault is None:
                return path
            raise HeadcountError(f"{path} is there already but {fault}; move it away to have it fetched again.")
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with _disk(part):
            _receive(source, part, on_bytes)
    except _BrokenOffError as error:
        raise HeadcountError(f"{source.url} could not be fetched: {error}; {_what_now(source, part)}.") from error
    with _disk(path):
        fault = source.fault(part)
        if fault is None:
            os.replace(part, path)
        _discard(part)
    if fault is not None:
        raise HeadcountError(f"what came from {source.url} {fault}, so it was deleted; try again, or another source.")
    return path


def _what_now(source: Source, part: Path) -> str:
    advice = "try again where there is a network, or give a local folder that holds the file"
    kept = _kept(source, part)
    return f"{advice} (the {kept:,} bytes that came are kept in {part} for next time)" if kept else advice


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise HeadcountError(
            f"{path} cannot be written or read here ({reason}); make room or choose another folder."
        ) from error


@contextlib.contextmanager
def _network() -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise _BrokenOffError(f"the server answered {error.code} {error.reason}") from error
    except TimeoutError as error:
        raise _BrokenOffError(f"the server was silent for {SECONDS_OF_SILENCE} seconds") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _BrokenOffError(f"the server was silent for {SECONDS_OF_SILENCE} seconds") from error
        raise _BrokenOffError(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: an answer that is not HTTP
        raise _BrokenOffError(f"the connection broke ({error or type(error).__name__})") from error


def _receive(source: Source, part: Path, on_bytes: OnBytes) -> None:
    """Fill `part` to its end, from where it stands."""
    done = _kept(source, part)
    if done and source.size is not None and done >= source.size:
        return  # all there; whether it is right is looked at next
    with _network():
        answer = _ask(source, part, done)
    if answer is None:
        return
    with contextlib.closing(answer):
        if answer.status != http.client.PARTIAL_CONTENT:
            done = 0
            _discard(part)
            _remember(source, part, answer)
        total = None if answer.length is None else done + answer.length
        with open(part, "ab") as file:
            for block in _blocks(answer, answer.length):
                file.write(block)
                file.flush()
                done += len(block)
                on_bytes(done, total)
            os.fsync(file.fileno())
    if total is not None and done < total:
        raise _BrokenOffError(f"the connection ended after {done:,} of {total:,} bytes")


def _ask(source: Source, part: Path, start: int) -> http.client.HTTPResponse | None:
    """The server's answer, which begins at byte `start` or (status 200) at the first; None: nothing is missing."""
    request = urllib.request.Request(source.url, headers={"User-Agent": "headcount"})
    if start:
        request.add_header("Range", f"bytes={start}-")
        if source.sha256 is None:
            request.add_header("If-Range", _tag(part).read_text())
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE)
    except urllib.error.HTTPError as error:
        if not start or error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        if error.headers.get("Content-Range", "").endswith(f"*/{start}"):
            return None
        return _ask(source, part, 0)
    begins = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    if answer.status == http.client.PARTIAL_CONTENT and (begins is None or int(begins[1]) != start):
        answer.close()
        return _ask(source, part, 0)
    return answer


def _blocks(answer: http.client.HTTPResponse, left: int | None) -> Iterator[bytes]:
    """The bytes of `answer` until it ends or `left` have come, whichever is first."""
    while left is None or left > 0:
        with _network():
            block = answer.read1(BLOCK)
        if not block:
            return
        left = None if left is None else left - len(block)
        yield block


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _kept(source: Source, part: Path) -> int:
    """How many bytes of an earlier try can be gone on from."""
    trusted = source.sha256 is not None or _tag(part).exists()
    return part.stat().st_size if trusted and part.exists() else 0


def _remember(source: Source, part: Path, answer: http.client.HTTPResponse) -> None:
    """Keep the server's word for which version this is, where no hash would tell."""
    tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    if source.sha256 is None and tag and not tag.startswith("W/"):  # weak tags do not promise the same bytes
        _tag(part).write_text(tag)


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)
