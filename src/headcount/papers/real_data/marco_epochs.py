"""Tables 6 and 7 against the number of epochs, which is not published: is the published rise with heads met by one?"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ...answer import ERROR_RATE, ErrorTable, count_of_heads
from ...answer.claim import Verdict
from ...report.chart import Chart
from ...report.document import Grid
from ..base import AbstractTask, Scale, StudyResults
from ..charts import chart_along, grid_of, line_of
from ..claims.judge import Case, Cases, claims_that, in_points
from ..claims.labels import NEAR, POINTS, no_gain_claim
from . import passages
from .base import LabelledEffort, Means, accuracy_grids, error_chart, means_of
from .passages import PUBLISHED, TRAINING, VALIDATION, PassageEffort, PassageStudy

BETWEEN = 40
"""Numbers of epochs looked at between two that were tried."""


class Apart(NamedTuple):
    """Ours less the published accuracy, at every number of epochs, of the cells that all of them have."""

    epochs: tuple[int, ...]
    points: Float[np.ndarray, "epochs cells"]

    @property
    def worst(self) -> dict[int, float]:
        """The largest distance of a cell, by number of epochs."""
        return dict(zip(self.epochs, np.abs(self.points).max(axis=1).tolist(), strict=True))

    @property
    def nearest(self) -> int:
        """The number of epochs tried at which the largest distance is smallest."""
        return min(self.worst, key=self.worst.__getitem__)

    def between(self) -> tuple[float, float, bool]:
        """The number of epochs, tried or between, of the smallest largest distance; that distance; is it at an end?"""
        tried = np.log(self.epochs)
        between = [np.linspace(low, high, BETWEEN) for low, high in itertools.pairwise(tried)]
        places = np.unique(np.concatenate([tried, *between]))
        cells = [np.interp(places, tried, column) for column in self.points.T]
        worst = np.abs(cells).max(axis=0)
        best = int(np.argmin(worst))
        return float(np.exp(places[best])), float(worst[best]), best in (0, len(places) - 1)


def apart(table: ErrorTable, published: ErrorTable, *, rise: bool = False) -> Apart | None:
    """How far a table is from the published one; `rise`: each share is compared with that of the fewest heads first.

    None where no cell that was published is there at every number of epochs.
    """
    ours = table.ordered("epochs", "heads", "length")
    points = published.aligned(ours) - ours.errors
    points = points[:, 1:] - points[:, :1] if rise else points
    cells = points.reshape(len(points), -1)
    cells = cells[:, np.isfinite(cells).all(axis=0)]
    return Apart(tuple(ours.values("epochs")), cells) if cells.size else None


def together(parts: Sequence[Apart | None]) -> Apart | None:
    """Several tables as one; None where one of them has no cells."""
    known = [each for each in parts if each is not None]
    if not known or len(known) < len(parts):
        return None
    return Apart(known[0].epochs, np.concatenate([each.points for each in known], axis=1))


@claims_that(
    f"Some number of epochs brings {{what}} within {POINTS} of the published one.",
    "no published cell was measured at two numbers of epochs",
)
def met_claim(what: str, distance: Apart | None, *, whole: bool) -> Cases:
    """One number of epochs brings every cell within five points; judged only where the whole recipe was followed.

    It differs where no number between those tried does either, unless the nearest is the fewest or the most tried.
    """
    if distance is None or len(distance.epochs) < 2:
        return
    nearest, (place, least, at_end) = distance.nearest, distance.between()
    row, met = distance.points[distance.epochs.index(nearest)], distance.worst[nearest] <= NEAR
    words = f"nearest {nearest} epochs: {int(np.sum(np.abs(row) <= NEAR))} of {len(row)} cells, ours less published "
    by_epochs = "; ".join(f"{epochs} {100 * worst:.1f}" for epochs, worst in distance.worst.items())
    words += f"{in_points(row)}; largest distance by epochs: {by_epochs}"
    words += "" if met else f"; interpolated it is least at {place:.1f} epochs, {100 * least:.1f}"
    yield Case(words, met, least > NEAR and not at_end)


@claims_that(
    "At some number of epochs the most heads answer no more validation queries than the fewest, at any T.",
    "no number of epochs has finished",
)
def no_gain_somewhere_claim(validation: ErrorTable, margins: Mapping[int, float], *, whole: bool) -> Cases:
    judged = {epochs: no_gain_claim(validation.select(epochs=epochs), margin) for epochs, margin in margins.items()}
    words = "; ".join(f"{epochs} epochs {claim.verdict.value}: {claim.evidence}" for epochs, claim in judged.items())
    verdicts = {claim.verdict for claim in judged.values()}
    yield Case(words, Verdict.HOLDS in verdicts, verdicts == {Verdict.DIFFERS})


def epochs_needed(table: ErrorTable, published: ErrorTable) -> dict[tuple[int, int], str]:
    """The epochs at which a share is first the published one, interpolated, by heads and length; "> 30" beyond."""
    needed = {}
    for at, line in table.lines("epochs"):
        above = np.array([line.get(count, np.nan) for count in table.values("epochs")]) - published.at(**at)
        if np.isfinite(above).all():
            needed[at["heads"], at["length"]] = _first_reached(table.values("epochs"), above)
    return needed


def _first_reached(epochs: Sequence[int], above: Float[np.ndarray, " epochs"]) -> str:
    """Where what is above zero first is not, over the logarithm of the epochs."""
    reached = np.flatnonzero(above <= 0)
    if not len(reached):
        return f"> {epochs[-1]}"
    last = int(reached[0])
    if last == 0:
        return f"{epochs[0]}" if above[0] == 0 else f"< {epochs[0]}"
    share = above[last - 1] / (above[last - 1] - above[last])
    return f"{float(epochs[last - 1]) * (epochs[last] / epochs[last - 1]) ** share:.1f}"


def epochs_headline(training: Apart | None) -> str:
    if training is None:
        return "No published cell was measured at every number of epochs"
    largest = 100 * training.worst[training.nearest]
    return (
        f"{training.nearest} epochs come nearest to Table 6: training accuracies within {largest:.1f} points of the "
        f"published ones in {len(training.points.T)} cells"
    )


def epochs_grids(means: Means, distances: dict[str, Apart | None]) -> tuple[Grid, ...]:
    known = {what: each for what, each in distances.items() if each is not None}
    epochs = means.training.values("epochs")
    rows = []
    for i, count in enumerate(epochs):
        away = (100 * np.abs(each.points[i]) for each in known.values())
        rows.append((f"{count} epochs", *(f"{points.mean():.1f}, {points.max():.1f}" for points in away)))
    distance = grid_of("points between ours and the published accuracy: mean, largest", ("", *known), rows)
    needed, lengths = epochs_needed(means.training, TRAINING), means.training.values("length")
    rows = [
        (count_of_heads(heads), *(needed.get((heads, length), "-") for length in lengths))
        for heads in means.training.values("heads")
    ]
    title = "epochs that give the published training accuracy, interpolated"
    crossing = grid_of(title, ("", *(f"T = {length}" for length in lengths)), rows)
    accuracies = []
    for count in epochs:
        part = means.of_tables(lambda table, count=count: table.select(epochs=count))
        folded = count != chosen_epochs(means, distances["training"])
        accuracies += [replace(grid, folded=folded) for grid in accuracy_grids(f"{count} epochs: ", part, PUBLISHED)]
    return (*((distance,) if known else ()), crossing, *accuracies)


def chosen_epochs(means: Means, training: Apart | None) -> int:
    """The number of epochs nearest to Table 6; the most where no cell says which."""
    return means.training.values("epochs")[-1] if training is None else training.nearest


def epochs_charts(means: Means, training: Apart | None, validation: Apart | None) -> tuple[Chart, ...]:
    distances = {"training (Table 6)": training, "validation (Table 7)": validation}
    series = [
        line_of(name, {epochs: 100 * worst for epochs, worst in each.worst.items()}, place)
        for place, (name, each) in enumerate(distances.items())
        if each is not None
    ]
    epochs, chosen = means.training.values("epochs"), chosen_epochs(means, training)
    title = "Largest distance to the published accuracies"
    caption = f"largest over heads and T, of the mean over {means.seeds} seed(s)"
    distance = chart_along("epochs", epochs, series, "epochs-distance", title, caption, "points", log_y=False)
    title, table = f"Training error, {chosen} epochs", means.training.select(epochs=chosen)
    return distance, error_chart("epochs-training-error", title, table, TRAINING, means.seeds)


def _trainings(effort: LabelledEffort, task: AbstractTask) -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    for epochs in effort.axes["epochs"]:
        yield {"epochs": epochs}, replace(effort, epochs=epochs).for_examples(passages.training_queries(task))


def _document_fields(results: StudyResults) -> dict[str, Any]:
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
        "headline": epochs_headline(training),
        "claims": (
            *(met_claim(what, distance, whole=whole) for what, distance in met.items()),
            no_gain_somewhere_claim(means.validation, margins, whole=whole),
        ),
        "grids": epochs_grids(means, distances),
        "charts": epochs_charts(means, training, validation),
        "metric": ERROR_RATE,
    }


EPOCHS = (2, 4, 8, 15, 30)
STUDY = PassageStudy(
    name="marco-epochs",
    title="Tables 6 and 7 by number of epochs",
    asks="MS MARCO: does some length of training, which is not published, give the published rise with heads?",
    trainings=_trainings,
    report=_document_fields,
    notes=(
        f"{passages.OUR_TRAINING} Each number of epochs has a warm-up and a cosine of its own.",
        *passages.OUR_CHOICES,
    ),
    options=("precision",),
    efforts={
        Scale.SMOKE: PassageEffort(
            lengths=(8, 16), heads=(1, 4), seeds=1, steps=125, axes={"epochs": (1, 4)}, batch=32, train_examples=1000,
            validation_examples=200,
        ),
        Scale.LAPTOP: PassageEffort(
            lengths=(8, 16), heads=(1, 2, 4, 8), seeds=2, steps=3281, axes={"epochs": EPOCHS[:-1]}, batch=128,
        ),
        Scale.PAPER: PassageEffort(**passages.WHOLE, steps=6562, axes={"epochs": EPOCHS}, batch=128),
    },
)  # fmt: skip
