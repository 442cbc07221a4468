"""Other ways of reading than soft attention: where is the transition, and which do not retrieve at all? D = 4.

A window hides tokens that may hold a maximum; linear attention cannot put its weight on one token; top-k attention and
causal order take nothing away that retrieval needs.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...answer import Answer, ErrorTable, answer
from ...answer.claim import ClaimResult
from ...answer.words import decimal
from ...report.chart import Series
from ...report.charts import judged_by
from ..base import AbstractSpec, Part, Scale, Study, StudyEffort, StudyResults, effort_over, parts_along
from ..charts import chart_along, grid_of
from ..claims.heads import TENFOLD, same_answer_claim
from ..claims.judge import exactly, judge
from ..head_count.tables import TASK_SEED, class_token, paper_task

LENGTH, HEADS = 8, (1, 2, 3, 4, 5, 6)
SOFT, DEEP, TOP_K, CAUSAL = "soft", "soft, 2 layers", "top-k, k = 2", "causal, 2 layers"
WAYS: dict[str, dict[str, Any]] = {
    SOFT: {},
    TOP_K: {"attention": "top-k", "top_k": 2},
    "hard": {"attention": "hard"},
    "linear": {"attention": "linear"},
    "window T / 2": {"window": LENGTH // 2},
    DEEP: {"layers": 2},
    CAUSAL: {"layers": 2, "causal": True},
}
RETRIEVES = 0.01
"""Soft attention has learned the task where its best error is below this."""


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    def class_token_model(heads: int, way: str) -> AbstractSpec:
        return class_token(heads, **WAYS[way])

    yield Part(
        task=paper_task, model=class_token_model, axes=effort.over(heads=effort.axes["heads"], way=effort.axes["way"])
    )


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table()
    parts = parts_along(table, "way")
    answers = {way: answer(part) for way, part in parts.items()}
    best = {way: part.reduced("seed").reduced("length", "worst") for way, part in parts.items()}
    heads = table.values("heads")
    rows = [(way, *(decimal(part.at(heads=count)) for count in heads)) for way, part in best.items()]
    series = enumerate(best.items())
    lines = [Series(way, part.values("heads"), tuple(part.errors), place=place) for place, (way, part) in series]
    title = "Error against heads, by way of reading"
    return {
        "headline": "; ".join(f"{way}: {_short(found)}" for way, found in answers.items()),
        "claims": (
            same_answer_claim("Top-k attention needs as many heads as soft attention.", answers, TOP_K, SOFT),
            far_claim("A window of half the sequence retrieves at no head count.", parts, "window T / 2"),
            far_claim("Linear attention retrieves at no head count.", parts, "linear"),
            same_answer_claim("In two layers causal order leaves the transition where it is.", answers, CAUSAL, DEEP),
        ),
        "grids": (grid_of("smallest error over seeds", ("", *(f"h = {count}" for count in heads)), rows),),
        "charts": (chart_along("heads", heads, lines, "error-by-way", title, judged_by(table)),),
    }


def far_claim(statement: str, parts: dict[str, ErrorTable], way: str) -> ClaimResult:
    """The best error of a way, over head counts and seeds, is far above that of soft attention."""
    best = {each: float(np.nanmin(parts[each].errors)) for each in (way, SOFT) if each in parts}
    if len(best) < 2:
        return judge(statement, [], "not measured")
    words = f"best error {decimal(best[way])}, of soft attention {decimal(best[SOFT])}"
    cases = [exactly(words, best[way] >= 10**TENFOLD * best[SOFT])] if best[SOFT] <= RETRIEVES else []
    return judge(statement, cases, f"soft attention has not learned the task either: {words}")


def _short(found: Answer) -> str:
    return found.sentence if found.kind == "needs" else "no transition" if found.kind == "none" else "a floor"


STUDY = Study(
    name="sparse",
    title="Windows, causal order, linear and top-k attention",
    asks="Which ways of reading need how many heads for the sum of four maxima, and which do not retrieve?",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        f"Length {LENGTH}, heads of 8 numbers, one draw of the a_i (number {TASK_SEED}). A way does not retrieve "
        f"where its best error over head counts is {10**TENFOLD:g} times that of soft attention or more. Causal "
        "order needs two layers: with one, only the class token asks, after all tokens. Hard attention gives "
        "scores no gradient: queries and keys stay as drawn.",
    ),
    efforts={
        Scale.SMOKE: effort_over((LENGTH,), 2, 200, heads=(3, 4), way=(SOFT, TOP_K, "linear", "window T / 2")),
        Scale.LAPTOP: effort_over((LENGTH,), 3, 3000, heads=HEADS, way=tuple(WAYS)),
        Scale.PAPER: effort_over((LENGTH,), 8, 10_000, heads=HEADS, way=tuple(WAYS)),
    },
)
