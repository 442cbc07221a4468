"""Studies of real data: accuracy by heads and length. What CIFAR-10 and MS MARCO share."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float

from ...answer import ErrorTable, Metric, count_of_heads, error_table
from ...answer.claim import ClaimResult
from ...answer.metric import FINAL_ERROR, FITTED_ERROR, FITTED_MRR, TRAIN_ERROR
from ...report.chart import Chart, Kind, Series
from ...report.document import Grid
from ...store import Experiment, Outcome, Precision, Record, TrainSpec
from ..base import AbstractSpec, AbstractTask, Part, Study, StudyEffort
from ..charts import WRONG_LABEL, chart_along, grid_of
from ..claims.labels import nearness_claim
from .download import OnBytes

PARTS = ("training", "validation")
SMALLEST = 1e-4
"""Shares of wrong answers are drawn down to here: a training set without one has no logarithm."""


@dataclass(frozen=True, kw_only=True)
class LabelledEffort(StudyEffort):
    """How much of a study is done; of the examples that are there, at most `train_examples` are learned from."""

    heads: tuple[int, ...]
    batch: int
    train_examples: int
    validation_examples: int
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    precision: Precision = "float32"
    epochs: int | None = None

    def for_examples(self, examples: int) -> "LabelledEffort":
        """The same with a number of examples to learn from: with `epochs`, they decide the number of steps."""
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
class RealDataStudy(Study):
    """A study that is bound to data before it trains anything; before that its cost is counted on stand-ins.

    Args:
        layers: Layers of its encoders.
        trainings: How models of a task are trained: for each way the coordinates that its models share, and the effort.
        printed: The paper's T for a length of ours.
        tasks: Those of the data it is bound to, none before that.
    """

    layers: int
    trainings: Callable[[Any, AbstractTask], Iterable[tuple[dict[str, Any], LabelledEffort]]]
    printed: Callable[[int], int] = int
    tasks: tuple[AbstractTask, ...] = ()

    @abstractmethod
    def read_tasks(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> tuple[AbstractTask, ...]:
        """The tasks in a folder; public data is downloaded into a folder that is empty or not there yet."""

    @abstractmethod
    def stand_ins(self) -> tuple[AbstractTask, ...]:
        """Tasks without data, of the published sizes: good for counting the cost."""

    def keep_pictures(self, folder: Path) -> None:
        """Draw what is drawn of the data itself, into the results folder."""
        return

    def is_ready(self, data: Path) -> bool:
        """Whether a folder holds data that is read without downloading or mining anything."""
        return False

    def with_data(self, data: Path, *, embeddings: Path | None = None, on_bytes: OnBytes = lambda *_: None) -> Self:
        return dataclasses.replace(self, tasks=self.read_tasks(data, embeddings=embeddings, on_bytes=on_bytes))

    def swept(self, effort: LabelledEffort) -> Iterable[Part]:
        for task in self.tasks or self.stand_ins():
            for coordinates, training in self.trainings(effort, task):
                axes = training.over(heads=training.heads)
                model = partial(self._labelled_encoder, task)
                yield Part(task=lambda task=task: task, model=model, axes=axes, at=coordinates, train=training.train)

    def _labelled_encoder(self, task: AbstractTask, heads: int) -> AbstractSpec:
        from ... import recipes

        return recipes.labelled_encoder(task, heads, layers=self.layers)


class Means(NamedTuple):
    """Mean shares of wrong answers over seeds, by heads and printed length, all over the same cells.

    `training` is while training (over the last twentieth of the steps, with dropout), `fitted` on the training examples
    at the end, `validation` on validation examples at the end; `fitted_mrr` is the mean reciprocal rank where there is
    one. Shares within a margin are equal, as far as the examples they were counted on can tell.
    """

    training: ErrorTable
    fitted: ErrorTable
    validation: ErrorTable
    fitted_mrr: ErrorTable
    seeds: int
    training_margin: float
    validation_margin: float

    def of_tables(self, part: Callable[[ErrorTable], ErrorTable]) -> "Means":
        """The same of a part of every table."""
        training, fitted, validation, fitted_mrr = map(part, self[:4])
        return self._replace(training=training, fitted=fitted, validation=validation, fitted_mrr=fitted_mrr)


class Published(NamedTuple):
    """The two tables of a data set; None where they are about other models than ours."""

    training: ErrorTable | None
    validation: ErrorTable | None


def printed_means(training: ErrorTable, validation: ErrorTable, trained: int, validated: int) -> Means:
    """The published tables, to judge by the same rules; their shares are taken as counted once on all examples."""
    return Means(training, training, validation, training, 1, margin_of(trained), margin_of(validated))


def means_of(
    experiment: Experiment, records: Iterable[Record], *along: str, printed: Callable[[int], int] = int
) -> Means:
    """The means over seeds of an experiment's records over heads and length, of which at least one has finished.

    The tables have the axes `along` too, before those two.
    """
    done = [record for record in experiment.own(records) if record.outcome is Outcome.FINISHED]

    def table(metric: Metric) -> ErrorTable:
        means = error_table(experiment, done, metric=metric).reduced("seed", "mean")
        for axis in set(means.axes) - {*along, "heads", "length"}:
            means = means.reduced(axis)
        axes = dict(means.axes) | {"length": tuple(map(printed, means.values("length")))}
        return dataclasses.replace(means, axes=axes).ordered(*along, "heads", "length")

    validation = table(FINAL_ERROR)
    return Means(
        training=table(TRAIN_ERROR),
        fitted=table(FITTED_ERROR),
        validation=validation,
        fitted_mrr=table(FITTED_MRR),
        seeds=len({record.cell.seed for record in done}),
        training_margin=margin_of(min(record.cell.train.steps // 20 * record.cell.train.batch for record in done)),
        validation_margin=margin_of(_validated(validation, min(r.cell.train.validation_examples for r in done))),
    )


def _validated(validation: ErrorTable, asked: int) -> int:
    """How many validation examples there were, of as many as asked for: the noise of a constant answer's error says."""
    known = np.isfinite(validation.errors) & (validation.noise > 0)
    share, noise = validation.baseline[known], validation.noise[known]
    return min([asked, *np.rint(share * (1 - share) / noise**2).astype(int).tolist()])


def margin_of(examples: int) -> float:
    """Two standard errors of the difference of two shares near one half."""
    return 2 * (2 * 0.25 / max(1, examples)) ** 0.5


def accuracy_grids(of: str, means: Means, published: Published) -> list[Grid]:
    training, validation = ("" if table is None else f" ({table.source.split(',')[0]})" for table in published)
    title = f"{of}training accuracy, per cent: while training / at the end{training}"
    return [
        accuracy_grid(title, (means.training, means.fitted), published.training),
        accuracy_grid(f"{of}validation accuracy, per cent{validation}", (means.validation,), published.validation),
    ]


def accuracy_grid(title: str, tables: tuple[ErrorTable, ...], published: ErrorTable | None) -> Grid:
    """Per cent right by heads and length, several numbers per cell, the published one in parentheses."""
    first = tables[0]

    def cell(**place: int) -> str:
        text = " / ".join(percent(table.at(**place), table.metric) for table in tables)
        theirs = np.nan if published is None else published.at(**place)
        return text if np.isnan(theirs) else f"{text} ({percent(theirs, first.metric)})"

    heads, lengths = first.values("heads"), first.values("length")
    rows = [(count_of_heads(count), *(cell(heads=count, length=length) for length in lengths)) for count in heads]
    return grid_of(title, ("", *(f"T = {length}" for length in lengths)), rows)


def percent(value: float, metric: Metric) -> str:
    right = 1 - value if metric.less_is_better else value
    # Rounded first: 39.95 that went through 1 - 0.6005 must still print as it did in the paper.
    return "-" if np.isnan(value) else f"{round(100 * right, 8):.1f}"


def share(value: float) -> str:
    return "less than 0.1 %" if value < 0.001 else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def wrong_at_both_ends(training: ErrorTable, wrong: str) -> str:
    """Describe the shares that the fewest and the most heads get wrong at the worst length; `wrong` names the first."""
    heads, worst = training.values("heads"), training.reduced("length", "worst").errors
    few, many = (share(float(worst[i])) for i in (0, -1))
    return f"{few} {wrong} with {count_of_heads(heads[0])}, {many} with {count_of_heads(heads[-1])}, at the worst T"


def error_charts(means: Means, published: Published, name: str, title: str) -> tuple[Chart, ...]:
    """Training and validation error; `{}` in the name and the title is which of them."""
    return tuple(
        error_chart(name.format(what), title.format(what.capitalize()), ours, theirs, means.seeds)
        for what, ours, theirs in zip(PARTS, (means.training, means.validation), published, strict=True)
    )


def error_chart(name: str, title: str, table: ErrorTable, published: ErrorTable | None, seeds: int) -> Chart:
    heads = table.values("heads")
    series = lines_by_length(np.maximum(table.errors, SMALLEST), table)
    if published is not None:
        shares = np.maximum(published.aligned(table), SMALLEST)
        theirs = lines_by_length(shares, table, ", published", kind="published")
        known = [line for line in theirs if np.isfinite(line.y).any()]
        series = sorted([*series, *known], key=lambda line: line.place)
    caption = f"mean over {seeds} {'seed' if seeds == 1 else 'seeds'}"
    caption += "; dashed: published" if published is not None else ""
    return chart_along("heads", heads, series, name, title, caption, WRONG_LABEL)


def lines_by_length(
    errors: Float[np.ndarray, "heads lengths"], table: ErrorTable, ending: str = "", kind: Kind = "measured"
) -> list[Series]:
    """A line against the heads for each length of a table."""
    lines = enumerate(zip(table.values("length"), errors.T, strict=True))
    return [
        Series(f"T = {length}{ending}", table.values("heads"), tuple(line), place=place, kind=kind)
        for place, (length, line) in lines
    ]


def nearness_claims(means: Means, published: Published, *, whole: bool, of: str = "") -> tuple[ClaimResult, ...]:
    """Whether our accuracies are near the published ones; none where nothing was published. `of` says which models."""
    return tuple(
        nearness_claim(f"{what}{of}", ours, theirs, whole=whole)
        for what, ours, theirs in zip(PARTS, (means.training, means.validation), published, strict=True)
        if theirs is not None
    )
