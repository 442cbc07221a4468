"""Tables 6 and 7 against the number of epochs, which is not published: is the published rise with heads met by one?"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...answer import ERROR_RATE, count_of_heads
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Results, Scale
from ..claims.epochs import Apart, apart, epochs_needed, met_claim, no_gain_somewhere_claim, together
from .base import LabelledEffort, Means, accuracy_grid, changes_of, error_chart, means_of
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
    training_queries,
)

if TYPE_CHECKING:
    from ...tasks import AbstractTask


def headline(training: Apart | None) -> str:
    if training is None:
        return "No published cell was measured at every number of epochs"
    largest = 100 * training.worst[training.nearest]
    return (
        f"{training.nearest} epochs come nearest to Table 6: training accuracies within {largest:.1f} points of the "
        f"published ones in {len(training.points.T)} cells"
    )


def grids(means: Means, distances: dict[str, Apart | None]) -> tuple[Grid, ...]:
    """Distances by epochs, the epochs that give each published number, and every accuracy."""
    known = {what: each for what, each in distances.items() if each is not None}
    epochs = means.training.values("epochs")
    away = Grid(
        title="points between ours and the published accuracy: mean, largest",
        columns=("", *known),
        rows=tuple(
            (f"{count} epochs", *(f"{100 * e.mean[count]:.1f}, {100 * e.worst[count]:.1f}" for e in known.values()))
            for count in epochs
        ),
    )
    needed = epochs_needed(means.training, TRAINING)
    lengths = means.training.values("length")
    crossing = Grid(
        title="epochs that give the published training accuracy, interpolated",
        columns=("", *(f"T = {length}" for length in lengths)),
        rows=tuple(
            (count_of_heads(heads), *(needed.get((heads, length), "-") for length in lengths))
            for heads in means.training.values("heads")
        ),
    )
    nearest = nearest_of(means, distances["training"])
    accuracies = [replace(each, folded=count != nearest) for count in epochs for each in _accuracies(means, count)]
    return (*((away,) if known else ()), crossing, *accuracies)


def nearest_of(means: Means, training: Apart | None) -> int:
    """The number of epochs nearest to Table 6; the most where no cell says which."""
    return means.training.values("epochs")[-1] if training is None else training.nearest


def _accuracies(means: Means, epochs: int) -> tuple[Grid, Grid]:
    """All accuracies at one number of epochs."""
    training, fitted, validation = (
        table.select(epochs=epochs) for table in (means.training, means.fitted, means.validation)
    )
    title = f"{epochs} epochs: training accuracy, per cent: while training / at the end (Table 6)"
    return (
        accuracy_grid(title, (training, fitted), TRAINING),
        accuracy_grid(f"{epochs} epochs: validation accuracy, per cent (Table 7)", (validation,), VALIDATION),
    )


def charts(means: Means, training: Apart | None, validation: Apart | None) -> tuple[Chart, ...]:
    distances = {"training (Table 6)": training, "validation (Table 7)": validation}
    series = tuple(
        Series(name, each.epochs, tuple(100 * worst for worst in each.worst.values()), place=place)
        for place, (name, each) in enumerate(distances.items())
        if each is not None
    )
    chosen = nearest_of(means, training)
    return (
        Chart(
            name="epochs-distance",
            title="Largest distance to the published accuracies",
            x_label="epochs",
            y_label="points",
            x_ticks=means.training.values("epochs"),
            series=series,
            caption=f"largest over heads and T, of the mean over {means.seeds} seed(s)",
            log_x=True,
            log_y=False,
        ),
        error_chart(
            "epochs-training-error",
            f"Training error, {chosen} epochs",
            means.training.select(epochs=chosen),
            TRAINING,
            means.seeds,
        ),
    )


def _trainings(effort: LabelledEffort, task: "AbstractTask") -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    """The number of epochs is an axis of the experiment."""
    for epochs in effort.axes["epochs"]:
        yield {"epochs": epochs}, replace(effort, epochs=epochs).of(training_queries(task))


def _report(results: Results) -> dict[str, Any]:
    means = means_of(results.experiment, results.records, "epochs")
    margins = {
        epochs: means_of(results.experiment.part(epochs=[epochs]), results.records).validation_margin
        for epochs in means.validation.values("epochs")
    }
    whole = results.scale is not Scale.SMOKE
    training, validation = apart(means.training, TRAINING), apart(means.validation, VALIDATION)
    fitted, rise = apart(means.fitted, TRAINING), apart(means.training, TRAINING, rise=True)
    distances = {"training": training, "at the end": fitted, "rise with heads": rise, "validation": validation}
    met = {
        "every training accuracy": training,
        "every training accuracy at the end": fitted,
        "the rise of training accuracy from the fewest heads": rise,
        "every validation accuracy": validation,
        "every accuracy of both tables": together([training, validation]),
    }
    return {
        "headline": headline(training),
        "claims": (
            *(met_claim(what, distance, whole=whole) for what, distance in met.items()),
            no_gain_somewhere_claim(means.validation, margins, whole=whole),
        ),
        "grids": grids(means, distances),
        "charts": charts(means, training, validation),
        "metric": ERROR_RATE,
    }


EPOCHS = (2, 4, 8, 15, 30)
STUDY = PassageStudy(
    name="marco-epochs",
    title="Tables 6 and 7 by number of epochs",
    asks="MS MARCO: does some length of training, which is not published, give the published rise with heads?",
    trainings=_trainings,
    report=_report,
    notes=(
        f"{OUR_TRAINING} Each number of epochs has a warm-up and a cosine of its own.",
        *OUR_CHOICES,
    ),
    changes=changes_of,
    options=("precision",),
    efforts={
        Scale.SMOKE: LabelledEffort(
            lengths=(8, 16), heads=(1, 4), seeds=1, steps=125, axes={"epochs": (1, 4)}, batch=32, train_examples=1000,
            validation_examples=200, weight_decay=DECAY,
        ),
        Scale.LAPTOP: LabelledEffort(
            lengths=(8, 16), heads=(1, 2, 4, 8), seeds=2, steps=3281, axes={"epochs": EPOCHS[:-1]}, batch=128,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY,
        ),
        Scale.PAPER: LabelledEffort(
            lengths=LENGTHS, heads=HEADS, seeds=5, steps=6562, axes={"epochs": EPOCHS}, batch=128,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY, precision="bfloat16",
        ),
    },
)  # fmt: skip
