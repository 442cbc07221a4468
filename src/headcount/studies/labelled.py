"""Studies of real data: accuracy by heads and length, the published tables beside it, and its claims.

Such a study is bound to data before it trains anything. Its cells are named by the data's content, so a folder of
results tells which study it holds without the data.
"""

import dataclasses
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ..analysis.comparison import PublishedTable, count_of_heads
from ..datasets.hub import STAGING
from ..engine import Sweep
from ..engine.hardware import Sizes
from ..engine.labelled import labelled_encoder
from ..engine.sweep import task_key
from ..report.chart import Chart, Series
from ..report.section import Grid
from ..store import Cell, Outcome, Precision, Record, TrainSpec
from ..tasks import Form, LabelledTask
from .base import AbstractStudy, Effort, Scale

OnBytes = Callable[[int, int | None], None]


@dataclass(frozen=True, kw_only=True)
class LabelledEffort(Effort):
    """How much of a study is done; of the examples that are there, at most `train_examples` are learned from."""

    heads: tuple[int, ...]
    batch: int
    train_examples: int
    validation_examples: int
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    precision: Precision = "float32"
    epochs: int | None = None

    def of(self, examples: int) -> "LabelledEffort":
        """The same where so many examples are there to learn from: with `epochs`, they decide the number of steps."""
        if self.epochs is None:
            return self
        return dataclasses.replace(self, steps=self.epochs * min(examples, self.train_examples) // self.batch)

    @property
    def train(self) -> TrainSpec:
        """AdamW under a warm-up over a twentieth and a cosine; of all this only AdamW and the cosine are published."""
        return TrainSpec(
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            warmup=self.steps // 20,
            second_moment_decay=0.999,
            weight_decay=self.weight_decay,
            train_examples=self.train_examples,
            validation_examples=self.validation_examples,
            precision=self.precision,
        )


@dataclass(frozen=True, kw_only=True)
class LabelledStudy(AbstractStudy):
    """`specs` are those of the tasks it is bound to; without data they are placeholders, good for counting the cost."""

    efforts: dict[Scale, LabelledEffort]  # type: ignore[assignment]
    specs: tuple[dict[str, Any], ...]
    tasks: tuple[LabelledTask, ...] = ()

    @abstractmethod
    def read(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> tuple[LabelledTask, ...]:
        """The tasks in a folder; public data is fetched into a folder that is empty or not there yet."""

    @abstractmethod
    def form(self, spec: dict[str, Any]) -> Form:
        """How the task of a spec is read."""

    @abstractmethod
    def is_own(self, spec: dict[str, Any]) -> bool:
        """Whether a task's spec can be one of this study's."""

    @abstractmethod
    def sizes(self, spec: dict[str, Any]) -> Sizes:
        """The sizes of the published data, for a cost before there is any."""

    def printed(self, length: int) -> int:
        """The paper's T for a length of ours."""
        return length

    def effort_of(self, scale: Scale, spec: dict[str, Any]) -> LabelledEffort:
        """How much is done of one task."""
        return self.efforts[scale]

    def keep_pictures(self, folder: Path) -> None:
        """Draw what is drawn of the data itself, into the results folder."""
        return

    def bound(
        self, data: Path, *, embeddings: Path | None = None, on_bytes: OnBytes = lambda *_: None
    ) -> "LabelledStudy":
        """The study of the data in a folder."""
        tasks = self.read(data, embeddings=embeddings, on_bytes=on_bytes)
        return dataclasses.replace(self, tasks=tasks, specs=tuple(task.spec() for task in tasks))

    def told_by(self, records: Iterable[Record]) -> "list[LabelledStudy]":
        """The study of each data set that records are of."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for record in records:
            spec = record.cell.task
            if self.is_own(spec):
                found.setdefault(self._data_of(spec), {})[task_key(spec)] = spec
        return [dataclasses.replace(self, specs=tuple(specs.values())) for specs in found.values()]

    def _data_of(self, spec: dict[str, Any]) -> str:
        """What tells one data set from another."""
        return task_key({name: value for name, value in spec.items() if name != "layout"})

    def sweep(self, scale: Scale) -> Sweep:
        cells = [
            Cell(
                task=spec,
                length=length,
                model=labelled_encoder(self.form(spec), heads),
                train=effort.train,
                seed=seed,
            )
            for spec in self.specs
            for effort in [self.effort_of(scale, spec)]
            for length in effort.lengths
            for heads in effort.heads
            for seed in range(effort.seeds)
        ]
        return Sweep(tasks=self.tasks, cells=tuple(cells))  # type: ignore[arg-type]

    def all_sizes(self) -> dict[str, Sizes]:
        return {task_key(spec): self.sizes(spec) for spec in self.specs}


class Accuracies(NamedTuple):
    """Mean over seeds by heads and length: while training (over the last twentieth of the steps, what is dropped
    dropped), on the training examples at the end, and on validation examples at the end; MRR where there is one."""

    heads: tuple[int, ...]
    lengths: tuple[int, ...]
    training: Float[np.ndarray, "heads lengths"]
    fitted: Float[np.ndarray, "heads lengths"]
    validation: Float[np.ndarray, "heads lengths"]
    fitted_mrr: Float[np.ndarray, "heads lengths"]
    seeds: int
    training_seen: int
    validation_seen: int

    @property
    def training_noise(self) -> float:
        """Two accuracies while training that differ by no more than this are equal, as far as their examples tell."""
        return _noise(self.training_seen)

    @property
    def validation_noise(self) -> float:
        return _noise(self.validation_seen)

    @property
    def errors(self) -> Float[np.ndarray, "heads lengths"]:
        """Share of wrong answers while training, what the paper's transition is about."""
        return 1 - self.training


def accuracies(records: Iterable[Record], printed: Callable[[int], int] = lambda length: length) -> Accuracies:
    """The accuracies of the finished records of one task; `printed(length)` is the paper's T."""
    done = [record for record in records if record.outcome is Outcome.FINISHED]
    heads = tuple(sorted({record.cell.model.heads for record in done}))
    lengths = tuple(sorted({record.cell.length for record in done}))
    values: dict[str, dict[tuple[int, int], list[float]]] = {}
    for record in done:
        place = heads.index(record.cell.model.heads), lengths.index(record.cell.length)
        for name, value in record.metrics.items():
            values.setdefault(name, {}).setdefault(place, []).append(value)

    def table(name: str) -> np.ndarray:
        made = np.full((len(heads), len(lengths)), np.nan)
        for place, found in values.get(name, {}).items():
            made[place] = np.mean(found)
        return made

    return Accuracies(
        heads=heads,
        lengths=tuple(map(printed, lengths)),
        training=1 - table("train_error"),
        fitted=1 - table("fitted_error"),
        validation=1 - table("final_error"),
        fitted_mrr=table("fitted_mrr"),
        seeds=len({record.cell.seed for record in done}),
        training_seen=min(record.cell.train.steps // 20 * record.cell.train.batch for record in done),
        validation_seen=min(record.cell.train.validation_examples for record in done),
    )


def _noise(examples: int) -> float:
    """Two standard errors of the difference of two shares near one half."""
    return 2 * (2 * 0.25 / max(1, examples)) ** 0.5


def beside(found: Accuracies, published: PublishedTable) -> Float[np.ndarray, "heads lengths"]:
    """The published accuracies at our heads and lengths, as shares; NaN where none was printed."""
    values = [[published.at(heads, length)[0] for length in found.lengths] for heads in found.heads]
    percent = np.nanmax(published.values) > 1
    return np.array(values) / (100 if percent else 1)


def accuracy_grid(
    title: str, found: Accuracies, values: tuple[Float[np.ndarray, "heads lengths"], ...], theirs: np.ndarray | None
) -> Grid:
    """Per cent by heads and length, several numbers a cell, the published one in parentheses."""
    rows = []
    for i, heads in enumerate(found.heads):
        cells = []
        for j in range(len(found.lengths)):
            said = " / ".join(_percent(table[i, j]) for table in values)
            if theirs is not None and np.isfinite(theirs[i, j]):
                said += f" ({_percent(theirs[i, j])})"
            cells.append(said)
        rows.append((count_of_heads(heads), *cells))
    return Grid(title=title, columns=("", *(f"T = {length}" for length in found.lengths)), rows=tuple(rows))


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f}"


def share(value: float) -> str:
    """A share of wrong answers, as one would say it."""
    return "less than 0.1 %" if value < 0.001 else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


LEAST = 1e-4
"""Shares of wrong answers are drawn down to here: a training set without one has no logarithm."""


def error_chart(
    name: str, title: str, found: Accuracies, ours: Float[np.ndarray, "heads lengths"], theirs: np.ndarray | None
) -> Chart:
    """Share of wrong answers against heads, a line for each length, the published ones dashed."""
    series = []
    for j, length in enumerate(found.lengths):
        series.append(Series(f"T = {length}", found.heads, tuple(np.maximum(ours[:, j], LEAST)), place=j))
        if theirs is not None and np.isfinite(theirs[:, j]).any():
            published = tuple(np.maximum(theirs[:, j], LEAST))
            series.append(Series(f"T = {length}, published", found.heads, published, place=j, kind="published"))
    caption = f"mean over {found.seeds} {'seed' if found.seeds == 1 else 'seeds'}"
    return Chart(
        name=name,
        title=title,
        x_label="attention heads",
        y_label="share of wrong answers",
        x_ticks=found.heads,
        series=tuple(series),
        caption=caption + ("; dashed: published" if theirs is not None else ""),
    )


def to_be_fetched(folder: Path, names: tuple[str, ...]) -> bool:
    """Whether a folder is missing, empty, or has only what an earlier download of these files left."""
    if not folder.exists():
        return True
    ours = {f"{name}{ending}" for name in names for ending in ("", ".part")} | {STAGING}
    return folder.is_dir() and {entry.name for entry in folder.iterdir()} <= ours


def cache_folder() -> Path:
    """Where mined negatives are kept: HEADCOUNT_CACHE, or headcount in the user's cache folder."""
    given = os.environ.get("HEADCOUNT_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else usual / "headcount"
