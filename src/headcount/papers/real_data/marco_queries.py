"""Tables 6 and 7 against the number of training queries: what would the published 28,000 give?"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...answer import ERROR_RATE, ErrorTable, count_of_heads
from ...answer.bootstrap import COVERAGE
from ...answer.claim import ClaimResult
from ...answer.metric import FINAL_ERROR, TRAIN_ERROR
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import AbstractTask, Scale, StudyResults
from ..charts import WRONG_LABEL, chart_along, grid_of, line_of
from ..claims.judge import Case, Cases, claims_that, estimate_words, exactly, in_points, judge, within
from ..claims.labels import NEAR, POINTS
from ..fits import Estimate, LearningCurve, learning_curve
from . import passages
from .base import SMALLEST, LabelledEffort, percent
from .passages import TRAINED, TRAINING, PassageEffort, PassageStudy

Place = tuple[int, int]
"""Heads and length."""
METRICS = {"training": (TRAIN_ERROR, TRAINING, 6), "validation": (FINAL_ERROR, passages.VALIDATION, 7)}
"""By name, what is judged: the metric, the published table, and its number."""


def learning_curves(table: ErrorTable) -> dict[Place, LearningCurve]:
    ours = table.ordered("heads", "length", "queries", "seed")
    curves = {
        (heads, length): learning_curve(ours.values("queries"), ours.errors[i, j])
        for i, heads in enumerate(ours.values("heads"))
        for j, length in enumerate(ours.values("length"))
    }
    return {place: curve for place, curve in curves.items() if curve is not None}


def would_be_claim(
    what: str, curves: Mapping[Place, LearningCurve], published: ErrorTable, *, whole: bool
) -> ClaimResult:
    """With the published number of queries the published accuracies: judged by whether intervals lie near them.

    It differs where more of them lie apart than would by chance.
    """
    cases = []
    for (heads, length), curve in curves.items():
        printed, would = published.at(heads=heads, length=length), curve.at(TRAINED)
        if np.isfinite(printed):
            right = Estimate(*(100 * (1 - wrong) for wrong in reversed(would)))
            words = f"{count_of_heads(heads)}, T = {length} {estimate_words(right, '.1f')} ({100 * (1 - printed):.1f})"
            cases.append(within(words, would, printed - NEAR, printed + NEAR))
    near, apart = (sum(found) for found in ([case.holds for case in cases], [case.differs for case in cases]))
    counted = f"near in {near}, not near in {apart} of {len(cases)} cells; per cent [90 % interval] (published): "
    statement = f"With {TRAINED:,} queries every {what} accuracy would be within {POINTS} of the published one."
    missing = "no published cell was measured with three numbers of queries"
    return judge(statement, [counted, *_refuted_beyond_chance(cases)], missing, whole=whole)


def _refuted_beyond_chance(cases: Sequence[Case]) -> list[Case]:
    """The cases, refuting where more do than intervals that each miss one time in ten: by two deviations of that."""
    count = len(cases)
    chance = count * (1 - COVERAGE) + 2 * (count * COVERAGE * (1 - COVERAGE)) ** 0.5
    refuted = sum(case.differs for case in cases) > chance
    return [case._replace(differs=refuted) for case in cases]


@claims_that(
    f"Curves through fewer queries give every {{what}} accuracy with the most, within {POINTS}.",
    "it takes four numbers of queries",
)
def foretold_claim(what: str, table: ErrorTable) -> Cases:
    *fewer, most = table.values("queries")
    measured = table.select(queries=most).reduced("seed", "mean")
    missed = np.array(
        [
            curve.at(most).value - measured.at(heads=heads, length=length)
            for (heads, length), curve in learning_curves(table.select(queries=fewer)).items()
        ]
    )
    missed = missed[np.isfinite(missed)]
    if missed.size:
        near = int(np.sum(np.abs(missed) <= NEAR))
        gap = f"measured with {most:,} queries less foretold from up to {max(fewer):,}: {in_points(missed)}"
        yield exactly(f"{near} of {missed.size} cells; {gap}", near == missed.size)


@claims_that(
    "Below {transition} heads training accuracy falls as queries are added.",
    "no such head count was measured with three numbers of queries",
)
def costs_claim(curves: Mapping[Place, LearningCurve], transition: int) -> Cases:
    yield "log-odds of a wrong answer per e-fold of queries [90 % interval]: "
    yield from _refuted_beyond_chance(
        [
            Case(
                f"{count_of_heads(heads)}, T = {length} {estimate_words(curve.line.slopes, '+.2f')}",
                curve.line.slopes.low > 0,
                curve.line.slopes.high < 0,
            )
            for (heads, length), curve in curves.items()
            if heads < transition
        ]
    )


def queries_headline(curves: dict[Place, LearningCurve]) -> str:
    """Of the fewest heads and the shortest lists that were published too."""
    published = [(heads, length) for heads, length in curves if np.isfinite(TRAINING.at(heads=heads, length=length))]
    if not published:
        return "Too few numbers of queries finished for a learning curve"
    heads, length = published[0]
    low, value, high = curves[heads, length].at(TRAINED)
    return (
        f"{TRAINED:,} queries would give {count_of_heads(heads)} {100 * (1 - value):.0f} % [{100 * (1 - high):.0f}, "
        f"{100 * (1 - low):.0f}] of the training queries at T = {length}; published "
        f"{100 * (1 - TRAINING.at(heads=heads, length=length)):.0f} %"
    )


def queries_grid(what: str, table: ErrorTable, curves: dict[Place, LearningCurve]) -> Grid:
    """Accuracies by heads and length, a column per number of queries, then the extrapolated and the published one."""
    metric, published, number = METRICS[what]
    means, rows = table.reduced("seed", "mean"), []
    for heads, length in itertools.product(table.values("heads"), table.values("length")):
        place = {"heads": heads, "length": length}
        ours = (percent(means.at(queries=queries, **place), metric) for queries in table.values("queries"))
        would, curve = "-", curves.get((heads, length))
        if curve is not None:
            low, value, high = (percent(share, metric) for share in curve.at(TRAINED))
            would = f"{value} [{high}, {low}]"
        rows.append((f"{count_of_heads(heads)}, T = {length}", *ours, would, percent(published.at(**place), metric)))
    counts = (f"{queries:,}" for queries in table.values("queries"))
    title = f"{what} accuracy, per cent, by training queries (Table {number})"
    return grid_of(title, ("", *counts, f"{TRAINED:,} would be", "published"), rows)


def queries_chart(what: str, table: ErrorTable, curves: dict[Place, LearningCurve], length: int) -> Chart:
    """Share of wrong answers against queries, a line per head count, its curve thin, the published share a point."""
    queries, published = table.values("queries"), METRICS[what][1]
    means = table.select(length=length).reduced("seed", "mean")
    ticks = tuple(sorted({*queries, TRAINED}))
    series = []
    for place, heads in enumerate(table.values("heads")):
        name = count_of_heads(heads)
        series.append(
            line_of(name, {count: max(means.at(queries=count, heads=heads), SMALLEST) for count in queries}, place)
        )
        if (heads, length) in curves:
            low, value, high = zip(*(curves[heads, length].at(count) for count in ticks), strict=True)
            series.append(Series(f"{name}, fitted", ticks, value, place=place, kind="fit", low=low, high=high))
        printed = published.at(heads=heads, length=length)
        if np.isfinite(printed):
            series.append(line_of(f"{name}, published", {TRAINED: max(printed, SMALLEST)}, place, "published"))
    name, title = f"queries-{what}-{length}", f"{what.capitalize()} error against training queries, T = {length}"
    caption = "mean over seeds; lines: fitted log-odds, with 90 % intervals; hollow: published"
    return chart_along("queries", ticks, series, name, title, caption, WRONG_LABEL, spread="interval")


def efforts_by_queries(effort: LabelledEffort, queries: int) -> dict[int, LabelledEffort]:
    """The training by number of queries, of those that are there; those asked for beyond are all of them.

    `batch` is that of the published number of queries. Fewer have a smaller one, so that all have equally many steps:
    with one batch for all, fewer queries would be fewer steps, and a learning curve one of the steps.
    """
    most = min(queries, effort.train_examples)
    counts = sorted({min(count, most) for count in effort.axes["queries"]})
    # All queries are asked for as elsewhere, so that studies in one folder share these models.
    return {
        count: replace(
            effort,
            batch=max(1, round(effort.batch * count / TRAINED)),
            train_examples=effort.train_examples if count == most else count,
        ).for_examples(count)
        for count in counts
    }


def _trainings(effort: LabelledEffort, task: AbstractTask) -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    for queries, training in efforts_by_queries(effort, passages.training_queries(task)).items():
        yield {"queries": queries}, training


def _document_fields(results: StudyResults) -> dict[str, Any]:
    whole = results.scale is not Scale.SMOKE
    tables = {
        what: results.table(metric).ordered("queries", "heads", "length", "seed")
        for what, (metric, _, _) in METRICS.items()
    }
    curves = {what: learning_curves(table) for what, table in tables.items()}
    return {
        "headline": queries_headline(curves["training"]),
        "claims": (
            *(
                would_be_claim(what, curves[what], published, whole=whole)
                for what, (_, published, _) in METRICS.items()
            ),
            costs_claim(curves["training"], passages.TRANSITION),
            *(foretold_claim(what, table) for what, table in tables.items()),
        ),
        "grids": tuple(queries_grid(what, table, curves[what]) for what, table in tables.items()),
        "charts": tuple(
            queries_chart(what, table, curves[what], length)
            for what, table in tables.items()
            for length in table.values("length")
        ),
        "metric": ERROR_RATE,
    }


SHARES = tuple(TRAINED // part for part in (40, 20, 10, 5, 2, 1))
"""700, 1,400, 2,800, 5,600, 14,000 and 28,000. MS MARCO's dev-small has 5,584, which replace the last three."""
STUDY = PassageStudy(
    name="marco-queries",
    title="Tables 6 and 7 by number of training queries",
    asks="MS MARCO: how does accuracy depend on the number of training queries, and what would 28,000 give?",
    trainings=_trainings,
    report=_document_fields,
    notes=(
        f"{passages.OUR_TRAINING} Every number of queries is trained on for equally many epochs and about as many "
        f"steps: the batch grows with the queries, up to {TRAINED:,}. Smaller sets of queries are parts of the larger, "
        "and the same for all seeds: intervals do not cover the draw of the queries. Validation queries are the same "
        "throughout.",
        f"What {TRAINED:,} queries would give is read off a line through the log-odds of wrong answers against the "
        "logarithm of the number of queries. Its 90 % interval covers the scatter of the means around the line, or "
        "of the seeds where that is larger, and the line's own error. It does not cover a curve that bends beyond "
        "what was measured.",
        *passages.OUR_CHOICES,
    ),
    options=("precision",),
    efforts={
        Scale.SMOKE: PassageEffort(
            lengths=(8,), heads=(1, 4), seeds=1, steps=125, epochs=4, axes={"queries": (250, 500, 1000)}, batch=896,
            train_examples=1000, validation_examples=200,
        ),
        Scale.LAPTOP: PassageEffort(
            lengths=(8, 16), heads=(1, 2, 4, 8), seeds=2, steps=350, epochs=8, axes={"queries": SHARES[:4]}, batch=640,
        ),
        Scale.PAPER: PassageEffort(**passages.WHOLE, steps=1312, epochs=30, axes={"queries": SHARES}, batch=640),
    },
)  # fmt: skip
