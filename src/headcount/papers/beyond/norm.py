"""A layer norm before the readout: is the transition where it was?

The paper's model has no norm; its authors suspect that the bound survives one. The same task, models, data and seeds
are trained with and without a norm of the class token before the readout net.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ...answer import Answer, ErrorTable, answer, count_of_heads
from ...answer.bootstrap import MIN_SEEDS
from ...answer.claim import ClaimResult
from ...answer.signals import MIN_DROP
from ...report.chart import Chart, Series
from ...report.charts import error_chart
from ...report.document import Grid
from ..base import AbstractSpec, Part, Scale, Study, StudyEffort, StudyResults, effort_over, parts_along
from ..charts import chart_along, grid_of
from ..claims.heads import TENFOLD, same_answer_claim, transition_claim
from ..claims.judge import Case, Cases, claims_that, folds, judge, log_ratios, within
from ..head_count.tables import ALL_LENGTHS, OUR_CHOICES, class_token, paper_task

INTRINSIC_DIM = 4
HEADS = (1, 2, 3, 4, 5, 6)
NORMS = {"none": "without a norm", "layer": "with a norm"}
"""The values of the axis "norm", and their names."""


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    def class_token_model(heads: int, norm: str) -> AbstractSpec:
        return class_token(heads, head_dim=8, hidden=32, final_norm=norm == "layer")

    yield Part(task=paper_task, model=class_token_model, axes=effort.over(heads=HEADS, norm=tuple(NORMS)))


def _document_fields(results: StudyResults) -> dict[str, Any]:
    halves = {NORMS[norm]: half for norm, half in parts_along(results.table(), "norm").items()}
    answers = {words: answer(half) for words, half in halves.items()}
    charts = []
    for norm, words in NORMS.items():
        if words in halves:
            about = {"name": f"error-against-heads-{norm}", "title": f"Error against heads, {words}"}
            charts.append(replace(error_chart(halves[words], answers[words]), **about))
    both = "; ".join(f"{words}, {found.sentence}" for words, found in answers.items()) or "no model has finished"
    return {
        "headline": f"The sum of four maxima: {both}",
        "claims": (
            *(_transition_claim(halves, answers, words) for words in NORMS.values()),
            same_answer_claim("A norm before the readout does not move the transition.", answers, *NORMS.values()),
            *(_drop_claim(halves.get(words), words.capitalize()) for words in NORMS.values()),
            _cost_claim(*map(halves.get, NORMS.values())),
        ),
        "grids": (_norm_grid(halves),) if halves else (),
        "charts": (*_comparison(halves), *charts),
    }


def _transition_claim(halves: dict[str, ErrorTable], answers: dict[str, Answer], words: str) -> ClaimResult:
    statement = f"{words.capitalize()} the transition is at h = D = {INTRINSIC_DIM} heads."
    if words not in halves:
        return judge(statement, [], "no such model has finished")
    judged = transition_claim(halves[words], answers[words], INTRINSIC_DIM, statement)
    return replace(judged, evidence=answers[words].sentence)  # nothing is published of a norm


@claims_that(
    f"{{which}} the error falls sharply from {INTRINSIC_DIM - 1} to {INTRINSIC_DIM} heads.",
    f"no length has {MIN_SEEDS} finished seeds at both {INTRINSIC_DIM - 1} and {INTRINSIC_DIM} heads",
)
def _drop_claim(half: ErrorTable | None, which: str) -> Cases:
    ratio = log_ratios(half, INTRINSIC_DIM - 1, half, INTRINSIC_DIM)
    if ratio is not None:
        words = f"{folds(ratio)} (geometric mean over lengths; best of seeds)"
        yield Case(words, ratio.low >= MIN_DROP, ratio.high < MIN_DROP)


@claims_that(
    "At every head count the error with a norm is within tenfold of that without.",
    f"no head count has {MIN_SEEDS} seeds with and without a norm",
)
def _cost_claim(without: ErrorTable | None, with_norm: ErrorTable | None) -> Cases:
    ratios = {heads: log_ratios(with_norm, heads, without, heads) for heads in HEADS}
    known = {heads: ratio for heads, ratio in ratios.items() if ratio is not None}
    yield "with over without, best of seeds: "
    for heads, ratio in known.items():
        yield within(f"h = {heads} {folds(ratio)}", ratio, -TENFOLD, TENFOLD)
    yield Case("", len(known) > 1, differs=False)  # one head count is not every one


def _norm_grid(halves: dict[str, ErrorTable]) -> Grid:
    rows, lengths = [], {length for half in halves.values() for length in half.values("length")}
    for length, (norm, half) in itertools.product(sorted(lengths), halves.items()):
        best, median = half.reduced("seed"), half.reduced("seed", "median")
        cells = [(best.at(heads=heads, length=length), median.at(heads=heads, length=length)) for heads in HEADS]
        words = (f"{low:.1e} ({middle:.1e})" if np.isfinite(low) else "-" for low, middle in cells)
        rows.append((f"{length} tokens, {norm}", *words))
    return grid_of("smallest (median) NMSE over seeds", ("", *map(count_of_heads, HEADS)), rows)


def _comparison(halves: dict[str, ErrorTable]) -> tuple[Chart, ...]:
    """Both halves in one chart, at the longest length that both have."""
    shared = [length for length in ALL_LENGTHS if all(length in half.values("length") for half in halves.values())]
    if len(halves) < len(NORMS) or not shared:
        return ()
    series = []
    for place, (norm, half) in enumerate(halves.items()):
        errors = half.select(length=shared[-1]).ordered("heads", "seed")
        points = tuple(
            (heads, float(error))
            for heads, row in zip(errors.values("heads"), errors.errors, strict=True)
            for error in row[np.isfinite(row)]
        )
        series.append(Series(norm, errors.values("heads"), tuple(errors.best), place=place, points=points))
    title, caption = f"Error with and without a norm, {shared[-1]} tokens", "line: best of seeds; points: every seed"
    log_y = not any(value == 0 for each in series for _, value in each.points)
    return (chart_along("heads", HEADS, series, "norm-or-none", title, caption, log_y=log_y),)


STUDY = Study(
    name="norm",
    title="A norm before the readout",
    asks="Is the transition of the sum of four maxima at four heads with a layer norm before the readout too?",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        "Both halves have the same task, data, seeds, training and number of parameters: the norm has neither gain nor "
        "shift. Its floor of 1e-5 is added to the variance.",
        "At one head of 8 numbers the norm leaves 7 of them: it does not see the mean of the class token, and its "
        "length only through the floor.",
        *OUR_CHOICES,
    ),
    efforts={
        Scale.SMOKE: effort_over((8,), 2, 4000),
        Scale.LAPTOP: effort_over((8, 16), 4, 6000),
        Scale.PAPER: effort_over(ALL_LENGTHS, 10, 20_000),
    },
)
