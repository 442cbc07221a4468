"""Tables 8 and 9, Figures 2c, 2d and 6: CIFAR-10 in frames of five sizes, seen by four-layer vision transformers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.random as jr
import numpy as np

from ..analysis.comparison import count_of_heads
from ..analysis.signals import reversal_scores
from ..analysis.summary import ERROR_RATE
from ..datasets.cifar import ARCHIVE, fetch_cifar10, is_cifar10, read_cifar10
from ..engine.hardware import Sizes
from ..report.chart import Chart, Series
from ..report.charts import reversal_chart
from ..report.files import write_whole
from ..report.frames import frames_png
from ..report.section import Picture, Section
from ..store import Record
from ..tasks import IMAGES, Form, ImageTask, LabelledTask
from .base import Scale
from .labelled import (
    Accuracies,
    LabelledEffort,
    LabelledStudy,
    OnBytes,
    accuracies,
    accuracy_grid,
    beside,
    error_chart,
    share,
    to_be_fetched,
)
from .labelled_claims import (
    growth_claim,
    levelling_claim,
    nearness_claim,
    overfitting_claim,
    reversal_claim,
    transition_claim,
)
from .published import published_table

PATCH = 4
PATCHES = (4, 8)
"""Pixels of a patch's side: 4 makes the tables' T, 8 is what the text says."""
TRANSITION = 10
SMALL = 0.05
FRAMES = "figure6.png"
SHOWN = 4
"""Images that Figure 6 shows in each frame."""
SIDES = (32, 48, 64, 96, 128)
EPOCH = 50_000
TRAINING, VALIDATION = (published_table(name, statistic="mean") for name in ("table8", "table9"))


@dataclass(frozen=True, kw_only=True)
class CifarStudy(LabelledStudy):
    """Accuracy by heads and frame. A frame of s pixels is (s / patch)^2 patches; T counts the class token too."""

    patch: int = PATCH

    def read(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> tuple[LabelledTask, ...]:
        if not is_cifar10(data) and to_be_fetched(data, (ARCHIVE.file_name,)):
            fetch_cifar10(data, on_bytes)
        return (ImageTask(read_cifar10(data), patch=self.patch),)

    def form(self, spec: dict[str, Any]) -> Form:
        return IMAGES

    def is_own(self, spec: dict[str, Any]) -> bool:
        return spec["task"] == "cifar10" and spec.get("patch") in PATCHES

    def sizes(self, spec: dict[str, Any]) -> Sizes:
        return Sizes(dim=3 * spec["patch"] ** 2, outputs=10)

    def effort_of(self, scale: Scale, spec: dict[str, Any]) -> LabelledEffort:
        """The same frames, cut into patches of the task's size."""
        effort = self.efforts[scale]
        finer = spec["patch"] // PATCH
        return replace(effort, lengths=tuple(length // finer**2 for length in effort.lengths))

    def printed(self, length: int) -> int:
        return length + 1

    def keep_pictures(self, folder: Path) -> None:
        (task,) = self.tasks
        assert isinstance(task, ImageTask)
        write_whole(folder / FRAMES, frames_png(framed(task, SIDES), SIDES), "the picture")

    def pictures(self, folder: Path) -> tuple[Picture, ...]:
        path = folder / FRAMES
        if not path.is_file():
            return ()
        caption = "images at drawn places of larger frames, which the colours of their border pixels fill (Figure 6)"
        return (Picture(name="frames", title="What the models see", png=path.read_bytes(), caption=caption),)

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        found = accuracies(records, self.printed)
        theirs, judged = beside(found, TRAINING), beside(found, VALIDATION)
        transition = transition_claim(found, TRANSITION, SMALL)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(found),
            claims=(
                transition,
                growth_claim(found, TRANSITION),
                levelling_claim(found, TRANSITION),
                reversal_claim(found, theirs, TRANSITION),
                overfitting_claim(found),
                nearness_claim("training", found.training, theirs, whole=scale is Scale.PAPER),
                nearness_claim("validation", found.validation, judged, whole=scale is Scale.PAPER),
            ),
            grids=(
                accuracy_grid(
                    "training accuracy, per cent: while training / at the end (Table 8)",
                    found,
                    (found.training, found.fitted),
                    theirs,
                ),
                accuracy_grid("validation accuracy, per cent (Table 9)", found, (found.validation,), judged),
            ),
            charts=(
                error_chart("training-error", "Training error against heads", found, found.errors, 1 - theirs),
                error_chart(
                    "validation-error", "Validation error against heads", found, 1 - found.validation, 1 - judged
                ),
                *_reversal_chart(found, theirs),
            ),
            notes=self.choices(scale),
            unit=ERROR_RATE,
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort, paper = self.efforts[scale], self.efforts[Scale.PAPER]
        ours = (
            "Published: four layers, head_dim 16, layer norm, residuals, dropout, a class token, AdamW with a cosine. "
            "The text says patches of 8 pixels (--patch 8), the tables' T says 4: we take 4. Not published are the "
            "learning rate, the number of epochs, the dropout and the number of seeds. Ours: norms first, gelu, nets "
            f"four times as wide; peak learning rate {paper.learning_rate:g} after a warm-up over a twentieth, decay "
            f"{paper.weight_decay:g}, dropout 0.1, batch {paper.batch}, {paper.steps * paper.batch / EPOCH:.0f} epochs "
            "at paper scale, examples drawn with replacement.",
            "Training accuracy is that of the last twentieth of the steps, each batch seen before its own update and "
            "with dropout; the one at the end is that of the finished model on the same images. Images take a new "
            "place each time they are shown, in validation always the same one.",
            "Layer norms have no gain and shift of their own: norms come first, and the maps after them learn both.",
        )
        if scale is Scale.PAPER:
            return ours
        smaller = (
            f"At {scale} scale: {effort.train_examples:,} of 50,000 training images, {effort.steps:,} steps of "
            f"{effort.batch}, {effort.seeds} seed(s), T = {', '.join(str(length + 1) for length in effort.lengths)}. "
            f"At paper scale: all of them, {paper.steps:,} steps of {paper.batch}."
        )
        return (smaller, *ours)


def framed(task: ImageTask, sides: tuple[int, ...], count: int = SHOWN) -> list[list[np.ndarray]]:
    """The first images of the data in each frame, a row for each side."""
    rows = []
    for side in sides:
        tokenise = task.at((side // task.patch) ** 2).tokenise
        keys = jr.split(jr.key(side), count)
        placed = jax.vmap(tokenise.placed)(jax.numpy.asarray(task.images[:count]), keys)
        rows.append([np.asarray(frame) for frame in placed])
    return rows


def _headline(found: Accuracies) -> str:
    few, many = (count_of_heads(found.heads[i]) for i in (0, -1))
    wrong, left = (share(float(np.nanmax(found.errors[i]))) for i in (0, -1))
    return f"CIFAR-10: {wrong} of the training set wrong with {few}, {left} with {many}, at the worst T"


def _reversal_chart(found: Accuracies, theirs: np.ndarray) -> tuple[Chart, ...]:
    if len(found.lengths) < 3:
        return ()
    ours, published = reversal_scores(found.errors), reversal_scores(1 - theirs)
    series = (
        Series("while training", found.heads, tuple(ours), place=0),
        Series("from the published means", found.heads, tuple(published), place=1, kind="published"),
    )
    return (reversal_chart(found.heads, series),)


def _lengths(*sides: int) -> tuple[int, ...]:
    return tuple((side // PATCH) ** 2 for side in sides)


STUDY = CifarStudy(
    name="cifar",
    title="Tables 8 and 9, Figures 2c, 2d and 6",
    asks="CIFAR-10 in frames of growing size: how many heads fit the training set, and what length costs.",
    specs=({"task": "cifar10", "patch": PATCH},),
    efforts={
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
            validation_examples=10_000,
            precision="bfloat16",
        ),
    },
)  # fmt: skip
