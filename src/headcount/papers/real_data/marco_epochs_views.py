"""What `marco-epochs` shows: distances to the published tables by epochs, and the accuracies themselves."""

from dataclasses import replace

from ...answer import count_of_heads
from ...report.chart import Chart, Series
from ...report.section import Grid
from ..claims.epochs import Apart, epochs_needed
from .base import Means, accuracy_grid, error_chart
from .passages import TRAINING, VALIDATION


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
