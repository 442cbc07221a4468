"""Tables 8 and 9 by how places in the frame are drawn, which is not published: once, or each time an image is shown."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ...answer import ERROR_RATE, ErrorTable, count_of_heads
from ...report.chart import Chart, Series
from ..base import AbstractTask, Scale, StudyResults
from ..claims.judge import Cases, claims_that
from ..claims.labels import beyond_margin
from . import cifar
from .base import LabelledEffort, Means, Published, accuracy_grids, error_charts, means_of, nearness_claims
from .cifar import FIXED

ONCE, EACH_TIME = "once", "each time"


def _trainings(effort: LabelledEffort, task: AbstractTask) -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    """How places are drawn is an axis of the experiment. In the smallest frame there is only one place."""
    training = cifar.effort_of(effort, task)
    if getattr(task, "fixed_places", task.name == FIXED):
        yield {"places": ONCE}, replace(training, lengths=training.lengths[1:])
    else:
        yield {"places": EACH_TIME}, training


def gains(table: ErrorTable) -> dict[tuple[int, int], float]:
    """By heads and length, how much more is right with a place drawn once, where both kinds are there."""
    if not {ONCE, EACH_TIME} <= set(table.values("places")):
        return {}
    once, each_time = (table.select(places=places).ordered("heads", "length") for places in (ONCE, EACH_TIME))
    apart = replace(once, errors=each_time.errors - once.errors)
    return {(at["heads"], at["length"]): gain for at, gain in apart.cells() if np.isfinite(gain)}


def _gained(table: ErrorTable, margin: float, sign: int) -> Cases:
    """Whether the most heads get more right, or less where the sign is negative."""
    gained = gains(table)
    most = max((heads for heads, _ in gained), default=1)
    yield f"points more with a place drawn once, {count_of_heads(most)}: "
    for (heads, length), gain in gained.items():
        if heads == most:
            yield beyond_margin(f"T = {length} {100 * gain:+.1f}", sign * gain, margin)
    yield BY_CHANCE.format(100 * margin)


BY_CHANCE = "; by chance up to {:.1f}"
ONE_KIND = "no model was trained with places of both kinds"


@claims_that(
    "With a place drawn once, the most heads get more of the training set right than with a new one each time.",
    ONE_KIND,
)
def fitted_more_claim(training: ErrorTable, margin: float) -> Cases:
    yield from _gained(training, margin, 1)


@claims_that(
    "With a place drawn once, the most heads get less of the validation set right than with a new one each time.",
    ONE_KIND,
)
def answered_less_claim(validation: ErrorTable, margin: float) -> Cases:
    yield from _gained(validation, margin, -1)


@claims_that(
    "With a place drawn once, a larger frame lowers validation accuracy at the most heads, as in Table 9.",
    "it takes the smallest frame, and larger ones with places drawn once",
)
def frame_claim(validation: ErrorTable, margin: float) -> Cases:
    """Larger frames do to validation as published. In the frame with one place nothing is drawn."""
    smallest, *larger = validation.values("length")
    heads = validation.values("heads")[-1]

    def wrong(places: str, length: int, heads: int = heads) -> float:
        return validation.at(places=places, heads=heads, length=length)

    one_place = all(np.isnan(wrong(ONCE, smallest, count)) for count in validation.values("heads"))
    if not one_place or np.isnan(wrong(EACH_TIME, smallest)):
        return
    yield f"{count_of_heads(heads)}, points more than at T = {smallest}: "
    for length in larger:
        cost, gain = (
            wrong(ONCE, length) - wrong(EACH_TIME, smallest),
            wrong(EACH_TIME, smallest) - wrong(EACH_TIME, length),
        )
        also = f", each time {100 * gain:+.1f}" if np.isfinite(gain) else ""
        if np.isfinite(cost):
            yield beyond_margin(f"T = {length} once {-100 * cost:+.1f}{also}", cost, margin)
    yield BY_CHANCE.format(100 * margin)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    means = means_of(results.experiment, results.records, "places", printed=cifar.printed)
    published = cifar.published_for(results.experiment)
    kinds = {
        places: means.of_tables(lambda table, places=places: table.select(places=places).trimmed())
        for places in means.training.values("places")
    }
    nearness = (
        nearness_claims(kind, published, whole=results.scale is Scale.PAPER, of=f" (places drawn {places})")
        for places, kind in kinds.items()
    )
    return {
        "headline": _places_headline(means),
        "claims": (
            fitted_more_claim(means.training, means.training_margin),
            answered_less_claim(means.validation, means.validation_margin),
            frame_claim(means.validation, means.validation_margin),
            *itertools.chain(*nearness),
        ),
        "grids": tuple(
            grid
            for places, kind in kinds.items()
            for grid in accuracy_grids(f"places drawn {places}: ", kind, published)
        ),
        "charts": _places_charts(kinds, published),
        "metric": ERROR_RATE,
    }


def _places_headline(means: Means) -> str:
    training, validation = gains(means.training), gains(means.validation)
    if not training:
        return "No frame was learned with places of both kinds yet"
    heads, length = max(training)
    return (
        f"A place drawn once instead of each time: {100 * training[heads, length]:+.1f} points of training and "
        f"{100 * validation[heads, length]:+.1f} of validation accuracy with {count_of_heads(heads)} at T = {length}"
    )


def _places_charts(kinds: dict[str, Means], published: Published) -> tuple[Chart, ...]:
    drawn = [error_charts(kind, published, "{}-error", "{} error against heads") for kind in kinds.values()]
    return tuple(_joined(dict(zip(kinds, charts, strict=True))) for charts in zip(*drawn, strict=True))


def _joined(charts: dict[str, Chart]) -> Chart:
    """A line per length and kind of places, the published ones dashed, once per length."""
    lines: dict[str, Series] = {}
    for places, chart in charts.items():
        lines |= {f"{each.name}, {places}": each for each in chart.series if each.kind == "measured"}
    for chart in charts.values():
        lines |= {each.name: each for each in chart.series if each.kind == "published"}
    series = tuple(replace(each, name=name, place=place) for place, (name, each) in enumerate(lines.items()))
    first, heads = next(iter(charts.values())), max((chart.x_ticks for chart in charts.values()), key=len)
    return replace(first, x_ticks=heads, series=series)


STUDY = replace(
    cifar.STUDY,
    name="cifar-places",
    title="Tables 8 and 9 by how places are drawn",
    asks="CIFAR-10 as in Tables 8 and 9: does it matter whether a place in the frame is drawn once, or each time?",
    fixed_places=(False, True),
    trainings=_trainings,
    report=_document_fields,
    notes=cifar.choices(
        f"Places are drawn {EACH_TIME} that an image is shown, in validation always the same one, or {ONCE} per image. "
        "In the smallest frame there is only one place, and nothing is drawn."
    ),
    published_claims=tuple,
)
