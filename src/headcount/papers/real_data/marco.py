"""Tables 6 and 7, Figures 2a, 2b and 5: the passage that answers a query, among hard candidates."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...answer import ERROR_RATE, ErrorTable
from ...answer.claim import ClaimResult, judged
from ...report.chart import Chart
from ..base import AbstractTask, Scale, StudyResults
from ..charts import WRONG_LABEL, chart_along
from ..claims.labels import first_fit_claim, length_costs_claim, levelling_claim, no_gain_claim, surface_claim
from ..fits import Surface, surface_fit
from . import passages
from .base import (
    SMALLEST,
    LabelledEffort,
    Means,
    accuracy_grid,
    accuracy_grids,
    error_charts,
    lines_by_length,
    means_of,
    nearness_claims,
    wrong_at_both_ends,
)
from .passages import LAYOUTS, PUBLISHED, TRANSITION, PassageEffort, PassageStudy

SMALL = 0.01
LEFT_OUT_OF_FIT = (1, 12, 14, 16)
PUBLISHED_DELTA, PUBLISHED_A = 0.25, -1.40


@dataclass(frozen=True, kw_only=True)
class MarcoEffort(PassageEffort):
    """How much is done with candidates as tokens; `pairs` says it for pairs, where an example costs far more."""

    pairs: PassageEffort


def effort_of(effort: MarcoEffort, task: AbstractTask) -> LabelledEffort:
    """How much is done in the layout of a task."""
    pairs = replace(effort.pairs, precision=effort.precision)
    return (pairs if passages.layout_of(task) == "pairs" else effort).for_examples(passages.training_queries(task))


def _trainings(effort: MarcoEffort, task: AbstractTask) -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    yield {"layout": passages.layout_of(task)}, effort_of(effort, task)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    grids, charts, claims, headlines = [], [], [], []
    for layout in LAYOUTS:
        part = results.experiment.part(layout=[layout])
        if not any(record.metrics for record in part.own(results.records)):
            continue
        means = means_of(part, results.records)
        training, validation = accuracy_grids(f"{layout}: ", means, PUBLISHED)
        ranks = accuracy_grid(f"{layout}: training MRR at the end, per cent", (means.fitted_mrr,), None)
        grids += [training, ranks, validation]
        charts += error_charts(means, PUBLISHED, f"{layout}-{{}}-error", f"{{}} error, {layout}")
        charts += _surface_charts(layout, means.training)
        claims += [
            replace(each, statement=f"With {_layout_words(layout)}: {each.statement[:1].lower()}{each.statement[1:]}")
            for each in (
                *judged(_rules, means, passages.PRINTED),
                *nearness_claims(means, PUBLISHED, whole=results.scale is Scale.PAPER),
            )
        ]
        left = wrong_at_both_ends(means.training, "of the training queries wrong")
        headlines.append(f"MS MARCO, {_layout_words(layout)}: {left}")
    return {
        "headline": headlines[0],
        "claims": tuple(claims),
        "grids": tuple(grids),
        "charts": tuple(charts),
        "metric": ERROR_RATE,
    }


def _layout_words(layout: str) -> str:
    return "candidates as tokens" if layout == "candidates" else "query-passage pairs"


def _rules(means: Means) -> tuple[ClaimResult, ...]:
    return (
        first_fit_claim(means.training, TRANSITION, SMALL),
        length_costs_claim(means.training, TRANSITION, means.training_margin),
        levelling_claim(means.training, TRANSITION),
        surface_claim(_surface(means.training), a=PUBLISHED_A, delta=PUBLISHED_DELTA),
        no_gain_claim(means.validation, means.validation_margin),
    )


def _surface(training: ErrorTable) -> Surface | None:
    """The published form of the training error, h = 1, 12, 14, 16 left out as published; None with too few cells."""
    kept = training.select(heads=[heads for heads in training.values("heads") if heads not in LEFT_OUT_OF_FIT])
    return surface_fit(kept.values("heads"), kept.values("length"), kept.errors)


def _surface_charts(layout: str, training: ErrorTable) -> list[Chart]:
    heads, fit = training.values("heads"), _surface(training)
    if fit is None:
        return []
    fitted = fit.at(np.array(heads, float)[:, None], np.array(training.values("length"), float))
    series = lines_by_length(np.maximum(training.errors, SMALLEST), training)
    series += lines_by_length(fitted, training, ", fitted", kind="fit")
    series = sorted(series, key=lambda line: line.place)
    title = f"Training error and its fitted surface, {layout}"
    caption = f"lines: c T^b exp(a h / T^delta), a = {fit.a:.2f}, b = {fit.b:.2f}, delta = {fit.delta:.2f}"
    return [chart_along("heads", heads, series, f"{layout}-surface", title, caption, WRONG_LABEL)]


EFFORTS: dict[Scale, MarcoEffort] = {
    Scale.SMOKE: MarcoEffort(
        lengths=(8, 16), heads=(1, 4), seeds=1, steps=300, batch=32, train_examples=1000, validation_examples=200,
        pairs=PassageEffort(
            lengths=(8,), heads=(1, 2), seeds=1, steps=30, batch=8, train_examples=100, validation_examples=50,
        ),
    ),
    Scale.LAPTOP: MarcoEffort(
        lengths=passages.LENGTHS, heads=(1, 2, 4), seeds=1, steps=800, batch=32,
        pairs=PassageEffort(
            lengths=(8,), heads=(1, 2, 4), seeds=1, steps=150, batch=16, train_examples=1000, validation_examples=200,
        ),
    ),
    Scale.PAPER: MarcoEffort(
        **passages.WHOLE, steps=6562, epochs=30, batch=128,
        pairs=PassageEffort(**passages.WHOLE, steps=8750, epochs=10, batch=32),
    ),
}  # fmt: skip
PAPER = EFFORTS[Scale.PAPER]
STUDY = PassageStudy(
    name="marco",
    title="Tables 6 and 7, Figures 2a, 2b and 5",
    asks="MS MARCO: how many heads find the one passage that answers a query among T hard candidates.",
    layouts=LAYOUTS,
    trainings=_trainings,
    report=_document_fields,
    notes=(
        *passages.OUR_CHOICES,
        f"{passages.OUR_TRAINING} At paper scale {PAPER.epochs} epochs in batches of {PAPER.batch} queries, for pairs "
        f"{PAPER.pairs.epochs} in batches of {PAPER.pairs.batch}.",
    ),
    published_claims=lambda: _rules(passages.PRINTED),
    options=("precision",),
    efforts=EFFORTS,
)
