"""Files that are not read, each with the lines of Python that convert it to one that is."""

from pathlib import Path

from ..errors import InputError

SAVE = "np.savez({npz}, x=x, y=y)  # x: (examples, length, dim) numbers, y: one target per example"
CONVERSIONS = {
    ".pkl": ("import pickle, numpy as np", "x, y = pickle.load(open({path}, 'rb'))  # if you trust it", SAVE),
    ".mat": ("import scipy.io, numpy as np", "mat = scipy.io.loadmat({path}); x, y = mat['x'], mat['y'].ravel()", SAVE),
    ".h5": ("import h5py, numpy as np", "data = h5py.File({path}); x, y = data['x'][:], data['y'][:]", SAVE),
    ".xlsx": ("import pandas as pd", "pd.read_excel({path}).to_csv({csv}, index=False)"),
    ".txt": ("import numpy as np", "table = np.loadtxt({path}); x, y = table[:, :-1], table[:, -1]", SAVE),
    ".zip": ("import shutil", "shutil.unpack_archive({path}, {stem})  # then name a file or folder inside it"),
    "": ("import numpy as np", "x, y = ...  # as you read this file", SAVE),
}  # fmt: skip
SAME = {
    ".pickle": ".pkl", ".joblib": ".pkl", ".p": ".pkl", ".hdf5": ".h5", ".hdf": ".h5", ".xls": ".xlsx", ".ods": ".xlsx",
    ".dat": ".txt", ".data": ".txt", ".tar": ".zip", ".wav": "", ".mp3": "", ".flac": "", ".ogg": "", ".m4a": "",
}  # fmt: skip
"""Endings that are converted as another is."""
READ = ".npz, .npy, .csv, .tsv, .parquet, .arrow, .feather, .pt, .safetensors, .json, .jsonl"


def ending(path: Path) -> str:
    """The ending of a file's name in lower case, with .gz where the file is packed."""
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix + (".gz" if name.endswith(".gz") else "")


def is_convertible(path: Path) -> bool:
    """Whether the ending is known to be of a kind of data that is not read."""
    return ending(path) != "" and (ending(path) in CONVERSIONS or ending(path) in SAME)


def not_read(path: Path) -> InputError:
    """The refusal of a file that is not read: a sentence, and the lines that convert it."""
    kind = ending(path)
    lines = CONVERSIONS.get(SAME.get(kind, kind), CONVERSIONS[""])
    what = f"{kind} files are" if kind else "a file without an ending is"
    return with_lines(f"{path}: {what} not read ({READ} are).", path, *lines)


def with_lines(sentence: str, path: Path, *lines: str) -> InputError:
    """A refusal, and lines of Python that convert the file at `path`."""
    stem = path.with_name(path.name.split(".")[0] or "data")
    code = "\n".join(f"    {line}" for line in lines)
    names = {"{path}": path, "{stem}": stem, "{npz}": f"{stem}.npz", "{csv}": f"{stem}.csv", "{pt}": f"{stem}_xy.pt"}
    for mark, name in names.items():
        code = code.replace(mark, repr(str(name)))
    return InputError(f"{sentence} In Python this converts it:\n{code}")
