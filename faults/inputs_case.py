"""One bad input: what is typed, and the files it needs."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """What is typed after `headcount`; `refused`: it cannot be taken, otherwise it may be."""

    arguments: tuple[object, ...]
    refused: bool


class Input(NamedTuple):
    """A bad input of a kind, said in words; `write` makes its files in an empty folder."""

    kind: str
    words: str
    write: Callable[[Path], Case]
