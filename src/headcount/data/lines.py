"""Text files read line by line, plain or gzipped; an error names the file and the line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from .._limits import TEXT_FACTOR, max_bytes, max_line_bytes, require_fits
from ..errors import InputError

MAX_GZIP_RATIO = 1032
"""Bytes that one byte of a gzip file can stand for at most."""


def bad_line(path: Path, line: int, fault: str, fix: str = "correct or remove the line") -> NoReturn:
    """Raise `InputError` for a line: what is wrong with it, and what to do about it."""
    raise InputError(f"{path}, line {line}: {fault}; {fix}.")


def raw_lines(path: Path, *, kept: bool = False) -> Iterator[tuple[int, str]]:
    """Return the lines of a UTF-8 file, numbered from 1, with their ends.

    Raises `InputError` if the file is damaged or not UTF-8, a line is longer than `HEADCOUNT_MAX_LINE_MB`, or, where
    what is read is `kept`, the lines need more memory than is allowed: a packed file may be far larger than it looks.
    """
    number, size, longest, most = 0, 0, max_line_bytes(), max_bytes()
    try:
        if kept:
            require_fits(path, TEXT_FACTOR * _said_bytes(path))
        with gzip.open(path, "rb") if path.name.endswith(".gz") else open(path, "rb") as file:
            for number, raw in enumerate(iter(lambda: file.readline(longest + 1), b""), start=1):
                size += len(raw)
                if len(raw) > longest:
                    raise_it = "is it text? The environment variable HEADCOUNT_MAX_LINE_MB raises the limit"
                    bad_line(path, number, f"longer than {longest // 2**20} MiB, the limit", raise_it)
                if kept and TEXT_FACTOR * size > most:
                    require_fits(path, TEXT_FACTOR * size)
                text = raw.decode()
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        fault = f"{path}, line {number}: not UTF-8 (byte {error.start + 1} of the line)"
        raise InputError(f"{fault}; save the file as UTF-8.") from error
    except (EOFError, zlib.error, OSError) as error:  # gzip raises each of these for a truncated or damaged file
        fault = f"{path} cannot be read after line {number} ({type(error).__name__}: {error})"
        raise InputError(f"{fault}; copy or download it again.") from error


def _said_bytes(path: Path) -> int:
    """Return a file's size, or what a gzip file says that it holds modulo 4 GiB; 0 where that cannot be right."""
    size = path.stat().st_size
    if not path.name.endswith(".gz"):
        return size
    with open(path, "rb") as file:
        file.seek(max(0, size - 4))
        said = int.from_bytes(file.read(4), "little")
    return said if said <= MAX_GZIP_RATIO * size else 0


def numbered_lines(path: Path, *, kept: bool = False) -> Iterator[tuple[int, str]]:
    """Return the lines of a UTF-8 file that are not blank, numbered from 1, without line ends; see `raw_lines`."""
    for number, text in raw_lines(path, kept=kept):
        if text.strip():
            yield number, text.rstrip("\r\n")


def numbered_records(path: Path, *, kept: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return the JSON objects of a file with one per line; see `raw_lines`."""
    for number, text in numbered_lines(path, kept=kept):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON ({error}); each line must be one object.") from error
        if not isinstance(record, dict):
            bad_line(path, number, f"must be a JSON object, got {type_name(record)}")
        yield number, record


def type_name(value: Any) -> str:
    """Name the type of a value, for a message."""
    return "nothing" if value is None else type(value).__name__
