"""Files that are not read, each with the lines of Python that convert it to one that is."""

from pathlib import Path

from ..errors import InputError

SAVE = "np.savez({npz}, x=x, y=y)  # x: (examples, length, dim) numbers, y: one target per example"
CONVERSIONS = {
    ".pkl": ("import pickle, numpy as np", "x, y = pickle.load(open({path}, 'rb'))  # if you trust it", SAVE),
    ".mat": (
        "import scipy.io, numpy as np",
        "data = scipy.io.loadmat({path}); x, y = data['x'], data['y'].ravel()",
        SAVE,
    ),
    ".h5": ("import h5py, numpy as np", "data = h5py.File({path}); x, y = data['x'][:], data['y'][:]", SAVE),
    ".xlsx": ("import pandas as pd", "table = pd.read_excel({path})", "table.to_csv({csv}, index=False)"),
    ".txt": (
        "import numpy as np",
        "table = np.loadtxt({path}); x, y = table[:, :-1], table[:, -1]  # the last column is the target",
        SAVE,
    ),
    ".wav": (
        "import glob, numpy as np, scipy.io.wavfile as wav",
        "x = np.stack([wav.read(file)[1][:8000].reshape(80, -1) / 2**15 for file in sorted(glob.glob('*.wav'))])",
        "np.savez({npz}, x=x, y=...)  # y: one target per recording",
    ),
    ".mp3": (
        "import glob, librosa, numpy as np",
        "x = np.stack([librosa.feature.mfcc(y=librosa.load(f, duration=2)[0]).T for f in sorted(glob.glob('*.mp3'))])",
        "np.savez({npz}, x=x, y=...)  # y: one target per recording",
    ),
    ".zip": ("import shutil", "shutil.unpack_archive({path}, {stem})", "# then name a file or folder inside it"),
}  # fmt: skip
SAME = {
    ".pickle": ".pkl", ".joblib": ".pkl", ".p": ".pkl", ".hdf5": ".h5", ".hdf": ".h5", ".xls": ".xlsx",
    ".ods": ".xlsx", ".dat": ".txt", ".data": ".txt", ".flac": ".mp3", ".ogg": ".mp3", ".m4a": ".mp3", ".tar": ".zip",
}  # fmt: skip
"""Endings that are converted as another is."""
ANY = ("import numpy as np", "x, y = ...  # as you read this file", SAVE)
READ = ".npz, .npy, .csv, .tsv, .parquet, .arrow, .feather, .pt, .safetensors, .json, .jsonl"


def ending(path: Path) -> str:
    """The ending of a file's name in lower case, with .gz where the file is packed."""
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix + (".gz" if name.endswith(".gz") else "")


def is_convertible(path: Path) -> bool:
    """Whether the ending is known to be of a kind of data that is not read."""
    return ending(path) in CONVERSIONS or ending(path) in SAME


def not_read(path: Path) -> InputError:
    """The refusal of a file that is not read: a sentence, and the lines that convert it."""
    kind = ending(path)
    lines = CONVERSIONS.get(SAME.get(kind, kind), ANY)
    what = f"{kind} files are" if kind else "a file without an ending is"
    return with_lines(f"{path}: {what} not read ({READ} are).", path, *lines)


def with_lines(sentence: str, path: Path, *lines: str) -> InputError:
    """A refusal, and lines of Python that convert the file at `path`."""
    plain = path.with_name(path.name.split(".")[0] or "data")
    names = {"{path}": path, "{stem}": plain, "{npz}": f"{plain}.npz", "{csv}": f"{plain}.csv", "{xy}": f"{plain}_xy"}
    names |= {f"{{xy{kind}}}": f"{plain}_xy{kind}" for kind in (".csv", ".parquet", ".pt")}
    code = "\n".join(f"    {line}" for line in lines)
    for mark, name in names.items():
        code = code.replace(mark, repr(str(name)))
    return InputError(f"{sentence} In Python this converts it:\n{code}")


def _pandas_reader(path: Path) -> str:
    kinds = {".parquet": "parquet({path})", ".feather": "feather({path})", ".arrow": "feather({path})"}
    return "pd.read_" + kinds.get(path.suffix.lower(), "csv({path}, sep=None, engine='python')")


def without_text(path: Path, column: str) -> tuple[str, ...]:
    """The lines that remove a column of texts from a table."""
    dropped = f"table = table.drop(columns={column!r})  # or turn its texts into numbers that mean something"
    return f"import pandas as pd; table = {_pandas_reader(path)}", dropped, "table.to_csv({xy.csv}, index=False)"


def without_columns(path: Path, columns: list[str]) -> tuple[str, ...]:
    """The lines that remove columns from a table or a dataset."""
    if path.is_dir():
        write = f"data.remove_columns({columns!r}).save_to_disk({{xy}})"
        return "import datasets", "data = datasets.load_from_disk({path})", write
    read = f"table = {_pandas_reader(path)}.drop(columns={columns!r})"
    return "import pandas as pd", read, "table.to_parquet({xy.parquet})"
