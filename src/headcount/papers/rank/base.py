"""Studies of the second paper: error by rank at equal parameters, on the farthest-point task.

Amsel et al. (arXiv 2407.16153) draw these figures and print no numbers; a few points were read off the plots and are
carried as data. A study trains encoders whose heads share the width, rank = width / heads, so that every rank has the
same number of parameters.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..._choices import Norm, Positions
from ...answer import NMSE, ErrorTable, error_table
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import judged
from ...report.chart import Chart, Series
from ...report.section import Grid, Section
from ...store import Experiment, Record, TrainSpec
from ...store.cell import MAX_WARMUP
from ..base import AbstractStudy, Effort, Scale, said_of
from ..claims.heads import magnitude_claim
from ..claims.rank import named, varying
from ..published import published_points

if TYPE_CHECKING:
    from ...engine import Sweep
    from ...models import EncoderSpec
    from ...tasks import AbstractTask

SMALLEST = 1e-12
"""Errors below this are as good as none, and have a logarithm."""


@dataclass(frozen=True, kw_only=True)
class RankEffort(Effort):
    """How much of a study is done. `lengths` are the numbers of points N, `heads` those of one attention block.

    `warmup` is the share of the steps over which the learning rate rises.
    """

    dims: tuple[int, ...]
    heads: tuple[int, ...]
    layers: tuple[int, ...]
    multipliers: tuple[int, ...]
    positions: tuple[Positions, ...] = ("none",)
    hidden: int = 2048
    batch: int = 256
    learning_rate: float = 0.01
    warmup: float = 0.05
    norm: Norm = "unit"
    norm_first: bool = False

    @property
    def train(self) -> TrainSpec:
        """Fresh examples every step, warm-up over a twentieth, then a cosine; decay 0.95: all as published."""
        return TrainSpec(
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            warmup=round(self.steps * self.warmup),
            max_warmup=max(MAX_WARMUP, self.warmup),
            second_moment_decay=0.95,
            train_examples=0,
        )


def farthest_point(dim: int, length: int) -> "AbstractTask":
    from ...tasks import FarthestPoint

    return FarthestPoint(length=length, dim=dim)  # pyright: ignore[reportCallIssue]


@dataclass(frozen=True, kw_only=True)
class RankStudy(AbstractStudy):
    """A figure of error against rank.

    `figure` names its published points, beside which ours are judged; `claims(table)` judges the best of seeds over
    rank, layers, multiplier, dim, positions and length; `task(dim, length)` is what is learned.
    """

    efforts: dict[Scale, RankEffort]  # type: ignore[assignment]
    claims: Callable[[ErrorTable], tuple[Claim, ...]]
    figure: str = ""
    task: Callable[[int, int], "AbstractTask"] = farthest_point
    notes: tuple[str, ...] = ()

    def changed(self, scale: Scale, *, steps: int | None = None, norm_first: bool | None = None) -> "RankStudy":
        """The same study with another number of steps or other norms at a scale; None leaves either as it is."""
        effort = self.efforts[scale]
        effort = replace(
            effort,
            steps=effort.steps if steps is None else steps,
            norm_first=effort.norm_first if norm_first is None else norm_first,
        )
        return replace(self, efforts=self.efforts | {scale: effort})

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import joined

        effort = self.efforts[scale]
        return joined(self._part(scale, effort, dim, each) for dim in effort.dims for each in effort.positions)

    def _part(self, scale: Scale, effort: RankEffort, dim: int, positions: Positions, **at: str) -> "Sweep":
        """The models of one width, trained as `effort` says; a position code beside the points doubles the width."""
        from ...engine import sweep

        task = self.task(dim, effort.lengths[0])
        stream = 2 * dim if positions == "concatenated" else dim

        def model(rank: int, layers: int, multiplier: int) -> "EncoderSpec":
            from ...models import EncoderSpec

            return EncoderSpec.with_total_dim(
                stream,
                heads=stream // rank,
                width=dim,
                layers=layers,
                multiplier=multiplier,
                positions=positions,
                hidden=effort.hidden,
                norm=effort.norm,
                norm_first=effort.norm_first,
                answered_at=task.answered_at,
            )

        axes = {
            "rank": [stream // heads for heads in effort.heads],
            "layers": effort.layers,
            "multiplier": effort.multipliers,
            "length": effort.lengths,
            "seed": range(effort.seeds),
        }
        further = {"dim": dim, "positions": positions, **at}
        return sweep(task, axes=axes, model=model, train=effort.train, at=further, **self.named(scale))

    def published_claims(self) -> tuple[Claim, ...]:
        printed = self._printed()
        return () if printed is None else self.claims(printed)

    def _printed(self) -> ErrorTable | None:
        published = published_points(self.figure)
        return None if published is None else with_logarithms(published)

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        best = error_table(experiment, records).reduced("seed").trimmed()
        table, published = with_logarithms(best), published_points(self.figure)
        claims = judged(self.claims, table, self._printed())
        claims += () if published is None else (magnitude_claim(table, published),)
        changes = changes_of(experiment, self.efforts[scale])
        return Section(
            name=self.name,
            title=", ".join([self.title, *changes]),
            asks=self.asks,
            headline=f"{claims[0].statement.rstrip('.')}: {claims[0].verdict.value}",
            claims=claims,
            grids=(rank_grid(table, published),),
            charts=rank_charts(table, published),
            notes=(*self.notes, *said_of(changes, scale), *self.choices(scale)),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        ours = (
            "Published: encoder layers with ReLU nets of 2,048 units, biases, vectors scaled to a learned length in "
            "place of layer norm, after each sum, no dropout; AdamW without decay, betas 0.9 and 0.95, warm-up over "
            "5 % and a cosine; fresh examples every step. Ours: gradient norm clipped at 1, and errors measured on "
            "2,000 held-out sequences, the smallest along the curve. An error is the squared distance to the target "
            "over its variance, which is 1 for points on a sphere.",
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


def changes_of(experiment: Experiment, effort: RankEffort) -> list[str]:
    """What the models of an experiment have in place of the scale's own, in words: it was asked for by an option."""
    steps = experiment.settings.get("train", {}).get("steps", effort.steps)
    norm_first = experiment.settings.get("model", {}).get("norm_first", effort.norm_first)
    words = [] if steps == effort.steps else [f"{steps:,} steps"]
    return words if norm_first == effort.norm_first else [*words, "norms first" if norm_first else "norms after sums"]


def with_logarithms(table: ErrorTable) -> ErrorTable:
    return replace(table, errors=np.maximum(table.errors, SMALLEST))


def rank_grid(table: ErrorTable, published: ErrorTable | None, title: str = "smallest error over seeds") -> Grid:
    """Error by rank, a row per line, the published value in parentheses."""
    ranks, differing = table.values("rank"), varying(table)
    rows, beside = [], False
    for at, line in table.lines("rank"):
        cells = []
        for rank in ranks:
            theirs = np.nan if published is None else published.at(rank=rank, **at)
            beside |= bool(np.isfinite(theirs))
            reference = f" ({theirs:.2g})" if np.isfinite(theirs) else ""
            cells.append(f"{line[rank]:.2g}{reference}" if rank in line else "-")
        rows.append((named(at, differing), *cells))
    title += " (published, read off a plot)" if beside else ""
    return Grid(title=title, columns=("", *(f"rank {rank}" for rank in ranks)), rows=tuple(rows))


def rank_charts(table: ErrorTable, published: ErrorTable | None) -> tuple[Chart, ...]:
    """Error against rank, a chart per number of layers, a line per variant."""
    differing = varying(table) - {"layers"}
    charts = []
    for layers in table.values("layers"):
        part = table.select(layers=[layers])
        series = []
        for place, (at, line) in enumerate(part.lines("rank")):
            name = named(at, differing)
            series.append(Series(name, tuple(line), tuple(line.values()), place=place))
            theirs = _published_line(published, at)
            if theirs:
                values = tuple(theirs.values())
                series.append(Series(f"{name}, published", tuple(theirs), values, place=place, kind="published"))
        charts.append(
            Chart(
                name=f"error-against-rank-{layers}",
                title=f"Error against rank, {'1 layer' if layers == 1 else f'{layers} layers'}",
                x_label="rank of a head (numbers in a query)",
                y_label=NMSE.label,
                x_ticks=part.trimmed().values("rank"),
                log_x=True,
                series=tuple(series),
                caption="best of seeds; every rank has the same number of parameters",
            )
        )
    return tuple(charts)


def _published_line(published: ErrorTable | None, at: dict) -> dict[int, float]:
    """The published points of a line by rank; those at zero cannot be drawn."""
    if published is None:
        return {}
    points = {rank: published.at(rank=rank, **at) for rank in published.values("rank")}
    return {rank: error for rank, error in points.items() if error > 0}


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))
