"""What a study is: a published table or figure, the sweep that trains its models, and the section that compares them.

Reading a study needs no JAX: tasks, models and the engine are imported where a sweep is made.
"""

import enum
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from .._files import read_regular
from ..answer.claim import ClaimResult as Claim
from ..errors import StoreError
from ..report.files import write_whole
from ..report.section import Picture, Section
from ..store import Experiment, Record, TrainSpec
from ..store.database import UNREADABLE, reason_of

if TYPE_CHECKING:
    from ..engine import Sweep

Pieces = dict[str, Any]
"""What a closed-form study computed, by the name of the piece, as JSON."""


class Scale(enum.StrEnum):
    """smoke: does it run, under a minute. laptop: minutes on two cores. paper: the published grid."""

    SMOKE = "smoke"
    LAPTOP = "laptop"
    PAPER = "paper"


def said_of(changes: list[str], scale: Scale) -> tuple[str, ...]:
    """What an experiment changes of its scale, as a note."""
    return (f"Changed from the {scale} scale, which is described below: {', '.join(changes)}.",) if changes else ()


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much of a study is done: which lengths, how many seeds, how many training steps."""

    lengths: tuple[int, ...]
    seeds: int
    steps: int

    @property
    def train(self) -> TrainSpec:
        """8,000 training and 2,000 validation examples, as published; the rest is ours (the paper gives none)."""
        from .. import recipes

        return replace(recipes.TRAIN, steps=self.steps)


class Named(TypedDict):
    name: str
    question: str
    study: str
    scale: str


@dataclass(frozen=True, kw_only=True)
class AbstractStudy(ABC):
    """`name` is what one types, `title` what the paper calls it, `asks` what it shows.

    `reads` names the study whose experiment this one reads, where it trains no models of its own.
    """

    name: str
    title: str
    asks: str
    efforts: dict[Scale, Effort]
    reads: str = ""

    @property
    def trained_by(self) -> str:
        """The study that an experiment names whose models this one is about."""
        return self.reads or self.name

    @abstractmethod
    def sweep(self, scale: Scale) -> "Sweep":
        """The models this study trains, with their experiment."""

    @abstractmethod
    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        """Its part of a report, from the records of its experiment, of which at least one has finished."""

    @abstractmethod
    def choices(self, scale: Scale) -> tuple[str, ...]:
        """What is ours and not the paper's, for a section's notes."""

    def published_claims(self) -> tuple[Claim, ...]:
        """Its rules applied to the numbers that the paper prints, in place of ours; none where it prints none."""
        return ()

    def pictures(self, folder: Path) -> tuple[Picture, ...]:
        """What was drawn of its data in a results folder."""
        return ()

    def named(self, scale: Scale) -> Named:
        """The arguments of `engine.sweep` by which its experiment is known."""
        return Named(name=f"{self.name}-{scale}", question=self.asks, study=self.name, scale=scale.value)


@dataclass(frozen=True, kw_only=True)
class ClosedFormStudy(ABC):
    """A study that trains nothing: its numbers are computed piece by piece, and kept in one JSON file of the folder."""

    name: str
    title: str
    asks: str

    @abstractmethod
    def pieces(self, scale: Scale) -> dict[str, Callable[[], Any]]:
        """What is to be computed, by name; each gives JSON."""

    @abstractmethod
    def expected_seconds(self, scale: Scale) -> float:
        """About how long all pieces take on two cores."""

    @abstractmethod
    def section(self, pieces: Pieces, scale: Scale) -> Section:
        """Its part of a report, from at least one piece."""

    def published_claims(self) -> tuple[Claim, ...]:
        """Its rules applied to the numbers that the paper plots, in place of ours; none where there are none."""
        return ()

    def path(self, root: Path, scale: Scale) -> Path:
        return root / f"{self.name}-{scale}.json"

    def read(self, root: Path, scale: Scale) -> Pieces:
        """The pieces that a folder holds; none where it has no such file. Raises StoreError for a damaged file."""
        path = self.path(root, scale)
        if not path.exists():
            return {}
        try:
            content = json.loads(read_regular(path))
            if not isinstance(content, dict):
                raise TypeError("it holds no pieces")
            return {name: content[name] for name in self.pieces(scale) if name in content}
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"{path} cannot be read ({error}); move it away to compute it again.") from error

    def stored_section(self, root: Path, pieces: Pieces, scale: Scale) -> Section:
        """Its part of a report, from pieces that a folder holds. Raises StoreError where they are not what was kept."""
        try:
            return self.section(pieces, scale)
        except UNREADABLE as error:
            damaged = f"{self.path(root, scale)} is not what was kept ({reason_of(error)})"
            raise StoreError(f"{damaged}; move it away to compute it again.") from error

    def run(self, root: Path, scale: Scale, on_done: Callable[[int], None] = lambda pieces: None) -> Pieces:
        """Compute what the folder does not hold yet; every piece is written as soon as it is there."""
        pieces = self.read(root, scale)
        for name, compute in self.pieces(scale).items():
            if name not in pieces:
                pieces[name] = compute()
                write_whole(self.path(root, scale), json.dumps(pieces, indent=1).encode())
                on_done(1)
        return pieces
