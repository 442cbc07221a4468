"""Examples from any file people have: which reader reads it, or why none does.

.npz, .npy, .pt, .pth, .safetensors, .json    arrays called x and y
.csv, .tsv (also .gz), .parquet, .arrow, .feather, folders of Hugging Face datasets    tables
.jsonl                                         one example per line (or passages: `passage_files`)
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from .._limits import too_large
from ..errors import InputError, require
from .arrow_files import is_saved_dataset, read_arrow_table, read_saved_dataset
from .conversions import ending, is_convertible, not_read
from .examples import Arrays, Loaded, Wanted, assembled
from .json_files import holds_examples, read_json, read_json_lines
from .numpy_files import read_npy, read_npz
from .tensor_files import read_pt, read_safetensors
from .text_tables import read_text_table

__all__ = ["Loaded", "are_examples", "read_examples"]

READERS: dict[str, Callable[[Path, Wanted], Arrays]] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".csv": read_text_table,
    ".csv.gz": read_text_table,
    ".tsv": read_text_table,
    ".tsv.gz": read_text_table,
    ".parquet": read_arrow_table,
    ".arrow": read_arrow_table,
    ".feather": read_arrow_table,
    ".pt": read_pt,
    ".pth": read_pt,
    ".safetensors": read_safetensors,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".jsonl.gz": read_json_lines,
}
AGAIN = "check its permissions and the disk, or copy it again"
SPECIAL = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}


def are_examples(path: Path) -> bool:
    """Whether `path` is for `read_examples`, by its ending: to be read, or refused with how to convert it.

    Raises:
        InputError: It is a file of JSON lines that cannot be read.
    """
    if os.path.isdir(path):  # unlike Path.is_dir, False for a name too long
        return is_saved_dataset(path) or ending(path) in READERS
    if ending(path).startswith(".jsonl"):
        require_file(path)
        return holds_examples(path)
    return ending(path) in READERS or is_convertible(path)


def read_examples(
    path: Path | str, *, targets: str | Path | None = None, sequence: str | None = None, per_token: bool = False
) -> Loaded:
    """The examples in a file, or in a folder that Hugging Face's `save_to_disk` wrote.

    Args:
        path: The file. `READERS` lists the endings.
        targets: Of an .npy, the .npy with y. Of a table, the column or columns ("a,b") with the target; where None,
            the one called y, target or label.
        sequence: Of a table with one row per token, the column that says which sequence a row belongs to.
        per_token: Whether such rows have a target each, rather than one per sequence.

    Returns:
        Sequences, targets, which tokens are there, how many examples at the end are for validation, and notes.

    Raises:
        InputError: There is no such file, it is of another kind, damaged, or its content is not examples.
        HeadcountError: The package that reads it is not installed.

    Example:
        >>> import json, pathlib
        >>> lines = [json.dumps({"x": [[0.5, 1.0]] * length, "y": length}) for length in (1, 2, 3)]
        >>> _ = pathlib.Path("ragged.jsonl").write_text("\\n".join(lines))
        >>> loaded = read_examples("ragged.jsonl")
        >>> [len(tokens) for tokens in loaded.x], loaded.y.tolist()
        ([1, 2, 3], [1, 2, 3])
    """
    path = Path(path)
    wanted = Wanted(None if targets is None else str(targets), sequence, per_token)
    if os.path.isdir(path) and is_saved_dataset(path):
        return assembled(path, read_saved_dataset(path, wanted))
    require_file(path)
    reader = READERS.get(ending(path))
    if reader is None:
        raise not_read(path)
    try:
        return assembled(path, reader(path, wanted))
    except MemoryError as error:
        raise too_large(path) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__}: {error}); {AGAIN}.") from error


def require_file(path: Path) -> None:
    """Raise `InputError` unless `path` is a file with bytes in it; pipes and devices would be waited for."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise InputError(f"no file {path}; check the name, or give the full path.") from error
    except (OSError, ValueError) as error:  # a loop of links, a name too long, a null byte
        cause = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{str(path)[:200]!r} cannot be read ({cause}); give the path of a file.") from error
    special = next((word for check, word in SPECIAL.items() if check(status.st_mode)), "not a regular file")
    require(stat.S_ISREG(status.st_mode), f"{path} is {special}, not a file; give the path of a file.")
    require(status.st_size > 0, f"{path} is empty; write or download it again.")
