"""JSON: one object {"x": ..., "y": ...} per line, a list of them, or one object with all of x and y."""

import json
from pathlib import Path
from typing import Any

from ..errors import InputError, require
from .examples import Arrays, Wanted, no_options
from .lines import bad_line, numbered_records, type_name
from .memory import read_limited

EXAMPLE_KEYS = frozenset(("x", "y"))


def holds_examples(path: Path) -> bool:
    """Whether a file of JSON lines holds examples, by the keys of its first line; otherwise it holds passages.

    Raises:
        InputError: The first line is no JSON object, or has the keys of neither.
    """
    for line, record in numbered_records(path):
        if EXAMPLE_KEYS & record.keys():
            return True
        if "query" in record or any(key.startswith("positive") for key in record):
            return False
        keys = ", ".join(list(record)[:8]) or "none"
        bad_line(path, line, f"examples must have the keys x and y, passages query and positive; found {keys}")
    raise InputError(f"{path} is empty; write one example per line.")


def read_json_lines(path: Path, wanted: Wanted) -> Arrays:
    """One example per line."""
    no_options(path, wanted)
    examples = []
    for line, record in numbered_records(path, kept=True):
        if record.keys() != EXAMPLE_KEYS:
            bad_line(path, line, _key_fault(record))
        examples.append(record)
    return _columns(path, examples)


def read_json(path: Path, wanted: Wanted) -> Arrays:
    """A list of examples, or the arrays by name."""
    no_options(path, wanted)
    try:
        content: Any = json.loads(read_limited(path).decode("utf-8-sig"))
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); copy it again.") from error
    except (ValueError, RecursionError) as error:
        fix = 'it must be {"x": [...], "y": [...]} or a list of examples'
        raise InputError(f"{path} is not JSON ({' '.join(str(error).split())}); {fix}.") from error
    if isinstance(content, dict):
        return Arrays(content)
    require(isinstance(content, list), f"{path} must hold a list of examples or an object, got {type_name(content)}.")
    for place, record in enumerate(content):
        require(isinstance(record, dict), f"{path}: example {place} must be an object, got {type_name(record)}.")
        require(record.keys() == EXAMPLE_KEYS, f"{path}: example {place}: {_key_fault(record)}.")
    return _columns(path, content)


def _columns(path: Path, examples: list[dict[str, Any]]) -> Arrays:
    require(len(examples) > 0, f"{path} has no examples; it needs at least the 100 that a task takes.")
    return Arrays({name: [record[name] for record in examples] for name in ("x", "y")})


def _key_fault(record: dict[str, Any]) -> str:
    return (
        f"an example must have the keys x and y and no others, found {', '.join(map(str, list(record)[:8])) or 'none'}"
    )
