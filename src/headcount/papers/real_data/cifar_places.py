"""Tables 8 and 9 by how places in the frame are drawn, which is not published: once, or each time an image is shown."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...answer import ERROR_RATE, ErrorTable, count_of_heads
from ...answer.claim import ClaimResult as Claim
from ...report.chart import Chart, Series
from ...report.section import Grid, Section
from ...store import Experiment, Record
from ..base import Scale, said_of
from ..claims.labels import nearness_claim
from ..claims.places import EACH_TIME, ONCE, answered_less_claim, fitted_more_claim, frame_claim, gains
from .base import LabelledEffort, Means, error_chart, means_of
from .cifar import CLASSES, EPOCH, PATCH, TRAINING, VALIDATION, CifarStudy, accuracies, of_patch
from .cifar import STUDY as CIFAR
from .download import OnBytes

if TYPE_CHECKING:
    from ...store.experiment import Value
    from ...tasks import AbstractTask

FIXED = "cifar10 with fixed places"
"""The name of the stand-in whose places are drawn once."""


@dataclass(frozen=True, kw_only=True)
class CifarPlacesStudy(CifarStudy):
    """How places are drawn is an axis of the experiment. In the smallest frame there is only one place."""

    def read(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> "tuple[AbstractTask, ...]":
        from ...tasks import ImageTask

        images = self.images(data, on_bytes)
        return tuple(ImageTask(images, patch=self.patch, fixed_places=fixed) for fixed in (False, True))

    def stand_ins(self) -> "tuple[AbstractTask, ...]":
        from ...tasks.stand_in import StandIn

        (drawn,) = super().stand_ins()
        return drawn, StandIn(FIXED, length=drawn.length, dim=drawn.dim, classes=CLASSES, count=EPOCH)

    def coordinates_of(self, task: "AbstractTask") -> "dict[str, Value]":
        return {"places": ONCE if _is_fixed(task) else EACH_TIME}

    def effort_of(self, scale: Scale, task: "AbstractTask") -> LabelledEffort:
        effort = super().effort_of(scale, task)
        return replace(effort, lengths=effort.lengths[1:]) if _is_fixed(task) else effort

    def published_claims(self) -> tuple[Claim, ...]:
        return ()

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        means = means_of(self, experiment, records, "places")
        patch = self.patch_of(experiment)
        table8, table9 = (of_patch(table, patch) for table in (TRAINING, VALIDATION))
        changes = self.changes_of(experiment, scale)
        return Section(
            name=self.name,
            title=", ".join([self.title, *changes]),
            asks=self.asks,
            headline=_headline(means),
            claims=(
                fitted_more_claim(means.training, means.training_margin),
                answered_less_claim(means.validation, means.validation_margin),
                frame_claim(means.validation, means.validation_margin),
                *(_nearness(means, scale) if patch == PATCH else ()),
            ),
            grids=tuple(
                grid for way in means.training.values("places") for grid in _grids(way, means, (table8, table9))
            ),
            charts=(
                _chart("training-error", "Training error against heads", means.training, table8, means.seeds),
                _chart("validation-error", "Validation error against heads", means.validation, table9, means.seeds),
            ),
            notes=(*said_of(changes, scale), *self.choices(scale)),
            metric=ERROR_RATE,
        )

    def places_note(self) -> str:
        return (
            f"Places are drawn {EACH_TIME} that an image is shown, in validation always the same one, or {ONCE} per "
            "image. In the smallest frame there is only one place, and nothing is drawn."
        )


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


def _nearness(means: Means, scale: Scale) -> tuple[Claim, ...]:
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


STUDY = CifarPlacesStudy(
    name="cifar-places",
    title="Tables 8 and 9 by how places are drawn",
    asks="CIFAR-10 as in Tables 8 and 9: does it matter whether a place in the frame is drawn once, or each time?",
    efforts=CIFAR.efforts,
)
