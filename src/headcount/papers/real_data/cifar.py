"""Tables 8 and 9, Figures 2c, 2d and 6: CIFAR-10 in frames of five sizes, seen by four-layer vision transformers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...answer import ERROR_RATE, ErrorTable
from ...answer.claim import ClaimResult, judged
from ...answer.metric import FINAL_ERROR, TRAIN_ERROR
from ...answer.signals import reversal_scores
from ...report.chart import Chart, Series
from ...report.charts import reversal_chart
from ...report.document import Picture
from ...report.files import write_whole
from ...store import Experiment
from ..base import AbstractTask, Scale, StudyResults
from ..claims.labels import (
    first_fit_claim,
    length_costs_claim,
    levelling_claim,
    overfitting_claim,
    reversal_turns_claim,
)
from ..published import published_accuracies
from .base import (
    LabelledEffort,
    Means,
    Published,
    RealDataStudy,
    accuracy_grids,
    error_charts,
    means_of,
    nearness_claims,
    printed_means,
    wrong_at_both_ends,
)
from .download import CIFAR10, OnBytes, fetch, to_be_fetched

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
PRINTED = printed_means(TRAINING, VALIDATION, EPOCH, VALIDATED)


@dataclass(frozen=True, kw_only=True)
class CifarStudy(RealDataStudy):
    """Accuracy by heads and frame. A frame of s pixels is (s / patch)^2 patches; T counts the class token too.

    `fixed_places` are the ways of drawing an image's place that are trained: once (True), or each time it is shown.
    """

    patch: int = PATCH
    fixed_places: tuple[bool, ...] = (False,)

    def read_tasks(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> tuple[AbstractTask, ...]:
        from ...tasks import ImageTask
        from ..data.cifar import is_cifar10, read_cifar10

        if not is_cifar10(data) and to_be_fetched(data, (CIFAR10,)):
            fetch((CIFAR10,), data, on_bytes)
        images = read_cifar10(data)
        return tuple(ImageTask(images, patch=self.patch, fixed_places=fixed) for fixed in self.fixed_places)

    def is_ready(self, data: Path) -> bool:
        from ..data.cifar import is_cifar10

        return is_cifar10(data)

    def stand_ins(self) -> tuple[AbstractTask, ...]:
        from ..tasks.stand_in import StandIn

        length, dim = (SIDES[0] // self.patch) ** 2, 3 * self.patch**2
        names = (FIXED if fixed else "cifar10" for fixed in self.fixed_places)
        return tuple(StandIn(name, length, dim, EPOCH, classes=CLASSES) for name in names)  # pyright: ignore[reportCallIssue]

    def changes(self, experiment: Experiment, effort: LabelledEffort) -> list[str]:
        patch = patch_of(experiment)
        return [*([] if patch == PATCH else [f"patches of {patch} pixels"]), *super().changes(experiment, effort)]

    def keep_pictures(self, folder: Path) -> None:
        from ...report.render.pictures import frames_png

        task = self.tasks[0]
        write_whole(folder / FRAMES, frames_png(framed(task, SIDES), SIDES), "the picture")  # type: ignore[arg-type]

    def pictures(self, folder: Path) -> tuple[Picture, ...]:
        path = folder / FRAMES
        if not path.is_file():
            return ()
        caption = "images at drawn places of larger frames, which the colours of their border pixels fill (Figure 6)"
        return (Picture(title="What the models see", png=path.read_bytes(), caption=caption),)


def effort_of(effort: LabelledEffort, task: AbstractTask) -> LabelledEffort:
    """The same frames, cut into the task's patches."""
    finer = round((task.dim / 3) ** 0.5) // PATCH
    lengths = tuple(length // finer**2 for length in effort.lengths)
    return replace(effort.for_examples(_training_images(task)), lengths=lengths)


def _trainings(effort: LabelledEffort, task: AbstractTask) -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    yield {}, effort_of(effort, task)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    means = means_of(results.experiment, results.records, printed=printed)
    published = published_for(results.experiment)
    return {
        "headline": f"CIFAR-10: {wrong_at_both_ends(means.training, 'of the training set wrong')}",
        "claims": (
            *judged(partial(_rules, published=published.training), means, PRINTED),
            *nearness_claims(means, published, whole=results.scale is Scale.PAPER),
        ),
        "grids": tuple(accuracy_grids("", means, published)),
        "charts": (
            *error_charts(means, published, "{}-error", "{} error against heads"),
            *_reversal_chart(means.training, published.training),
        ),
        "metric": ERROR_RATE,
    }


def printed(length: int) -> int:
    """The paper's T, which counts the class token."""
    return length + 1


def patch_of(experiment: Experiment) -> int:
    return experiment.settings.get("task", {}).get("patch", PATCH)


def _rules(means: Means, published: ErrorTable | None = None) -> tuple[ClaimResult, ...]:
    """Judge all claims; `published` are the training shares of the paper, where they are of equal patches."""
    return (
        first_fit_claim(means.training, TRANSITION, SMALL),
        length_costs_claim(means.training, TRANSITION, means.training_margin),
        levelling_claim(means.training, TRANSITION),
        reversal_turns_claim(means.training, published, TRANSITION),
        overfitting_claim(means.validation, means.validation_margin),
    )


def published_for(experiment: Experiment) -> Published:
    """Tables 8 and 9; none for other patches than their own, whose equal T are frames of other sizes."""
    return Published(TRAINING, VALIDATION) if patch_of(experiment) == PATCH else Published(None, None)


def framed(task: Any, sides: tuple[int, ...], count: int = SHOWN) -> list[list[np.ndarray]]:
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


def _training_images(task: AbstractTask) -> int:
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
        lengths=_lengths(*SIDES), heads=(1, 2, 4, 8, 10, 11, 12, 13, 14, 16, 20, 24), seeds=5,
        steps=60 * EPOCH // 256, batch=256, train_examples=EPOCH, validation_examples=VALIDATED, precision="bfloat16",
    ),
}  # fmt: skip
PAPER = EFFORTS[Scale.PAPER]


def choices(places: str) -> tuple[str, ...]:
    """Notes on our own choices; `places` says how the places of images are drawn."""
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
    report=_document_fields,
    printed=printed,
    notes=choices("Images take a new place each time they are shown, in validation always the same one."),
    published_claims=lambda: _rules(PRINTED, published=TRAINING),
    options=("epochs", "precision"),
    efforts=EFFORTS,
)
