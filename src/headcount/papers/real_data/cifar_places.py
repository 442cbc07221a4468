"""Tables 8 and 9 by how places in the frame are drawn, which is not published: once, or each time an image is shown."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...answer import ERROR_RATE, ErrorTable, count_of_heads
from ...answer.claim import ClaimResult
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Results, Scale
from ..claims.labels import nearness_claim
from ..claims.places import EACH_TIME, ONCE, answered_less_claim, fitted_more_claim, frame_claim, gains
from . import cifar
from .base import LabelledEffort, Means, error_chart, means_of
from .cifar import FIXED, PATCH, TRAINING, VALIDATION, accuracies, of_patch

if TYPE_CHECKING:
    from ...tasks import AbstractTask


def _trainings(effort: LabelledEffort, task: "AbstractTask") -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    """How places are drawn is an axis of the experiment. In the smallest frame there is only one place."""
    training = cifar.effort_of(effort, task)
    if _is_fixed(task):
        yield {"places": ONCE}, replace(training, lengths=training.lengths[1:])
    else:
        yield {"places": EACH_TIME}, training


def _report(results: Results) -> dict[str, Any]:
    means = means_of(results.experiment, results.records, "places", printed=cifar.printed)
    patch = cifar.patch_of(results.experiment)
    table8, table9 = (of_patch(table, patch) for table in (TRAINING, VALIDATION))
    return {
        "headline": _headline(means),
        "claims": (
            fitted_more_claim(means.training, means.training_margin),
            answered_less_claim(means.validation, means.validation_margin),
            frame_claim(means.validation, means.validation_margin),
            *(_nearness(means, results.scale) if patch == PATCH else ()),
        ),
        "grids": tuple(
            grid for way in means.training.values("places") for grid in _grids(way, means, (table8, table9))
        ),
        "charts": (
            _chart("training-error", "Training error against heads", means.training, table8, means.seeds),
            _chart("validation-error", "Validation error against heads", means.validation, table9, means.seeds),
        ),
        "metric": ERROR_RATE,
    }


def _is_fixed(task: "AbstractTask") -> bool:
    return getattr(task, "fixed_places", task.name == FIXED)


def _headline(means: Means) -> str:
    training, validation = gains(means.training), gains(means.validation)
    if not training:
        return "No frame was learned with places of both kinds yet"
    heads, length = max(training)
    return (
        f"A place drawn once instead of each time: {100 * training[heads, length]:+.1f} points of training and "
        f"{100 * validation[heads, length]:+.1f} of validation accuracy with {count_of_heads(heads)} at T = {length}"
    )


def _nearness(means: Means, scale: Scale) -> tuple[ClaimResult, ...]:
    """Of both kinds of places, whether they give the published accuracies."""
    parts = (("training", means.training, TRAINING), ("validation", means.validation, VALIDATION))
    return tuple(
        nearness_claim(f"{what} (places drawn {way})", table.select(places=way), published, whole=scale is Scale.PAPER)
        for way in means.training.values("places")
        for what, table, published in parts
    )


def _grids(way: str, means: Means, published: tuple[ErrorTable | None, ErrorTable | None]) -> tuple[Grid, Grid]:
    training, fitted, validation = (
        table.select(places=way).trimmed() for table in (means.training, means.fitted, means.validation)
    )
    return accuracies(f"places drawn {way}: ", (training, fitted, validation), published)


def _chart(name: str, title: str, table: ErrorTable, published: ErrorTable | None, seeds: int) -> Chart:
    """A line per length and kind of places, the published ones dashed, once per length."""
    ways = table.values("places")
    drawn = [error_chart(name, title, table.select(places=way).trimmed(), published, seeds) for way in ways]
    lines: list[Series] = []
    for way, chart in zip(ways, drawn, strict=True):
        lines += [replace(line, name=f"{line.name}, {way}") for line in chart.series if line.kind == "measured"]
    printed = {line.name: line for chart in drawn for line in chart.series if line.kind == "published"}
    placed = [replace(line, place=place) for place, line in enumerate([*lines, *printed.values()])]
    heads = max((chart.x_ticks for chart in drawn), key=len)
    return replace(drawn[0], x_ticks=heads, series=tuple(placed))


STUDY = replace(
    cifar.STUDY,
    name="cifar-places",
    title="Tables 8 and 9 by how places are drawn",
    asks="CIFAR-10 as in Tables 8 and 9: does it matter whether a place in the frame is drawn once, or each time?",
    fixed_places=(False, True),
    trainings=_trainings,
    report=_report,
    notes=cifar.choices(
        f"Places are drawn {EACH_TIME} that an image is shown, in validation always the same one, or {ONCE} per image. "
        "In the smallest frame there is only one place, and nothing is drawn."
    ),
    published_claims=tuple,
)
