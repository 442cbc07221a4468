"""Text files read line by line, plain or gzipped; what is wrong with one is said with its file and line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from .._errors import InputError


def plain_or_gzipped(path: Path) -> Path | None:
    """`path` if there is such a file, else the same with .gz, else None."""
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


def bad_line(path: Path, line: int, fault: str) -> NoReturn:
    raise InputError(f"{path}, line {line}: {fault}.")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file that are not blank, counted from 1, without their ends."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.name.endswith(".gz") else open(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                text = raw.decode().rstrip("\r\n")
                if number == 1:
                    text = text.removeprefix("\ufeff")
                if text.strip():
                    yield number, text
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: the text is not UTF-8 (byte {error.start + 1} of the line)."
        ) from error
    except (EOFError, zlib.error, OSError) as error:  # gzip raises each of these for a file cut short or damaged
        raise InputError(f"{path} cannot be read after line {number} ({type(error).__name__}: {error}).") from error


def numbered_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file that holds one on each line."""
    for number, text in numbered_lines(path):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: the line is not JSON ({error}).") from error
        if not isinstance(record, dict):
            bad_line(path, number, f"a line must hold a JSON object, got {type(record).__name__}")
        yield number, record


def as_text(value: Any, what: str, path: Path, line: int) -> str:
    """`value` if it is a text that says something."""
    if not isinstance(value, str):
        bad_line(path, line, f"{what} must be a text, got {_kind(value)}")
    if not value.strip():
        bad_line(path, line, f"{what} is empty")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            bad_line(path, line, f"{what} holds half of a surrogate pair, which is no character")
    return value


def as_name(value: Any, what: str, path: Path, line: int) -> str:
    """`value` as an identifier: a text, or a whole number written out."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else as_text(value, what, path, line)


def as_list(value: Any, what: str, path: Path, line: int) -> list[Any]:
    if not isinstance(value, list):
        bad_line(path, line, f"{what} must be a list, got {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
