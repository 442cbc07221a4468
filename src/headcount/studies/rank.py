"""Studies of the second paper: error by rank at equal parameters, on the farthest-point task.

Amsel et al. (arXiv 2407.16153) draw these figures and print no numbers; a few points were read off the plots and are
carried as data. A study trains encoders whose heads share the width, rank = width / heads, so that every rank has the
same number of parameters.
"""

import csv
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from .._choices import Norm, Positions
from ..analysis.comparison import Claim
from ..engine import Sweep, grid, joined
from ..models import EncoderSpec
from ..report.chart import Chart, Series
from ..report.charts import ERROR
from ..report.section import Grid, Section
from ..store import Outcome, Record, TrainSpec
from ..tasks import AbstractTask, FarthestPoint
from .base import AbstractStudy, Effort, Scale

SOURCE = "arXiv 2407.16153"


@dataclass(frozen=True, kw_only=True)
class RankEffort(Effort):
    """How much of a study is done. `lengths` are the numbers of points N, `heads` those of one attention block."""

    dims: tuple[int, ...]
    heads: tuple[int, ...]
    layers: tuple[int, ...]
    multipliers: tuple[int, ...]
    positions: tuple[Positions, ...] = ("none",)
    hidden: int = 2048
    batch: int = 256
    learning_rate: float = 0.01
    norm: Norm = "unit"
    norm_first: bool = False

    @property
    def train(self) -> TrainSpec:
        """Fresh examples every step, warm-up over a twentieth, then a cosine; decay 0.95: all as published."""
        return TrainSpec(
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            warmup=self.steps // 20,
            second_moment_decay=0.95,
            train_examples=0,
        )


class Variant(NamedTuple):
    """One line of a figure: everything but the rank."""

    layers: int
    multiplier: int
    dim: int
    length: int
    positions: str

    @property
    def full_rank(self) -> int:
        """Of one head that has all of the width, a position code beside it included."""
        return 2 * self.dim if self.positions == "concatenated" else self.dim

    def name(self, varying: frozenset[str], otherwise: str = "measured") -> str:
        """What tells it from the other lines, in words; `otherwise` where there is none."""
        words = {
            "layers": "1 layer" if self.layers == 1 else f"{self.layers} layers",
            "multiplier": "1 block" if self.multiplier == 1 else f"{self.multiplier} blocks",
            "dim": f"d = {self.dim}",
            "length": f"{self.length} points",
            "positions": f"positions {self.positions}",
        }
        return ", ".join(word for name, word in words.items() if name in varying) or otherwise


LEAST = 1e-12
"""Errors below this are as good as none, and have a logarithm."""
Curves = dict[Variant, dict[int, float]]
"""The least error over seeds by rank, for every variant."""


def curves(records: Iterable[Record]) -> Curves:
    found: Curves = {}
    for record in records:
        model = record.cell.model
        if record.outcome is not Outcome.FINISHED or not isinstance(model, EncoderSpec):
            continue
        variant = Variant(model.layers, model.multiplier, model.width, record.cell.length, model.positions)
        line = found.setdefault(variant, {})
        line[model.rank] = min(line.get(model.rank, float("inf")), max(record.metrics["nmse"], LEAST))
    return {variant: dict(sorted(line.items())) for variant, line in sorted(found.items())}


@functools.cache
def published_curves(figure: str) -> Curves:
    """The points that were read off a published plot; without positions, all of them."""
    lines = (files("headcount.studies") / "data" / "rank_figures.csv").read_text().splitlines()
    found: Curves = {}
    for row in csv.DictReader(lines):
        if row["figure"] == figure:
            sizes = {name: int(row[name]) for name in ("layers", "multiplier", "dim", "length")}
            found.setdefault(Variant(**sizes, positions="none"), {})[int(row["rank"])] = float(row["value"])
    return found


@dataclass(frozen=True, kw_only=True)
class RankStudy(AbstractStudy):
    """A figure of error against rank. `figure` names its published points, `claims(measured)` judges it."""

    efforts: dict[Scale, RankEffort]  # type: ignore[assignment]
    figure: str = ""
    task: Callable[[int, int], AbstractTask] = lambda dim, length: FarthestPoint(length=length, dim=dim)
    claims: Callable[[Curves], tuple[Claim, ...]]
    notes: tuple[str, ...] = ()

    def sweep(self, scale: Scale) -> Sweep:
        effort = self.efforts[scale]
        return joined(
            grid(
                task,
                heads=effort.heads,
                lengths=effort.lengths,
                seeds=range(effort.seeds),
                model=encoders(effort, task, dim, layers, multiplier, positions),
                train=effort.train,
            )
            for dim in effort.dims
            for task in [self.task(dim, effort.lengths[0])]
            for layers in effort.layers
            for multiplier in effort.multipliers
            for positions in effort.positions
        )

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        measured, published = curves(records), published_curves(self.figure)
        made = self.claims(measured)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=headline_of(made),
            claims=made,
            grids=(curves_grid(measured, published),),
            charts=rank_charts(measured, published),
            notes=(*self.notes, *self.choices(scale)),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        ours = (
            "Published: encoder layers with ReLU nets of 2,048 units, biases, vectors scaled to a learned length in "
            "place of layer norm, after each sum, no dropout; AdamW without decay, betas 0.9 and 0.95, warm-up over "
            "5 % and a cosine; fresh examples every step. Ours: gradient norm clipped at 1, and errors measured on "
            "2,000 held-out sequences, the least along the curve. An error is the squared distance to the target over "
            "its variance, which is 1 for points on a sphere.",
        )
        if scale is Scale.PAPER:
            return ours
        paper = self.efforts[Scale.PAPER]
        smaller = (
            f"At {scale} scale: width {_listed(effort.dims)}, {_listed(effort.lengths)} points, nets of {effort.hidden}"
            f" units, {effort.steps:,} steps of {effort.batch}, {effort.seeds} seed(s). At paper scale: width "
            f"{_listed(paper.dims)}, {_listed(paper.lengths)} points, {paper.steps:,} steps of {paper.batch}."
        )
        if effort.norm_first and not paper.norm_first:
            smaller += " Norms come before attention and net here: in so few steps deep encoders learn only that way."
        return (smaller, *ours)


def encoders(
    effort: RankEffort, task: AbstractTask, dim: int, layers: int, multiplier: int, positions: Positions
) -> Callable[[int], EncoderSpec]:
    """Heads that share the width, a concatenated position code included."""
    stream = 2 * dim if positions == "concatenated" else dim

    def model(heads: int) -> EncoderSpec:
        return EncoderSpec.with_total_dim(
            stream,
            heads=heads,
            width=dim,
            layers=layers,
            multiplier=multiplier,
            positions=positions,
            hidden=effort.hidden,
            norm=effort.norm,
            norm_first=effort.norm_first,
            answered_at=task.answered_at,
        )

    return model


def headline_of(claims: tuple[Claim, ...]) -> str:
    """The first claim, and how it came out."""
    first = claims[0]
    return f"{first.statement.rstrip('.')}: {first.verdict.value}"


def varying(measured: Curves) -> frozenset[str]:
    """In what the variants differ."""
    return frozenset(name for name in Variant._fields if len({getattr(variant, name) for variant in measured}) > 1)


def curves_grid(measured: Curves, published: Curves) -> Grid:
    """Error by rank, one row a variant, the published value in parentheses."""
    ranks = sorted({rank for line in measured.values() for rank in line})
    differing = varying(measured)
    rows = []
    for variant, line in measured.items():
        theirs = published.get(variant, {})
        cells = []
        for rank in ranks:
            said = f" ({theirs[rank]:.2g})" if rank in theirs else ""
            cells.append(f"{line[rank]:.2g}{said}" if rank in line else "-")
        rows.append((variant.name(differing), *cells))
    heading = "least error over seeds" + (
        " (published, read off a plot)" if any(v in published for v in measured) else ""
    )
    return Grid(title=heading, columns=("", *(f"rank {rank}" for rank in ranks)), rows=tuple(rows))


def rank_charts(measured: Curves, published: Curves) -> tuple[Chart, ...]:
    """Error against rank, one chart a number of layers, one line a variant."""
    differing = varying(measured) - {"layers"}
    made = []
    for layers in sorted({variant.layers for variant in measured}):
        lines = {variant: line for variant, line in measured.items() if variant.layers == layers}
        series = []
        for place, (variant, line) in enumerate(lines.items()):
            name = variant.name(differing)
            series.append(Series(name, tuple(line), tuple(line.values()), place=place))
            theirs = {rank: value for rank, value in published.get(variant, {}).items() if value > 0}
            if theirs:
                series.append(
                    Series(f"{name}, published", tuple(theirs), tuple(theirs.values()), place=place, kind="published")
                )
        word = "1 layer" if layers == 1 else f"{layers} layers"
        made.append(
            Chart(
                name=f"error-against-rank-{layers}",
                title=f"Error against rank, {word}",
                x_label="rank of a head (numbers in a query)",
                y_label=ERROR,
                x_ticks=tuple(sorted({rank for line in lines.values() for rank in line})),
                log_x=True,
                series=tuple(series),
                caption="best of seeds; every rank has the same number of parameters",
            )
        )
    return tuple(made)


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))
