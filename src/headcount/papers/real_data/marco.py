"""Tables 6 and 7, Figures 2a, 2b and 5: the passage that answers a query, among hard candidates."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...answer import ERROR_RATE, ErrorTable, Surface, surface_fit
from ...answer.claim import ClaimResult, judged
from ...errors import InputError
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Results, Scale
from ..claims.labels import (
    first_fit_claim,
    length_costs_claim,
    levelling_claim,
    nearness_claim,
    no_gain_claim,
    surface_claim,
)
from .base import (
    SMALLEST,
    LabelledEffort,
    Means,
    accuracy_grid,
    changes_of,
    error_chart,
    margin_of,
    means_of,
    wrong_at_both_ends,
)
from .passages import (
    DECAY,
    HEADS,
    LAYOUTS,
    LENGTHS,
    OUR_CHOICES,
    OUR_TRAINING,
    TRAINED,
    TRAINING,
    TRANSITION,
    VALIDATED,
    VALIDATION,
    PassageStudy,
    layout_of,
    training_queries,
)

if TYPE_CHECKING:
    from ...tasks import AbstractTask

SMALL = 0.01
LEFT_OUT_OF_FIT = (1, 12, 14, 16)
PUBLISHED_DELTA, PUBLISHED_A = 0.25, -1.40


@dataclass(frozen=True, kw_only=True)
class MarcoEffort(LabelledEffort):
    """How much is done with candidates as tokens; `pairs` says it for pairs, where an example costs far more."""

    pairs: LabelledEffort


def effort_of(effort: MarcoEffort, task: "AbstractTask") -> LabelledEffort:
    """How much is done in the layout of a task."""
    pairs = replace(effort.pairs, precision=effort.precision)
    return (pairs if layout_of(task) == "pairs" else effort).of(training_queries(task))


def _trainings(effort: MarcoEffort, task: "AbstractTask") -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    yield {"layout": layout_of(task)}, effort_of(effort, task)


def _report(results: Results) -> dict[str, Any]:
    grids, charts, claims, headlines = [], [], [], []
    for layout in LAYOUTS:
        part = results.experiment.part(layout=[layout])
        if not any(record.metrics for record in part.own(results.records)):
            continue
        means = means_of(part, results.records)
        fit = _surface(means.training)
        grids += _grids(layout, means)
        charts += _charts(layout, means, fit)
        claims += _claims(layout, means, fit, whole=results.scale is Scale.PAPER)
        left = wrong_at_both_ends(means.training, "of the training queries wrong")
        headlines.append(f"MS MARCO, {_words(layout)}: {left}")
    return {
        "headline": headlines[0],
        "claims": tuple(claims),
        "grids": tuple(grids),
        "charts": tuple(charts),
        "metric": ERROR_RATE,
    }


def _words(layout: str) -> str:
    return "candidates as tokens" if layout == "candidates" else "query-passage pairs"


def _grids(layout: str, means: Means) -> list[Grid]:
    return [
        accuracy_grid(
            f"{layout}: training accuracy, per cent: while training / at the end (Table 6)",
            (means.training, means.fitted),
            TRAINING,
        ),
        accuracy_grid(f"{layout}: training MRR at the end, per cent", (means.fitted_mrr,), None),
        accuracy_grid(f"{layout}: validation accuracy, per cent (Table 7)", (means.validation,), VALIDATION),
    ]


def _charts(layout: str, means: Means, fit: Surface | None) -> list[Chart]:
    surface = [] if fit is None else [_surface_chart(layout, means.training, fit)]
    return [
        error_chart(f"{layout}-training-error", f"Training error, {layout}", means.training, TRAINING, means.seeds),
        error_chart(
            f"{layout}-validation-error", f"Validation error, {layout}", means.validation, VALIDATION, means.seeds
        ),
        *surface,
    ]


def _claims(layout: str, means: Means, fit: Surface | None, *, whole: bool) -> list[ClaimResult]:
    claims = (
        *judged(_rules, _judged(means, fit), _printed()),
        nearness_claim("training", means.training, TRAINING, whole=whole),
        nearness_claim("validation", means.validation, VALIDATION, whole=whole),
    )
    return [
        replace(each, statement=f"With {_words(layout)}: {each.statement[:1].lower()}{each.statement[1:]}")
        for each in claims
    ]


class _Judged(NamedTuple):
    """The tables that the claims are about, the margins within which two shares are equal, and the fitted surface."""

    training: ErrorTable
    validation: ErrorTable
    training_margin: float
    validation_margin: float
    fit: Surface | None


def _judged(means: Means, fit: Surface | None) -> _Judged:
    return _Judged(means.training, means.validation, means.training_margin, means.validation_margin, fit)


def _printed() -> _Judged:
    """Tables 6 and 7; their shares are taken as counted once on all queries."""
    return _Judged(TRAINING, VALIDATION, margin_of(TRAINED), margin_of(VALIDATED), _surface(TRAINING))


def _rules(of: _Judged) -> tuple[ClaimResult, ...]:
    return (
        first_fit_claim(of.training, TRANSITION, SMALL),
        length_costs_claim(of.training, TRANSITION, of.training_margin),
        levelling_claim(of.training, TRANSITION),
        surface_claim(of.fit, a=PUBLISHED_A, delta=PUBLISHED_DELTA),
        no_gain_claim(of.validation, of.validation_margin),
    )


def _surface(training: ErrorTable) -> Surface | None:
    """The published form of the training error, h = 1, 12, 14, 16 left out as published; None with too few cells."""
    kept = training.select(heads=[heads for heads in training.values("heads") if heads not in LEFT_OUT_OF_FIT])
    try:
        # A cell without errors has no logarithm and is left out by the fit.
        return surface_fit(kept.values("heads"), kept.values("length"), kept.errors)
    except InputError:
        return None


def _surface_chart(layout: str, training: ErrorTable, fit: Surface) -> Chart:
    heads = training.values("heads")
    series = []
    for j, length in enumerate(training.values("length")):
        points = tuple(np.maximum(training.errors[:, j], SMALLEST))
        line = tuple(float(value) for value in fit.at(np.array(heads, float), np.array(length, float)))
        series.append(Series(f"T = {length}", heads, points, place=j))
        series.append(Series(f"T = {length}, fitted", heads, line, place=j, kind="fit"))
    return Chart(
        name=f"{layout}-surface",
        title=f"Training error and its fitted surface, {layout}",
        x_label="attention heads",
        y_label="share of wrong answers",
        x_ticks=heads,
        series=tuple(series),
        caption=f"lines: c T^b exp(a h / T^delta), a = {fit.a:.2f}, b = {fit.b:.2f}, delta = {fit.delta:.2f}",
    )


EFFORTS: dict[Scale, MarcoEffort] = {
    Scale.SMOKE: MarcoEffort(
        lengths=(8, 16), heads=(1, 4), seeds=1, steps=300, batch=32, train_examples=1000, validation_examples=200,
        weight_decay=DECAY,
        pairs=LabelledEffort(
            lengths=(8,), heads=(1, 2), seeds=1, steps=30, batch=8, train_examples=100, validation_examples=50,
            weight_decay=DECAY,
        ),
    ),
    Scale.LAPTOP: MarcoEffort(
        lengths=LENGTHS, heads=(1, 2, 4), seeds=1, steps=800, batch=32, train_examples=TRAINED,
        validation_examples=VALIDATED, weight_decay=DECAY,
        pairs=LabelledEffort(
            lengths=(8,), heads=(1, 2, 4), seeds=1, steps=150, batch=16, train_examples=1000,
            validation_examples=200, weight_decay=DECAY,
        ),
    ),
    Scale.PAPER: MarcoEffort(
        lengths=LENGTHS, heads=HEADS, seeds=5, steps=6562, epochs=30, batch=128,
        train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY, precision="bfloat16",
        pairs=LabelledEffort(
            lengths=LENGTHS, heads=HEADS, seeds=5, steps=8750, epochs=10, batch=32,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY, precision="bfloat16",
        ),
    ),
}  # fmt: skip
PAPER = EFFORTS[Scale.PAPER]
STUDY = PassageStudy(
    name="marco",
    title="Tables 6 and 7, Figures 2a, 2b and 5",
    asks="MS MARCO: how many heads find the one passage that answers a query among T hard candidates.",
    layouts=LAYOUTS,
    trainings=_trainings,
    report=_report,
    notes=(
        *OUR_CHOICES,
        f"{OUR_TRAINING} At paper scale {PAPER.epochs} epochs in batches of {PAPER.batch} queries, for pairs "
        f"{PAPER.pairs.epochs} in batches of {PAPER.pairs.batch}.",
    ),
    published_claims=lambda: _rules(_printed()),
    changes=changes_of,
    options=("precision",),
    efforts=EFFORTS,
)
