"""Text files read line by line, plain or gzipped; an error names the file and the line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from .._errors import InputError
from .memory import MAX_LINE_BYTES, require_text_fits


def plain_or_gzipped(path: Path) -> Path | None:
    """`path` if there is such a file, else `path` with .gz, else None."""
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


def bad_line(path: Path, line: int, fault: str) -> NoReturn:
    raise InputError(f"{path}, line {line}: {fault}.")


def raw_lines(path: Path, *, kept: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, numbered from 1, with their ends.

    Raises:
        InputError: The file is damaged or not UTF-8, a line is longer than `MAX_LINE_BYTES`, or, where what is read is
            `kept`, the lines need more memory than there is: a packed file may be far larger than it looks.
    """
    number, size = 0, 0
    try:
        if kept:
            require_text_fits(path, path.stat().st_size)
        with gzip.open(path, "rb") if path.name.endswith(".gz") else open(path, "rb") as file:
            for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1):
                size += len(raw)
                if len(raw) > MAX_LINE_BYTES:
                    bad_line(path, number, f"longer than {MAX_LINE_BYTES // 2**20} MiB")
                if kept:
                    require_text_fits(path, size)
                text = raw.decode()
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 (byte {error.start + 1} of the line).") from error
    except (EOFError, zlib.error, OSError) as error:  # gzip raises each of these for a truncated or damaged file
        raise InputError(f"{path} cannot be read after line {number} ({type(error).__name__}: {error}).") from error


def numbered_lines(path: Path, *, kept: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file that are not blank, numbered from 1, without line ends; see `raw_lines`."""
    for number, text in raw_lines(path, kept=kept):
        if text.strip():
            yield number, text.rstrip("\r\n")


def numbered_records(path: Path, *, kept: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with one per line; see `raw_lines`."""
    for number, text in numbered_lines(path, kept=kept):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON ({error}).") from error
        if not isinstance(record, dict):
            bad_line(path, number, f"must be a JSON object, got {type_name(record)}")
        yield number, record


def as_text(value: Any, what: str, path: Path, line: int) -> str:
    """`value`, a string that is neither blank nor impossible to write as UTF-8."""
    if not isinstance(value, str):
        bad_line(path, line, f"{what} must be a string, got {type_name(value)}")
    if not value.strip():
        bad_line(path, line, f"{what} is empty")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            bad_line(path, line, f"{what} has a lone surrogate, which is not a character")
    return value


def as_id(value: Any, what: str, path: Path, line: int) -> str:
    """`value` as an id: a string, or an integer turned into one."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else as_text(value, what, path, line)


def as_list(value: Any, what: str, path: Path, line: int) -> list[Any]:
    if not isinstance(value, list):
        bad_line(path, line, f"{what} must be a list, got {type_name(value)}")
    return value


def type_name(value: Any) -> str:
    """What a message calls the type of a value."""
    return "nothing" if value is None else type(value).__name__
