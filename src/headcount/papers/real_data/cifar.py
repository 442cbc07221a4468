"""Tables 8 and 9, Figures 2c, 2d and 6: CIFAR-10 in frames of five sizes, seen by four-layer vision transformers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...answer import ERROR_RATE, ErrorTable
from ...answer.claim import ClaimResult, judged
from ...answer.metric import FINAL_ERROR, TRAIN_ERROR
from ...answer.signals import reversal_scores
from ...report.chart import Chart, Series
from ...report.charts import reversal_chart
from ...report.document import Grid, Picture
from ...report.files import write_whole
from ...store import Experiment
from ..base import Results, Scale
from ..claims.labels import (
    first_fit_claim,
    length_costs_claim,
    levelling_claim,
    nearness_claim,
    overfitting_claim,
    reversal_turns_claim,
)
from ..published import published_accuracies
from .base import (
    LabelledEffort,
    Means,
    RealDataStudy,
    accuracy_grid,
    changes_of,
    error_chart,
    margin_of,
    means_of,
    to_be_fetched,
    wrong_at_both_ends,
)
from .download import CIFAR10, OnBytes, fetch

if TYPE_CHECKING:
    from ...tasks import AbstractTask, ImageTask

PATCH = 4
PATCHES = (4, 8)
"""Pixels of a patch's side: 4 makes the tables' T, 8 is what the text says."""
LAYERS = 4
CLASSES = 10
TRANSITION = 10
SMALL = 0.05
FRAMES = "figure6.png"
FIXED = "cifar10 with fixed places"
"""The name of the stand-in whose places are drawn once."""
SHOWN = 4
"""Images that Figure 6 shows in each frame."""
SIDES = (32, 48, 64, 96, 128)
EPOCH = 50_000
VALIDATED = 10_000
TRAINING = published_accuracies("table8", TRAIN_ERROR)
VALIDATION = published_accuracies("table9", FINAL_ERROR)


@dataclass(frozen=True, kw_only=True)
class CifarStudy(RealDataStudy):
    """Accuracy by heads and frame. A frame of s pixels is (s / patch)^2 patches; T counts the class token too.

    `fixed_places` are the ways of drawing an image's place that are trained: once (True), or each time it is shown.
    """

    patch: int = PATCH
    fixed_places: tuple[bool, ...] = (False,)

    def read(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> "tuple[AbstractTask, ...]":
        from ...data.cifar import is_cifar10, read_cifar10
        from ...tasks import ImageTask

        if not is_cifar10(data) and to_be_fetched(data, (CIFAR10,)):
            fetch((CIFAR10,), data, on_bytes)
        images = read_cifar10(data)
        return tuple(ImageTask(images, patch=self.patch, fixed_places=fixed) for fixed in self.fixed_places)

    def is_ready(self, data: Path) -> bool:
        from ...data.cifar import is_cifar10

        return is_cifar10(data)

    def stand_ins(self) -> "tuple[AbstractTask, ...]":
        from ...tasks.stand_in import StandIn

        length, dim = (SIDES[0] // self.patch) ** 2, 3 * self.patch**2
        return tuple(
            StandIn(FIXED if fixed else "cifar10", length=length, dim=dim, classes=CLASSES, count=EPOCH)
            for fixed in self.fixed_places
        )

    def keep_pictures(self, folder: Path) -> None:
        from ...report.render.pictures import frames_png

        task = self.tasks[0]
        write_whole(folder / FRAMES, frames_png(framed(task, SIDES), SIDES), "the picture")  # type: ignore[arg-type]

    def pictures(self, folder: Path) -> tuple[Picture, ...]:
        path = folder / FRAMES
        if not path.is_file():
            return ()
        caption = "images at drawn places of larger frames, which the colours of their border pixels fill (Figure 6)"
        return (Picture(name="frames", title="What the models see", png=path.read_bytes(), caption=caption),)


def effort_of(effort: LabelledEffort, task: "AbstractTask") -> LabelledEffort:
    """The same frames, cut into the task's patches."""
    finer = round((task.dim / 3) ** 0.5) // PATCH
    lengths = tuple(length // finer**2 for length in effort.lengths)
    return replace(effort.of(_training_images(task)), lengths=lengths)


def _trainings(effort: LabelledEffort, task: "AbstractTask") -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    yield {}, effort_of(effort, task)


def _report(results: Results) -> dict[str, Any]:
    means = means_of(results.experiment, results.records, printed=printed)
    training, validation = means.training, means.validation
    table8, table9 = (of_patch(table, patch_of(results.experiment)) for table in (TRAINING, VALIDATION))
    ours = _Judged(training, validation, means.training_margin, means.validation_margin, table8)
    return {
        "headline": f"CIFAR-10: {wrong_at_both_ends(training, 'of the training set wrong')}",
        "claims": (
            *judged(_rules, ours, PRINTED),
            *_nearness(means, table8, table9, whole=results.scale is Scale.PAPER),
        ),
        "grids": accuracies("", (training, means.fitted, validation), (table8, table9)),
        "charts": (
            error_chart("training-error", "Training error against heads", training, table8, means.seeds),
            error_chart("validation-error", "Validation error against heads", validation, table9, means.seeds),
            *_reversal_chart(training, table8),
        ),
        "metric": ERROR_RATE,
    }


def printed(length: int) -> int:
    """The paper's T, which counts the class token."""
    return length + 1


def patch_of(experiment: Experiment) -> int:
    """The side of the patches that an experiment was run with."""
    return experiment.settings.get("task", {}).get("patch", PATCH)


def _changes(experiment: Experiment, effort: LabelledEffort) -> list[str]:
    """What the models have in place of the scale's own, in words."""
    patch = patch_of(experiment)
    steps = experiment.settings.get("train", {}).get("steps", effort.steps)
    lasting = [] if steps == effort.steps else [f"{steps:,} steps of {effort.batch}"]
    patches = [] if patch == PATCH else [f"patches of {patch} pixels"]
    return [*patches, *lasting, *changes_of(experiment, effort)]


class _Judged(NamedTuple):
    """The tables that the claims are about, the margins within which two shares are equal, and the published table
    that stands beside the training shares, if one does."""

    training: ErrorTable
    validation: ErrorTable
    training_margin: float
    validation_margin: float
    beside: ErrorTable | None


PRINTED = _Judged(TRAINING, VALIDATION, margin_of(EPOCH), margin_of(VALIDATED), TRAINING)
"""The published tables; their shares are taken as counted once on all images."""


def _rules(tables: _Judged) -> tuple[ClaimResult, ...]:
    return (
        first_fit_claim(tables.training, TRANSITION, SMALL),
        length_costs_claim(tables.training, TRANSITION, tables.training_margin),
        levelling_claim(tables.training, TRANSITION),
        reversal_turns_claim(tables.training, tables.beside, TRANSITION),
        overfitting_claim(tables.validation, tables.validation_margin),
    )


def of_patch(published: ErrorTable, patch: int) -> ErrorTable | None:
    """A published table; None beside other patches than its own, whose equal T are frames of other sizes."""
    return published if patch == PATCH else None


def accuracies(
    of: str, ours: tuple[ErrorTable, ErrorTable, ErrorTable], published: tuple[ErrorTable | None, ErrorTable | None]
) -> tuple[Grid, Grid]:
    """Training accuracy while training and at the end, and validation accuracy; `of` says what they are of."""
    training, fitted, validation = ours
    table8, table9 = (
        "" if table is None else f" ({name})" for table, name in zip(published, ("Table 8", "Table 9"), strict=True)
    )
    title = f"{of}training accuracy, per cent: while training / at the end{table8}"
    return (
        accuracy_grid(title, (training, fitted), published[0]),
        accuracy_grid(f"{of}validation accuracy, per cent{table9}", (validation,), published[1]),
    )


def _nearness(
    means: Means, table8: ErrorTable | None, table9: ErrorTable | None, *, whole: bool
) -> tuple[ClaimResult, ...]:
    if table8 is None or table9 is None:
        return ()
    return (
        nearness_claim("training", means.training, table8, whole=whole),
        nearness_claim("validation", means.validation, table9, whole=whole),
    )


def framed(task: "ImageTask", sides: tuple[int, ...], count: int = SHOWN) -> list[list[np.ndarray]]:
    """The first images of the data in each frame, a row for each side."""
    import jax
    import jax.random as jr

    from ...keys import named_key

    rows = []
    for side in sides:
        tokenise = task.at((side // task.patch) ** 2).tokenise
        keys = jr.split(named_key(side, "shown frames"), count)
        stored = jax.tree.map(jax.numpy.asarray, task.stored(np.arange(count)))
        placed = jax.vmap(tokenise.placed)(stored, keys)
        rows.append([np.asarray(frame) for frame in placed])
    return rows


def _reversal_chart(training: ErrorTable, published: ErrorTable | None) -> tuple[Chart, ...]:
    heads = training.values("heads")
    if len(training.values("length")) < 3:
        return ()
    series = [Series("while training", heads, tuple(reversal_scores(training.errors)), place=0)]
    if published is not None:
        theirs = tuple(reversal_scores(published.aligned(training)))
        series.append(Series("from the published means", heads, theirs, place=1, kind="published"))
    return (reversal_chart(heads, tuple(series)),)


def _training_images(task: "AbstractTask") -> int:
    """The images that there are to learn from."""
    from ...tasks import ImageTask
    from ...tasks.labelled import train_and_validation

    if not isinstance(task, ImageTask):
        return EPOCH
    return len(train_and_validation(len(task.images), task.held_out)[0])


def _lengths(*sides: int) -> tuple[int, ...]:
    return tuple((side // PATCH) ** 2 for side in sides)


EFFORTS: dict[Scale, LabelledEffort] = {
    Scale.SMOKE: LabelledEffort(
        lengths=_lengths(32, 48), heads=(1, 4), seeds=1, steps=120, batch=32, train_examples=1000,
        validation_examples=200,
    ),
    Scale.LAPTOP: LabelledEffort(
        lengths=_lengths(32, 48), heads=(1, 2, 4), seeds=1, steps=1500, batch=32, train_examples=5000,
        validation_examples=1000,
    ),
    Scale.PAPER: LabelledEffort(
        lengths=_lengths(*SIDES),
        heads=(1, 2, 4, 8, 10, 11, 12, 13, 14, 16, 20, 24),
        seeds=5,
        steps=60 * EPOCH // 256,
        batch=256,
        train_examples=EPOCH,
        validation_examples=VALIDATED,
        precision="bfloat16",
    ),
}  # fmt: skip
PAPER = EFFORTS[Scale.PAPER]


def choices(places: str) -> tuple[str, ...]:
    """What is ours; `places` says how the places of images are drawn."""
    return (
        "Published: four layers, head_dim 16, layer norm, residuals, dropout, a class token, AdamW with a cosine. "
        "The text says patches of 8 pixels (--patch 8), the tables' T says 4: we take 4. Not published are the "
        "learning rate, the number of epochs, the dropout and the number of seeds. Ours: norms first, gelu, nets "
        f"four times as wide; peak learning rate {PAPER.learning_rate:g} after a warm-up over a twentieth, decay "
        f"{PAPER.weight_decay:g}, dropout 0.1, batch {PAPER.batch}, {PAPER.steps * PAPER.batch / EPOCH:.0f} epochs at "
        "paper scale, examples drawn with replacement.",
        "Training accuracy is that of the last twentieth of the steps, each batch seen before its own update and with "
        f"dropout; the one at the end is that of the finished model on the same images. {places} How the paper draws "
        "them is not published.",
        "Layer norms have no gain and shift of their own: norms come first, and the maps after them learn both.",
    )


STUDY = CifarStudy(
    name="cifar",
    title="Tables 8 and 9, Figures 2c, 2d and 6",
    asks="CIFAR-10 in frames of growing size: how many heads fit the training set, and what length costs.",
    layers=LAYERS,
    trainings=_trainings,
    report=_report,
    printed=printed,
    notes=choices("Images take a new place each time they are shown, in validation always the same one."),
    published_claims=lambda: _rules(PRINTED),
    changes=_changes,
    options=("epochs", "precision"),
    efforts=EFFORTS,
)
