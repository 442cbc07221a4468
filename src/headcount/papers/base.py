"""A study: a published table or figure as data. What it trains, at which scales, and its part of a report.

Reading a study needs no JAX: tasks, models and the engine are imported where a sweep is made.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..answer import ErrorTable, Metric, error_table
from ..answer.claim import ClaimResult
from ..report.document import Document, Picture
from ..report.experiment import study_document
from ..store import FILE_NAME, Experiment, Record, Store, TrainSpec
from .plugin import COMPLETE

if TYPE_CHECKING:
    from ..engine import Sweep
    from ..models import AbstractSpec
    from ..tasks import AbstractTask
else:
    Sweep = AbstractSpec = AbstractTask = Any

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


def effort_over(lengths: tuple[int, ...], seeds: int, steps: int, /, **axes: tuple[Any, ...]) -> StudyEffort:
    """Return an effort with these values along the axes that only its study has."""
    return StudyEffort(lengths=lengths, seeds=seeds, steps=steps, axes=axes)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Models swept at once, one per combination of the values along `axes`; `at` are coordinates that they share."""

    task: Callable[[], AbstractTask]
    model: Callable[..., AbstractSpec]
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


OPTION_WORDS: dict[str, tuple[str, str, Callable[[Any, Any], str]]] = {
    "steps": ("train", "steps", lambda steps, effort: f"{steps:,} steps"),
    "epochs": ("train", "steps", lambda steps, effort: f"{steps:,} steps of {effort.batch}"),
    "norm_first": ("model", "norm_first", lambda first, effort: "norms first" if first else "norms after sums"),
    "precision": ("train", "precision", lambda precision, effort: f"products in {precision}"),
}
"""By option: where the settings of an experiment have its value, and the words for a changed one."""


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
        reads: The study whose experiment this one reads, where it trains no models of its own.
        options: Fields of the effort that options of the command line change, of `OPTION_WORDS`.
    """

    name: str
    title: str
    asks: str
    efforts: Mapping[Scale, Any]
    report: Callable[[StudyResults], dict[str, Any]]
    parts: Callable[[Any], Iterable[Part]] = lambda effort: ()
    notes: tuple[str, ...] = ()
    published_claims: Callable[[], tuple[ClaimResult, ...]] = tuple
    reads: "Study | None" = None
    options: tuple[str, ...] = ()

    @property
    def trained_by(self) -> str:
        """The study that an experiment names whose models this one is about."""
        return self.name if self.reads is None else self.reads.name

    def changed(self, scale: Scale, **fields: Any) -> Self:
        """The same study with other fields of its effort at a scale."""
        return replace(self, efforts={**self.efforts, scale: replace(self.efforts[scale], **fields)})

    def sweep(self, scale: Scale) -> Sweep:
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

    def changes(self, experiment: Experiment, effort: Any) -> list[str]:
        """Describe the settings of an experiment that options changed from the scale's own."""
        changes = []
        for option in self.options:
            kind, name, words = OPTION_WORDS[option]
            value = experiment.settings.get(kind, {}).get(name, getattr(effort, name))
            changes += [] if value == getattr(effort, name) else [words(value, effort)]
        return changes

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
    """A study that trains nothing: its numbers are computed piece by piece, and stored as facts of an experiment."""

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

    def experiment(self, scale: Scale) -> Experiment:
        """The experiment without cells whose facts are the pieces."""
        name = f"{self.name}-{scale}"
        return Experiment(
            name=name, question=self.asks, task=self.name, axes=(), places={}, study=self.name, scale=scale.value
        )

    def stored(self, facts: Mapping[str, Any], scale: Scale) -> Pieces:
        """The pieces among the facts of a folder."""
        return {name: facts[name] for name in self.pieces(scale) if name in facts}

    def stored_pieces(self, root: Path, scale: Scale) -> Pieces:
        """The pieces that a folder holds; none where nothing is stored yet. Raises StoreError for a damaged folder."""
        if not (root / FILE_NAME).exists():
            return {}
        with Store.open_for_reading(root) as store:
            return self.stored(store.facts(self.experiment(scale).name), scale)

    def compute_missing(
        self, root: Path, scale: Scale, on_done: Callable[[int], None] = lambda pieces: None, command: str = ""
    ) -> Pieces:
        """Compute what the folder does not hold yet; every piece is stored as soon as it is there."""
        with Store.open_for_writing(root) as store:
            name = store.begin(self.experiment(scale), command).name
            pieces = self.stored(store.facts(name), scale)
            for piece, compute in self.pieces(scale).items():
                if piece not in pieces:
                    pieces[piece] = compute()
                    store.put(name, piece, pieces[piece])
                    on_done(1)
            store.put(name, COMPLETE, True)
        return pieces
