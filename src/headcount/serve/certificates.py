"""What `headcount collide` left in a folder: certificates, and pictures of pairs of sequences and of the floor."""

import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import read_regular
from ..errors import InputError, require

FOLDER, FILE = "collisions", "certificates.json"
MAX_BYTES = 50_000_000
MAX_MODELS, MAX_NUMBERS = 500, 10_000
"""Models that are listed, and numbers of two sequences that are drawn: a browser takes seconds for more."""
QUESTIONS = {"anywhere": "both sequences searched for", "near_data": "one sequence drawn, one searched for"}
_PICTURE = re.compile(r"[\w-]+\.svg")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sequences that a model can hardly tell apart, and what follows for any readout of it.

    `tokens` are two lists of tokens; `floor` is in units of the target's standard deviation.
    """

    question: str
    tokens: list[list[list[float]]]
    gap: float
    floor: float
    distance: float
    exact: bool
    estimated: str

    @property
    def readouts(self) -> str:
        return "any readout" if self.exact else "readouts of bounded slope"

    @property
    def count(self) -> int:
        """Numbers in both sequences."""
        return sum(len(token) for sequence in self.tokens for token in sequence)

    @property
    def largest(self) -> float:
        return (
            max((abs(value) for sequence in self.tokens for token in sequence for value in token), default=1.0) or 1.0
        )


@dataclass(frozen=True, kw_only=True)
class Certified:
    """What is certified of one stored model."""

    key: str
    heads: int
    length: int
    seed: int
    normed: bool
    error: float
    slope: float
    pairs: dict[str, Pair]

    @property
    def name(self) -> str:
        heads = f"{self.heads} head{'s' if self.heads != 1 else ''}{' and a norm' if self.normed else ''}"
        return f"{heads}, {self.length} tokens, seed {self.seed}"


def has_certificates(folder: Path) -> bool:
    """Whether there are any; a link to somewhere else is not followed."""
    path = folder / FOLDER / FILE
    return os.path.isfile(path) and not path.is_symlink() and not path.parent.is_symlink()


def certified(folder: Path) -> list[Certified]:
    """The models of a folder that were searched; none where the file is missing or cannot be understood.

    Raises:
        InputError: The file is too large to be shown.
    """
    path = folder / FOLDER / FILE
    try:
        if not has_certificates(folder):
            return []
        content = read_regular(path, MAX_BYTES + 1)
        too_large = f"{path} is larger than {MAX_BYTES // 10**6} MB, which is the most that this page reads"
        require(len(content) <= MAX_BYTES, f"{too_large}; search fewer models.")
        return [_certified(entry) for entry in json.loads(content)]
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def picture(folder: Path, name: str) -> bytes | None:
    """A picture that was drawn beside the certificates."""
    path = folder / FOLDER / name
    if not _PICTURE.fullmatch(name) or path.is_symlink() or path.parent.is_symlink():
        return None
    try:
        return read_regular(path)
    except OSError:
        return None


def pictures(folder: Path) -> list[str]:
    """The names of the pictures there are."""
    try:
        return sorted(entry.name for entry in (folder / FOLDER).iterdir() if _PICTURE.fullmatch(entry.name))
    except OSError:
        return []


def _certified(entry: dict[str, Any]) -> Certified:
    spread = float(entry["spread"])
    pairs = {question: _pair(question, entry[question], spread) for question in QUESTIONS if entry[question]}
    numbers = {name: int(entry[name]) for name in ("heads", "length", "seed")}
    error, slope, normed = float(entry["nmse"]), float(entry["slope"]), bool(entry.get("final_norm", False))
    return Certified(key=str(entry["key"]), **numbers, normed=normed, error=error, slope=slope, pairs=pairs)


def _pair(question: str, stored: dict[str, Any], spread: float) -> Pair:
    tokens = [[[float(value) for value in token] for token in sequence] for sequence in stored["pair"]]
    distance = stored["distance"]
    return Pair(
        question=question,
        tokens=tokens,
        gap=float(stored["gap"]) / spread,
        floor=float(stored["floor"]) / spread,
        distance=math.inf if distance is None else float(distance),
        exact=bool(stored["exact"]),
        estimated=str(stored["estimated"]),
    )
