"""Examples from any file people have: the format that reads it, or the lines of Python that convert it to one.

A format is a function from a file to its examples, and a row of `FORMS`.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .._limits import too_large
from ..errors import HeadcountError, InputError, one_line_of, require
from .array_files import holds_examples, read_json, read_json_lines, read_npy, read_npz, read_pt, read_safetensors
from .arrow_files import is_saved_dataset, read_arrow_table, read_saved_dataset
from .examples import LoadedExamples, Wanted, ending, with_lines
from .text_tables import read_text_table

__all__ = ["LoadedExamples", "are_examples", "ending", "read_examples"]


class FileFormat(NamedTuple):
    """Reads the examples of a file.

    `takes` are those of the options `targets` and `sequence` that it has; `write` says how to write such a file.
    """

    read: Callable[[Path, Wanted], LoadedExamples]
    write: str
    takes: tuple[str, ...] = ()


TABLE = ("targets", "sequence")
FORMS = {
    ".npz": FileFormat(read_npz, "np.savez(path, x=x, y=y), unequal sequences padded, with their lengths"),
    ".npy": FileFormat(read_npy, "np.save(path, x), and y in another", ("targets",)),
    ".csv .csv.gz .tsv .tsv.gz": FileFormat(read_text_table, "one row of cells per line", TABLE),
    ".parquet .arrow .feather": FileFormat(read_arrow_table, "one row per example or token", TABLE),
    ".pt .pth": FileFormat(read_pt, "torch.save({'x': x, 'y': y}, path)"),
    ".safetensors": FileFormat(read_safetensors, "save_file({'x': x, 'y': y}, path)"),
    ".json": FileFormat(read_json, '{"x": [...], "y": [...]} or a list of examples, in UTF-8'),
    ".jsonl .jsonl.gz": FileFormat(read_json_lines, '{"x": [...], "y": ...} in every line'),
}
FORMATS = {kind: form for kinds, form in FORMS.items() for kind in kinds.split()}
SAVED_DATASET = FileFormat(read_saved_dataset, "save_to_disk", TABLE)
SAVE = "np.savez({npz}, x=x, y=y)  # x: (examples, length, dim) numbers, y: one target per example"
CODE = {
    ".pkl .pickle .joblib .p": (
        "import pickle, numpy as np", "x, y = pickle.load(open({path}, 'rb'))  # if you trust it", SAVE
    ),
    ".mat": ("import scipy.io, numpy as np", "mat = scipy.io.loadmat({path}); x, y = mat['x'], mat['y'].ravel()", SAVE),
    ".h5 .hdf5 .hdf": (
        "import h5py, numpy as np", "data = h5py.File({path}); x, y = data['x'][:], data['y'][:]", SAVE
    ),
    ".xlsx .xls .ods": ("import pandas as pd", "pd.read_excel({path}).to_csv({csv}, index=False)"),
    ".txt .dat .data": ("import numpy as np", "table = np.loadtxt({path}); x, y = table[:, :-1], table[:, -1]", SAVE),
    ".zip .tar": ("import shutil", "shutil.unpack_archive({path}, {stem})  # then name a file or folder inside it"),
    ".wav .mp3 .flac .ogg .m4a": ("import numpy as np", "x, y = ...  # as you read this file", SAVE),
}  # fmt: skip
CONVERSIONS = {kind: lines for kinds, lines in CODE.items() for kind in kinds.split()}
"""Endings that are not read, and lines of Python that convert such a file."""
SPECIAL = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}


def are_examples(path: Path) -> bool:
    """Return whether `path` is for `read_examples`, by its ending: to be read, or refused with how to convert it.

    Raises:
        InputError: It is a file of JSON lines that cannot be read.
    """
    if os.path.isdir(path):  # unlike Path.is_dir, False for a name too long
        return is_saved_dataset(path) or ending(path) in FORMATS
    if ending(path).startswith(".jsonl"):
        require_file(path)
        return holds_examples(path)
    return ending(path) in FORMATS or ending(path) in CONVERSIONS


def read_examples(
    path: Path | str,
    *,
    targets: str | Path | None = None,
    sequence: str | None = None,
    per_token: bool = False,
    **texts: Any,
) -> LoadedExamples:
    """Return the examples in a file, or in a folder that Hugging Face's `save_to_disk` wrote.

    Args:
        path: The file. `FORMATS` lists the endings.
        targets: Of an .npy, the .npy with y. Of a table, the column or columns ("a,b") with the target; where None,
            the one called y, target or label.
        sequence: Of a table with one row per token, the column that says which sequence a row belongs to.
        per_token: Whether such rows have a target each, rather than one per sequence.
        texts: `tokens` and `vocabulary`, how texts are read; see `token_ids`.

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
    wanted = Wanted(None if targets is None else str(targets), sequence, per_token, **texts)
    is_folder = os.path.isdir(path) and is_saved_dataset(path)
    if not is_folder:
        require_file(path)
    form = SAVED_DATASET if is_folder else FORMATS.get(ending(path))
    if form is None:
        raise not_read(path)
    for name, why in (("targets", "holds both x and y"), ("sequence", "is no table of one token per row")):
        given = getattr(wanted, name)
        needless = f"{path} {why}, so {name} {given} is not needed; leave it out."
        require(given is None or name in form.takes, needless, what=name)
    try:
        return form.read(path, wanted)
    except MemoryError as error:  # Arrow's own is one, too
        raise too_large(path) from error
    except HeadcountError:
        raise
    except Exception as error:  # the libraries raise many types for a damaged file
        cause = one_line_of(error)[:100]
        fix = f"check its permissions, copy it again, or write it again ({form.write})"
        raise InputError(f"{path} cannot be read ({type(error).__name__}: {cause}); {fix}.") from error


def not_read(path: Path) -> InputError:
    """Return the refusal of a file that is not read: a sentence, and the lines that convert it."""
    kind = ending(path)
    lines = CONVERSIONS.get(kind, CONVERSIONS[".wav"])
    what = f"{kind} files are" if kind else "a file without an ending is"
    read = ", ".join(kind for kind in FORMATS if not kind.endswith(".gz"))
    return with_lines(f"{path}: {what} not read ({read} are).", path, *lines)


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
