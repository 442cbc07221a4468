"""Other ways of reading than soft attention: where is the transition, and which do not retrieve at all? D = 4.

A window hides tokens that may hold a maximum; linear attention cannot put its weight on one token; top-k attention and
causal order take nothing away that retrieval needs.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer import Answer, ErrorTable, answer
from ...answer.claim import ClaimResult, Verdict, decided
from ...answer.words import decimal
from ...report.chart import Chart, Series
from ...report.charts import judged_by
from ...report.document import Grid
from ..base import Effort, Part, Results, Scale, Study
from ..claims.heads import TENFOLD, same_answer_claim
from ..head_count.tables import TASK_SEED, class_token, paper_task

if TYPE_CHECKING:
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


def _parts(effort: Effort) -> Iterable[Part]:
    def model(heads: int, way: str) -> "ClassTokenSpec":
        return class_token(heads, **WAYS[way])

    yield Part(task=paper_task, model=model, axes=effort.over(heads=effort.axes["heads"], way=effort.axes["way"]))


def _report(results: Results) -> dict[str, Any]:
    table = results.table()
    every = {way: table.select(way=way).trimmed() for way in table.values("way")}
    parts = {way: part for way, part in every.items() if part.errors.size}
    answers = {way: answer(part) for way, part in parts.items()}
    return {
        "headline": "; ".join(f"{way}: {_short(found)}" for way, found in answers.items()),
        "claims": (
            _same("Top-k attention needs as many heads as soft attention.", answers, "top-k, k = 2", SOFT),
            far_claim("A window of half the sequence retrieves at no head count.", parts, "window T / 2"),
            far_claim("Linear attention retrieves at no head count.", parts, "linear"),
            _same("In two layers causal order leaves the transition where it is.", answers, "causal, 2 layers", DEEP),
        ),
        "grids": (_grid(table, parts),),
        "charts": (ways_chart(table, parts),),
    }


def _same(statement: str, answers: dict[str, Answer], way: str, other: str) -> ClaimResult:
    return same_answer_claim(statement, answers, {way: way, other: other})


def far_claim(statement: str, parts: dict[str, ErrorTable], way: str) -> ClaimResult:
    """The best error of a way, over head counts and seeds, is far above that of soft attention."""
    best = {each: float(np.nanmin(parts[each].errors)) for each in (way, SOFT) if each in parts}
    if len(best) < 2:
        return ClaimResult(statement, Verdict.UNDECIDED, "not measured")
    evidence = f"best error {decimal(best[way])}, of soft attention {decimal(best[SOFT])}"
    if best[SOFT] > RETRIEVES:
        return ClaimResult(statement, Verdict.UNDECIDED, f"soft attention has not learned the task either: {evidence}")
    return ClaimResult(statement, decided(best[way] >= 10**TENFOLD * best[SOFT]), evidence)


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


def _effort(seeds: int, steps: int, heads: tuple[int, ...], ways: tuple[str, ...] = tuple(WAYS)) -> Effort:
    return Effort(lengths=(LENGTH,), seeds=seeds, steps=steps, axes={"heads": heads, "way": ways})


STUDY = Study(
    name="sparse",
    title="Windows, causal order, linear and top-k attention",
    asks="Which ways of reading need how many heads for the sum of four maxima, and which do not retrieve?",
    parts=_parts,
    report=_report,
    notes=(
        f"Length {LENGTH}, heads of 8 numbers, one draw of the a_i (number {TASK_SEED}). A way does not retrieve "
        f"where its best error over head counts is {10**TENFOLD:g} times that of soft attention or more. Causal "
        "order needs two layers: with one, only the class token asks, after all tokens. Hard attention gives "
        "scores no gradient: queries and keys stay as drawn.",
    ),
    efforts={
        Scale.SMOKE: _effort(2, 200, (3, 4), (SOFT, "top-k, k = 2", "linear", "window T / 2")),
        Scale.LAPTOP: _effort(3, 3000, (1, 2, 3, 4, 5, 6)),
        Scale.PAPER: _effort(8, 10_000, (1, 2, 3, 4, 5, 6)),
    },
)
