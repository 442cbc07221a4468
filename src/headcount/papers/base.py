"""A study: a published table or figure as data. What it trains, at which scales, and its part of a report.

Reading a study needs no JAX: tasks, models and the engine are imported where a sweep is made.
"""

import enum
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .._files import read_regular
from ..answer import ErrorTable, Metric, error_table
from ..answer.claim import ClaimResult
from ..errors import StoreError
from ..report.document import Document, Picture
from ..report.experiment import study_document
from ..report.files import write_whole
from ..store import Experiment, Record, TrainSpec
from ..store.database import UNREADABLE, reason_of

if TYPE_CHECKING:
    from ..engine import Sweep
    from ..models import AbstractSpec
    from ..tasks import AbstractTask

Pieces = dict[str, Any]
"""Results of a closed-form study by the name of the piece, as JSON."""


class Scale(enum.StrEnum):
    """smoke: does it run, under a minute. laptop: minutes on two cores. paper: the published grid."""

    SMOKE = "smoke"
    LAPTOP = "laptop"
    PAPER = "paper"


@dataclass(frozen=True, kw_only=True)
class StudyEffort:
    """How much of a study is done at a scale. `axes` has the values along axes that only this study has."""

    lengths: tuple[int, ...]
    seeds: int
    steps: int
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def train(self) -> TrainSpec:
        """8,000 training and 2,000 validation examples, as published; the rest is ours (the paper gives none)."""
        from .. import recipes

        return replace(recipes.TRAIN, steps=self.steps)

    def over(self, **axes: Sequence[Any]) -> dict[str, Sequence[Any]]:
        """These axes, and those that every study has."""
        return axes | {"length": self.lengths, "seed": range(self.seeds)}


def effort_over(lengths: tuple[int, ...], seeds: int, steps: int, **axes: tuple[Any, ...]) -> StudyEffort:
    """Return an effort with these values along the axes that only its study has."""
    return StudyEffort(lengths=lengths, seeds=seeds, steps=steps, axes=axes)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Models swept at once, one per combination of the values along `axes`; `at` are coordinates that they share."""

    task: Callable[[], "AbstractTask"]
    model: "Callable[..., AbstractSpec]"
    axes: Mapping[str, Sequence[Any]]
    at: Mapping[str, Any] = field(default_factory=dict)
    train: TrainSpec | None = None


@dataclass(frozen=True)
class StudyResults:
    """The records of a study's experiment, of which at least one has finished."""

    experiment: Experiment
    records: list[Record]
    scale: Scale
    effort: Any

    def table(self, metric: Metric | None = None) -> ErrorTable:
        return error_table(self.experiment, self.records, metric=metric)


def parts_along(table: ErrorTable, axis: str) -> dict[Any, ErrorTable]:
    """Split a table by the values of an axis; values of which no model has finished are left out."""
    parts = {value: table.select(**{axis: value}).trimmed() for value in table.values(axis)}
    return {value: part for value, part in parts.items() if part.errors.size}


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table or figure whose models are trained.

    Args:
        name: Its name on the command line.
        title: Its name in the paper.
        asks: The question it answers.
        efforts: How much is done at each scale.
        report: The fields of its document, from its results: headline, claims, grids, charts.
        parts: The models to train, from an effort.
        notes: Our own choices, which the paper does not name.
        published_claims: Its rules applied to the numbers that the paper prints; none where it prints none.
        changes: Describes the settings of an experiment that options changed from the scale's own.
        reads: The study whose experiment this one reads, where it trains no models of its own.
        options: Fields of the effort that options of the command line change.
    """

    name: str
    title: str
    asks: str
    efforts: Mapping[Scale, Any]
    report: Callable[[StudyResults], dict[str, Any]]
    parts: Callable[[Any], Iterable[Part]] = lambda effort: ()
    notes: tuple[str, ...] = ()
    published_claims: Callable[[], tuple[ClaimResult, ...]] = tuple
    changes: Callable[[Experiment, Any], list[str]] = lambda experiment, effort: []
    reads: "Study | None" = None
    options: tuple[str, ...] = ()

    @property
    def trained_by(self) -> str:
        """The study that an experiment names whose models this one is about."""
        return self.name if self.reads is None else self.reads.name

    def changed(self, scale: Scale, **fields: Any) -> Self:
        """The same study with other fields of its effort at a scale."""
        return replace(self, efforts={**self.efforts, scale: replace(self.efforts[scale], **fields)})

    def sweep(self, scale: Scale) -> "Sweep":
        """The models this study trains, with their experiment."""
        from ..engine import joined, sweep

        if self.reads is not None:
            return self.reads.sweep(scale)
        effort = self.efforts[scale]
        return joined(
            sweep(
                part.task(),
                axes=part.axes,
                model=part.model,
                train=part.train or effort.train,
                at=part.at,
                name=f"{self.name}-{scale}",
                question=self.asks,
                study=self.name,
                scale=scale.value,
            )
            for part in self.swept(effort)
        )

    def swept(self, effort: Any) -> Iterable[Part]:
        """The models to train, from an effort."""
        return self.parts(effort)

    def document(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Document:
        """Its part of a report, from the records of its experiment, of which at least one has finished."""
        fields = self.report(StudyResults(experiment, list(records), scale, self.efforts[scale]))
        changes = self.changes(experiment, self.efforts[scale])
        said = [f"Changed from the {scale} scale, which is described below: {', '.join(changes)}."] if changes else []
        notes = (*said, *fields.pop("notes", ()), *self.choices(scale))
        title = ", ".join([self.title, *changes])
        return study_document(name=self.name, title=title, question=self.asks, notes=notes, **fields)

    def choices(self, scale: Scale) -> tuple[str, ...]:
        """Notes: the differences from paper scale, and our own choices."""
        return (*scale_note(self.efforts, scale), *self.notes)

    def pictures(self, folder: Path) -> tuple[Picture, ...]:
        """The pictures of its data in a results folder."""
        return ()


def scale_note(efforts: Mapping[Scale, Any], scale: Scale) -> tuple[str, ...]:
    """The fields in which a scale differs from paper scale, as a note; none at paper scale."""
    if scale is Scale.PAPER:
        return ()
    here, paper = (_fields(asdict(efforts[each])) for each in (scale, Scale.PAPER))
    words = [f"{name} {value} ({paper.get(name, 'none')})" for name, value in here.items() if value != paper.get(name)]
    return (f"At {scale} scale (at paper scale): {', '.join(words)}.",)


def _fields(effort: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The fields of an effort in words, nested ones by their whole name."""
    words = {}
    for name, value in effort.items():
        if isinstance(value, Mapping):
            words |= _fields(value, "" if name == "axes" else f"{name} ")
        else:
            words[prefix + name.replace("_", " ")] = _value(value)
    return words


def _value(value: Any) -> str:
    if not isinstance(value, tuple):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    plain = len(value) <= 8 and all(isinstance(each, int | float | str) for each in value)
    return " ".join(map(str, value)) if plain else f"{len(value)} values"


@dataclass(frozen=True, kw_only=True)
class ClosedFormStudy(ABC):
    """A study that trains nothing: its numbers are computed piece by piece, and kept in one JSON file of the folder."""

    name: str
    title: str
    asks: str

    @abstractmethod
    def pieces(self, scale: Scale) -> dict[str, Callable[[], Any]]:
        """The computations by name; each gives JSON."""

    @abstractmethod
    def expected_seconds(self, scale: Scale) -> float:
        """About how long all pieces take on two cores."""

    @abstractmethod
    def document(self, pieces: Pieces, scale: Scale) -> Document:
        """Its part of a report, from at least one piece."""

    def published_claims(self) -> tuple[ClaimResult, ...]:
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

    def stored_document(self, root: Path, pieces: Pieces, scale: Scale) -> Document:
        """Its part of a report, from pieces that a folder holds. Raises StoreError where they are not what was kept."""
        try:
            return self.document(pieces, scale)
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
