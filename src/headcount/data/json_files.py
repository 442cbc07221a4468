"""JSON: one object {"x": ..., "y": ...} per line, a list of them, or one object with all of x and y."""

import json
from pathlib import Path
from typing import Any

from ..errors import InputError, require
from .examples import Arrays, Wanted, no_options
from .lines import numbered_records, type_name
from .memory import read_limited


def holds_examples(path: Path) -> bool:
    """Whether a file of JSON lines holds examples, by the keys of its first line; otherwise it holds passages.

    Raises:
        InputError: The first line is no JSON object, or has the keys of neither.
    """
    for line, record in numbered_records(path):
        is_passages = "query" in record or any(key.startswith("positive") for key in record)
        if not is_passages and record.keys().isdisjoint("xy"):
            keys = f"examples must have the keys x and y, passages query and positive; found {_listed(record)}"
            raise InputError(f"{path}, line {line}: {keys}.")
        return not is_passages
    raise InputError(f"{path} is empty; write one example per line.")


def read_json_lines(path: Path, wanted: Wanted) -> Arrays:
    """One example per line."""
    no_options(path, wanted)
    return _columns(path, [(f"line {line}", record) for line, record in numbered_records(path, kept=True)])


def read_json(path: Path, wanted: Wanted) -> Arrays:
    """A list of examples, or the arrays by name."""
    no_options(path, wanted)
    text = read_limited(path)
    try:
        content: Any = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        fix = 'it must be {"x": [...], "y": [...]} or a list of examples'
        raise InputError(f"{path} is not JSON ({' '.join(str(error).split())}); {fix}.") from error
    if isinstance(content, dict):
        return Arrays(content)
    require(isinstance(content, list), f"{path} must hold a list of examples or an object, got {type_name(content)}.")
    return _columns(path, [(f"example {place}", record) for place, record in enumerate(content)])


def _columns(path: Path, examples: list[tuple[str, Any]]) -> Arrays:
    require(len(examples) > 0, f"{path} has no examples; it needs at least the 100 that a task takes.")
    for where, record in examples:
        require(isinstance(record, dict), f"{path}, {where}: must be an object, got {type_name(record)}.")
        fault = f"an example must have the keys x and y and no others, found {_listed(record)}"
        require(record.keys() == {"x", "y"}, f"{path}, {where}: {fault}.")
    return Arrays({name: [record[name] for _, record in examples] for name in ("x", "y")})


def _listed(record: dict[str, Any]) -> str:
    return ", ".join(map(str, list(record)[:8])) or "none"
