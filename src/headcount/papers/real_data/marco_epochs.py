"""Tables 6 and 7 against the number of epochs, which is not published: is the published rise with heads met by one?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...answer import ERROR_RATE
from ...report.section import Section
from ...store import Experiment, Record
from ..base import Scale, said_of
from ..claims.epochs import apart, met_claim, no_gain_somewhere_claim, together
from .base import LabelledEffort, changes_of, means_of
from .marco_epochs_views import charts, grids, headline
from .passages import (
    DECAY,
    HEADS,
    LENGTHS,
    OUR_CHOICES,
    OUR_TRAINING,
    TRAINED,
    TRAINING,
    VALIDATED,
    VALIDATION,
    PassageStudy,
    smaller,
    training_queries,
)

if TYPE_CHECKING:
    from ...store.experiment import Value
    from ...tasks import AbstractTask


@dataclass(frozen=True, kw_only=True)
class EpochsEffort(LabelledEffort):
    """How much is done, and which numbers of epochs are tried."""

    tried: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class MarcoEpochsStudy(PassageStudy):
    """Candidates as tokens, trained for several numbers of epochs; the number is an axis of the experiment."""

    efforts: dict[Scale, EpochsEffort]  # type: ignore[assignment]
    layouts: tuple[str, ...] = ("candidates",)

    def trainings(self, scale: Scale, task: "AbstractTask") -> "list[tuple[dict[str, Value], LabelledEffort]]":
        effort, queries = self.efforts[scale], training_queries(task)
        return [({"epochs": epochs}, effort.lasting(epochs).of(queries)) for epochs in effort.tried]

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        records = list(records)
        means = means_of(self, experiment, records, "epochs")
        margins = {
            epochs: means_of(self, experiment.part(epochs=[epochs]), records).validation_margin
            for epochs in means.validation.values("epochs")
        }
        whole = scale is not Scale.SMOKE
        training, validation = apart(means.training, TRAINING), apart(means.validation, VALIDATION)
        fitted, rise = apart(means.fitted, TRAINING), apart(means.training, TRAINING, rise=True)
        distances = {"training": training, "at the end": fitted, "rise with heads": rise, "validation": validation}
        changes = changes_of(experiment, self.efforts[scale])
        return Section(
            name=self.name,
            title=", ".join([self.title, *changes]),
            asks=self.asks,
            headline=headline(training),
            claims=(
                met_claim("every training accuracy", training, whole=whole),
                met_claim("every training accuracy at the end", fitted, whole=whole),
                met_claim("the rise of training accuracy from the fewest heads", rise, whole=whole),
                met_claim("every validation accuracy", validation, whole=whole),
                met_claim("every accuracy of both tables", together([training, validation]), whole=whole),
                no_gain_somewhere_claim(means.validation, margins, whole=whole),
            ),
            grids=grids(means, distances),
            charts=charts(means, training, validation),
            notes=(*said_of(changes, scale), *self.choices(scale)),
            metric=ERROR_RATE,
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        tried = ", ".join(map(str, effort.tried))
        ours = (
            f"{OUR_TRAINING} Each number of epochs ({tried}) has a warm-up and a cosine of its own, in batches of "
            f"{effort.batch} queries.",
            *OUR_CHOICES,
        )
        return (*smaller(scale, effort), *ours)


EPOCHS = (2, 4, 8, 15, 30)
STUDY = MarcoEpochsStudy(
    name="marco-epochs",
    title="Tables 6 and 7 by number of epochs",
    asks="MS MARCO: does some length of training, which is not published, give the published rise with heads?",
    efforts={
        Scale.SMOKE: EpochsEffort(
            lengths=(8, 16), heads=(1, 4), seeds=1, steps=125, tried=(1, 4), batch=32, train_examples=1000,
            validation_examples=200, weight_decay=DECAY,
        ),
        Scale.LAPTOP: EpochsEffort(
            lengths=(8, 16), heads=(1, 2, 4, 8), seeds=2, steps=3281, tried=EPOCHS[:-1], batch=128,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY,
        ),
        Scale.PAPER: EpochsEffort(
            lengths=LENGTHS, heads=HEADS, seeds=5, steps=6562, tried=EPOCHS, batch=128, train_examples=TRAINED,
            validation_examples=VALIDATED, weight_decay=DECAY, precision="bfloat16",
        ),
    },
)  # fmt: skip
