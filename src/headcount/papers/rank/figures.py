"""Figures of the second paper: error by rank at equal parameters, on the farthest-point task.

Amsel et al. (arXiv 2407.16153) draw these figures and print no numbers; a few points were read off the plots and are
carried as data. Encoders share the width between their heads, rank = width / heads, so that every rank has the same
number of parameters.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..._choices import Norm, Positions
from ...answer import ErrorTable
from ...answer.claim import ClaimResult, judged
from ...report.chart import Chart
from ...report.document import Grid
from ...store import TrainSpec
from ...store.cell import MAX_WARMUP
from ..base import AbstractSpec, AbstractTask, Part, Scale, Study, StudyEffort, StudyResults
from ..charts import chart_along, grid_of, line_of
from ..claims.heads import magnitude_claim
from ..claims.rank import (
    blocks_claim,
    codes_claim,
    count_of_layers,
    depth_claim,
    full_rank_claim,
    line_name,
    longer_claim,
    more_heads_claim,
    shorter_claim,
    varying_axes,
    wider_heads_claim,
)
from ..published import published_points

SMALLEST = 1e-12
"""Errors below this are as good as none, and have a logarithm."""


@dataclass(frozen=True, kw_only=True)
class RankEffort(StudyEffort):
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


def rank_efforts(
    smoke: Mapping[str, Any], laptop: Mapping[str, Any], paper: Mapping[str, Any], **shared: Any
) -> dict[Scale, RankEffort]:
    """The efforts of a study from what it has of its own at each scale, and `shared` by all."""
    small = {"seeds": 1, "batch": 64, "norm_first": True}
    usual: dict[Scale, dict[str, Any]] = {
        Scale.SMOKE: {"lengths": (8,), "steps": 1000, "dims": (8,), "hidden": 64, **small},
        Scale.LAPTOP: {"lengths": (16,), "steps": 3000, "dims": (16,), "hidden": 128, **small},
        Scale.PAPER: {"lengths": (16,), "seeds": 5, "steps": 100_000, "dims": (64,)},
    }
    own = dict(zip(Scale, (smoke, laptop, paper), strict=True))
    return {scale: RankEffort(**{**usual[scale], **shared, **own[scale]}) for scale in Scale}


def farthest_point(dim: int, length: int) -> AbstractTask:
    from ...tasks import FarthestPoint

    return FarthestPoint(length=length, dim=dim)  # pyright: ignore[reportCallIssue]


def in_context(width: int, length: int) -> AbstractTask:
    from ...tasks import InContextRegression

    return InContextRegression(inputs=(length - 1) // 2, length=length)


def rank_part(
    effort: RankEffort, dim: int, positions: Positions, task: Callable[[int, int], AbstractTask], **at: str
) -> Part:
    """The models of one dimension; position codes that are concatenated to the points double the width."""
    stream, made = 2 * dim if positions == "concatenated" else dim, partial(task, dim, effort.lengths[0])

    def shared_width_encoder(rank: int, **sizes: int) -> AbstractSpec:
        from ...models import EncoderSpec

        same = {"positions": positions, "norm": effort.norm, "norm_first": effort.norm_first, "hidden": effort.hidden}
        heads, answered_at = stream // rank, made().answered_at
        return EncoderSpec.with_total_dim(stream, heads=heads, width=dim, answered_at=answered_at, **same, **sizes)

    ranks = [stream // heads for heads in effort.heads]
    axes = effort.over(rank=ranks, layers=effort.layers, multiplier=effort.multipliers)
    return Part(
        task=made,
        model=shared_width_encoder,
        axes=axes,
        at={"dim": dim, "positions": positions, **at},
        train=effort.train,
    )


def rank_study(
    claims: Callable[[ErrorTable], tuple[ClaimResult, ...]],
    *,
    figure: str = "",
    task: Callable[[int, int], AbstractTask] = farthest_point,
    own_notes: tuple[str, ...] = (),
    **fields: Any,
) -> Study:
    """A figure of error against rank.

    `claims(table)` judges the best of seeds over rank, layers, multiplier, dim, positions and length; `figure` names
    the published points, to which the same rules are applied; `task(dim, length)` is what is learned.
    """
    published = published_points(figure)
    printed = None if published is None else with_logarithms(published)

    def swept_parts(effort: RankEffort) -> Iterable[Part]:
        for dim, positions in itertools.product(effort.dims, effort.positions):
            yield rank_part(effort, dim, positions, task)

    def document_fields(results: StudyResults) -> dict[str, Any]:
        table = with_logarithms(results.table().reduced("seed").trimmed())
        first, *others = judged(claims, table, printed)
        return {
            "headline": f"{first.statement.rstrip('.')}: {first.verdict.value}",
            "claims": (first, *others, *(() if published is None else (magnitude_claim(table, published),))),
            "grids": (rank_grid(table, published),),
            "charts": rank_charts(table, published),
            "notes": own_notes,
        }

    return Study(
        parts=swept_parts,
        report=document_fields,
        notes=OUR_CHOICES,
        published_claims=lambda: () if printed is None else claims(printed),
        options=("steps", "norm_first"),
        **fields,
    )


OUR_CHOICES = (
    "Published: encoder layers with ReLU nets of 2,048 units, biases, vectors scaled to a learned length in "
    "place of layer norm, after each sum, no dropout; AdamW without decay, betas 0.9 and 0.95, warm-up over "
    "5 % and a cosine; fresh examples every step. Ours: gradient norm clipped at 1, and errors measured on "
    "2,000 held-out sequences, the smallest along the curve. An error is the squared distance to the target "
    "over its variance, which is 1 for points on a sphere. Where norms come first although they are published after "
    "the sums, the steps are too few: deep encoders learn only that way.",
)


def with_logarithms(table: ErrorTable) -> ErrorTable:
    return replace(table, errors=np.maximum(table.errors, SMALLEST))


def rank_grid(table: ErrorTable, published: ErrorTable | None, title: str = "smallest error over seeds") -> Grid:
    ranks, rows, compared = table.values("rank"), [], False
    for at, line in table.lines("rank"):
        theirs = {} if published is None else _published_line(published, at)
        compared |= not theirs.keys().isdisjoint(ranks)
        also = {rank: f" ({error:.2g})" for rank, error in theirs.items()}
        cells = (f"{line[rank]:.2g}{also.get(rank, '')}" if rank in line else "-" for rank in ranks)
        rows.append((line_name(at, varying_axes(table)), *cells))
    title += " (published, read off a plot)" if compared else ""
    return grid_of(title, ("", *(f"rank {rank}" for rank in ranks)), rows)


def rank_charts(table: ErrorTable, published: ErrorTable | None) -> tuple[Chart, ...]:
    differing = varying_axes(table) - {"layers"}
    charts = []
    for layers in table.values("layers"):
        part = table.select(layers=[layers])
        series = []
        for place, (at, line) in enumerate(part.lines("rank")):
            name = line_name(at, differing)
            series.append(line_of(name, line, place))
            # Points at zero cannot be drawn.
            theirs = {} if published is None else {r: e for r, e in _published_line(published, at).items() if e > 0}
            series += [line_of(f"{name}, published", theirs, place, "published")] if theirs else []
        name, title = f"error-against-rank-{layers}", f"Error against rank, {count_of_layers(layers)}"
        caption = "best of seeds; every rank has the same number of parameters"
        charts.append(chart_along("rank", part.trimmed().values("rank"), series, name, title, caption))
    return tuple(charts)


def _published_line(published: ErrorTable, at: dict[str, Any]) -> dict[int, float]:
    points = {rank: published.at(rank=rank, **at) for rank in published.values("rank")}
    return {rank: error for rank, error in points.items() if np.isfinite(error)}


ALL_HEADS = (1, 2, 4, 8, 16, 32, 64)
LONG = {"steps": 200_000, "learning_rate": 0.005}
"""The training of the published figures but the first."""
FIGURE1 = rank_study(
    lambda table: (full_rank_claim(table), more_heads_claim(table), blocks_claim(table), depth_claim(table)),
    name="rank-figure1",
    title="Figure 1 of arXiv 2407.16153",
    asks="Error by rank at equal parameters for the farthest of 16 points, by depth and number of attention blocks.",
    figure="figure1",
    efforts=rank_efforts(
        smoke={"heads": (1, 2, 8), "layers": (1, 3), "multipliers": (1, 4)},
        laptop={"heads": (1, 2, 4, 16), "layers": (1, 3), "multipliers": (1, 8)},
        paper={"heads": ALL_HEADS, "layers": (1, 3, 5), "multipliers": (1, 8, 64)},
    ),
    own_notes=("Read off the published plot, one layer: every rank up to 32 stays between 0.3 and 0.9.",),
)


def _points_claims(table: ErrorTable) -> tuple[ClaimResult, ...]:
    longest = table.select(length=[max(table.values("length"))])
    return shorter_claim(table), longer_claim(table), full_rank_claim(longest), more_heads_claim(longest)


FIGURE_N = rank_study(
    _points_claims,
    name="rank-figure-n",
    title="Figure of N, arXiv 2407.16153",
    asks="Error by rank for few and for many points: where depth makes up for rank, and where it does not.",
    figure="figureN",
    efforts=rank_efforts(
        smoke={"lengths": (2, 8), "heads": (1, 2, 8), "multipliers": (4,)},
        laptop={"lengths": (2, 4, 16), "heads": (1, 4, 16), "multipliers": (8,)},
        paper={"lengths": (4, 16, 64, 256), "heads": (1, 2, 4, 8, 64), "multipliers": (64,), **LONG},
        layers=(1, 2),
    ),
    own_notes=(
        "The published figure has two layers; one layer is trained here too, to see what the second one gains.",
        "Published at 4 points: near 0 at every rank; the plot shows no more.",
    ),
)
FIGURE_D = rank_study(
    lambda table: (
        more_heads_claim(table),
        full_rank_claim(table, 2, "With 2 layers the error still falls at full rank."),
    ),
    name="rank-figure-d",
    title="Figure of d, arXiv 2407.16153",
    asks="Error by rank in dimensions 16 to 256, two layers, eight blocks.",
    efforts=rank_efforts(
        smoke={"dims": (8, 12), "heads": (1, 2, 4), "multipliers": (4,)},
        laptop={"dims": (8, 16, 32), "heads": (1, 2, 8), "multipliers": (2,)},
        paper={"dims": (16, 64, 128, 256), "heads": (1, 2, 4, 8, 16), "multipliers": (8,), **LONG},
        layers=(2,),
    ),
    own_notes=("The paper draws this figure; no points of it were at hand.",),
)


def _positions_claims(table: ErrorTable) -> tuple[ClaimResult, ...]:
    # A concatenated code doubles the width: its ranks are not those of the others.
    one_width = table.select(positions=[each for each in table.values("positions") if each != "concatenated"])
    return codes_claim(table), full_rank_claim(one_width), more_heads_claim(one_width)


POSITIONS = rank_study(
    _positions_claims,
    name="rank-positions",
    title="Figure of positions, arXiv 2407.16153",
    asks="Whether learned position codes, added to the points or appended to them, change what rank does.",
    efforts=rank_efforts(
        smoke={"heads": (1, 2, 8), "layers": (1,), "multipliers": (4,)},
        laptop={"heads": (1, 2, 8), "layers": (1,), "multipliers": (4,)},
        paper={"heads": ALL_HEADS, "layers": (1, 3), "multipliers": (1, 8), **LONG},
        positions=("none", "additive", "concatenated"),
    ),
    own_notes=(
        "A code that is concatenated to a point doubles the width, so the heads that share it have twice the rank at "
        "the same number of heads; codes are drawn uniformly from [-1, 1] and learned. The paper draws this figure; no "
        "points of it were at hand.",
    ),
)
IN_CONTEXT = rank_study(
    lambda table: (wider_heads_claim(table),),
    name="rank-in-context",
    title="In-context regression, arXiv 2407.16153",
    asks="Linear regression from pairs in the sequence (Garg et al. 2022), by heads at equal parameters.",
    task=in_context,
    efforts=rank_efforts(
        smoke={"lengths": (9,), "steps": 2000, "dims": (16,), "heads": (1, 4, 16)},
        laptop={"lengths": (9,), "seeds": 2, "steps": 4000, "heads": (1, 2, 4, 8, 16), "hidden": 64},
        paper={
            "lengths": (41,), "seeds": 1, "dims": (256,), "heads": ALL_HEADS, "layers": (12,), "hidden": 1024,
            "batch": 64, "learning_rate": 3e-4,
        },
        layers=(3,), multipliers=(1,), learning_rate=0.003, norm="layer", norm_first=True,
    ),
    own_notes=(
        "Which sizes the second paper used is not in the facts at hand; at paper scale they are those of Garg et al. "
        "(20 inputs, 40 pairs, 12 layers of 256 numbers), with an encoder that reads pairs and one query in place of "
        "their causal decoder.",
    ),
)  # fmt: skip
