"""Other ways of reading, beside soft attention: where is the transition, and which do not retrieve at all? D = 4.

A window hides tokens that may hold a maximum; linear attention cannot put its weight on one token; top-k attention and
causal order take nothing away that retrieval needs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer import Answer, ErrorTable, answer, error_table
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided
from ...answer.words import decimal
from ...report.chart import Chart, Series
from ...report.charts import judged_by
from ...report.section import Grid, Section
from ...store import Experiment, Record
from ..base import AbstractStudy, Effort, Scale
from ..claims.heads import TENFOLD, same_answer_claim
from ..head_count.table import TASK_SEED, paper_task

if TYPE_CHECKING:
    from ...engine import Sweep
    from ...models import ClassTokenSpec

INTRINSIC_DIM, LENGTH = 4, 8
SOFT, DEEP = "soft", "soft, 2 layers"
WAYS: dict[str, dict[str, Any]] = {
    SOFT: {},
    "top-k, k = 2": {"attention": "top-k", "top_k": 2},
    "hard": {"attention": "hard"},
    "linear": {"attention": "linear"},
    "window T / 2": {"window": LENGTH // 2},
    DEEP: {"layers": 2},
    "causal, 2 layers": {"layers": 2, "causal": True},
}
RETRIEVES = 0.01
"""Soft attention has learned the task where its best error is below this."""


@dataclass(frozen=True, kw_only=True)
class SparseEffort(Effort):
    """How much is done."""

    heads: tuple[int, ...]
    ways: tuple[str, ...] = tuple(WAYS)


@dataclass(frozen=True, kw_only=True)
class SparseStudy(AbstractStudy):
    """Error by heads for every way of reading."""

    efforts: dict[Scale, SparseEffort]  # type: ignore[assignment]

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import sweep

        effort = self.efforts[scale]
        axes: dict[str, Any] = {
            "heads": effort.heads,
            "way": effort.ways,
            "length": effort.lengths,
            "seed": range(effort.seeds),
        }
        return sweep(paper_task(INTRINSIC_DIM), axes=axes, model=_model, train=effort.train, **self.named(scale))

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records)
        every = {way: table.select(way=way).trimmed() for way in table.values("way")}
        parts = {way: part for way, part in every.items() if part.errors.size}
        answers = {way: answer(part) for way, part in parts.items()}
        claims = (
            _same("Top-k attention needs as many heads as soft attention.", answers, "top-k, k = 2", SOFT),
            far_claim("A window of half the sequence retrieves at no head count.", parts, "window T / 2"),
            far_claim("Linear attention retrieves at no head count.", parts, "linear"),
            _same("In two layers causal order leaves the transition where it is.", answers, "causal, 2 layers", DEEP),
        )
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline="; ".join(f"{way}: {_short(found)}" for way, found in answers.items()),
            claims=claims,
            grids=(_grid(table, parts),),
            charts=(ways_chart(table, parts),),
            notes=self.choices(scale),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        smaller = (
            f"At {scale} scale: {effort.seeds} seeds, {effort.steps:,} steps, heads "
            f"{', '.join(map(str, effort.heads))}.",
        )
        return (
            *(smaller if scale is not Scale.PAPER else ()),
            f"Length {LENGTH}, heads of 8 numbers, one draw of the a_i (number {TASK_SEED}). A way does not retrieve "
            f"where its best error over head counts is {10**TENFOLD:g} times that of soft attention or more. Causal "
            "order needs two layers: with one, only the class token asks, after all tokens. Hard attention gives "
            "scores no gradient: queries and keys stay as drawn.",
        )


def _model(heads: int, way: str) -> "ClassTokenSpec":
    from ...models import ClassTokenSpec

    return ClassTokenSpec(heads=heads, **WAYS[way])


def _same(statement: str, answers: dict[str, Answer], way: str, other: str) -> Claim:
    return same_answer_claim(statement, answers, {way: way, other: other})


def far_claim(statement: str, parts: dict[str, ErrorTable], way: str) -> Claim:
    """The best error of a way, over head counts and seeds, is far above that of soft attention."""
    best = {each: float(np.nanmin(parts[each].errors)) for each in (way, SOFT) if each in parts}
    if len(best) < 2:
        return Claim(statement, Verdict.UNDECIDED, "not measured")
    evidence = f"best error {decimal(best[way])}, of soft attention {decimal(best[SOFT])}"
    if best[SOFT] > RETRIEVES:
        return Claim(statement, Verdict.UNDECIDED, f"soft attention has not learned the task either: {evidence}")
    return Claim(statement, decided(best[way] >= 10**TENFOLD * best[SOFT]), evidence)


def _short(found: Answer) -> str:
    return found.sentence if found.kind == "needs" else "no transition" if found.kind == "none" else "a floor"


def ways_chart(table: ErrorTable, parts: dict[str, ErrorTable]) -> Chart:
    """The best error against heads, a line per way."""
    series = []
    for place, (way, part) in enumerate(parts.items()):
        best = part.reduced("seed").reduced("length", "worst")
        series.append(Series(way, best.values("heads"), tuple(best.errors), place=place))
    return Chart(
        name="error-by-way",
        title="Error against heads, by way of reading",
        x_label="attention heads",
        y_label=table.metric.label,
        x_ticks=table.values("heads"),
        series=tuple(series),
        caption=judged_by(table),
    )


def _grid(table: ErrorTable, parts: dict[str, ErrorTable]) -> Grid:
    heads = table.values("heads")
    rows = []
    for way, part in parts.items():
        best = part.reduced("seed").reduced("length", "worst")
        rows.append((way, *(decimal(best.at(heads=count)) for count in heads)))
    columns = ("", *(f"h = {count}" for count in heads))
    return Grid(title="smallest error over seeds", columns=columns, rows=tuple(rows))


STUDY = SparseStudy(
    name="sparse",
    title="Windows, causal order, linear and top-k attention",
    asks="Which ways of reading need how many heads for the sum of four maxima, and which do not retrieve?",
    efforts={
        Scale.SMOKE: SparseEffort(
            lengths=(LENGTH,), seeds=2, steps=200, heads=(3, 4), ways=(SOFT, "top-k, k = 2", "linear", "window T / 2")
        ),
        Scale.LAPTOP: SparseEffort(lengths=(LENGTH,), seeds=3, steps=3000, heads=(1, 2, 3, 4, 5, 6)),
        Scale.PAPER: SparseEffort(lengths=(LENGTH,), seeds=8, steps=10_000, heads=(1, 2, 3, 4, 5, 6)),
    },
)
