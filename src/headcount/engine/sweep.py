"""From axes to cells to buckets.

A sweep is a list of cells and their tasks: heads x rank x length x seed x learning rate. A bucket is the cells that one
compiled program can train: same task, length and training, same padded model (`AbstractSpec.padded`). Buckets depend on
the cells they are made of and on nothing else, so an interrupted sweep and its continuation share them.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._choices import Positions
from .._errors import require
from ..models import AbstractSpec, ClassTokenSpec, EncoderSpec
from ..store import Cell, TrainSpec
from ..tasks import AnyTask, LabelledTask
from .labelled import LABELLED_TRAIN, labelled_encoder


@dataclass(frozen=True)
class Skipped:
    """A cell that was left out on purpose, and why."""

    cell: Cell
    reason: str


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All the models to be trained, and the tasks that their cells name."""

    tasks: tuple[AnyTask, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...] = ()

    @functools.cached_property
    def by_key(self) -> dict[str, AnyTask]:
        """The tasks under the keys by which shapes name them."""
        return {task_key(task.spec()): task for task in self.tasks}


def joined(sweeps: Iterable[Sweep]) -> Sweep:
    """All of the sweeps as one."""
    sweeps = list(sweeps)
    tasks = {key: task for sweep in sweeps for key, task in sweep.by_key.items()}
    return Sweep(
        tasks=tuple(tasks.values()),
        cells=tuple(cell for sweep in sweeps for cell in sweep.cells),
        skipped=tuple(left_out for sweep in sweeps for left_out in sweep.skipped),
    )


def task_key(spec: dict[str, Any]) -> str:
    """A task's spec as text, whichever way its JSON was written."""
    return json.dumps(spec, sort_keys=True)


def grid(
    task: AnyTask,
    *,
    heads: Sequence[int],
    ranks: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    seeds: Iterable[int] = range(4),
    learning_rates: Sequence[float] | None = None,
    model: Callable[[int], AbstractSpec] | None = None,
    train: TrainSpec | None = None,
    skip: Callable[[Cell], str | None] | None = None,
) -> Sweep:
    """The sweep over every combination.

    `model(heads)` gives the spec for a head count; without it, `default_model(task)` does. `ranks` are set on each of
    them; without it, every spec keeps its own. `skip(cell)` may return the reason why a cell is left out.
    """
    model = model or default_model(task)
    train = train or default_train(task)
    lengths = _distinct("lengths", [task.length] if lengths is None else lengths)
    rates = _distinct("learning_rates", [train.learning_rate] if learning_rates is None else learning_rates)
    heads, seeds = _distinct("heads", heads), _distinct("seeds", list(seeds))
    specs = [model(count) for count in heads]
    if ranks is not None:
        specs = [spec.with_rank(rank) for spec in specs for rank in _distinct("ranks", ranks)]
    for model_spec in specs:
        _require_fit(task, model_spec)
        require(
            train.precision in model_spec.precisions,
            f"a {model_spec.kind} model is trained in {' or '.join(model_spec.precisions)}, got {train.precision}.",
        )
    require(
        task.endless or train.train_examples > 0,
        f"{task.name} is stored examples, which cannot be drawn afresh; train_examples must be at least 1, got 0.",
    )
    spec = task.spec()
    for length in lengths:
        task.at(length)  # refuses a length the task cannot have, before anything is trained
    cells = [
        Cell(
            task=spec,
            length=length,
            model=model_spec,
            train=dataclasses.replace(train, learning_rate=rate),
            seed=seed,
        )
        for length in lengths
        for model_spec in specs
        for rate in rates
        for seed in seeds
    ]
    reasons = {cell.key: reason for cell in cells if skip is not None and (reason := skip(cell))}
    return Sweep(
        tasks=(task,),
        cells=tuple(cell for cell in cells if cell.key not in reasons),
        skipped=tuple(Skipped(cell, reasons[cell.key]) for cell in cells if cell.key in reasons),
    )


ENCODER_HIDDEN = 256
"""Feed-forward width of the encoder that is tried where none is given; the second paper's 2048 is a GPU's."""


def default_model(task: AnyTask) -> Callable[[int], AbstractSpec]:
    """What is tried where nothing is said; places are encoded where they can matter.

    A task answered for the whole sequence gets heads of 8 numbers between nets of 32 units, one that is answered at its
    tokens or at a query gets an encoder layer of full rank, norms first: it trains in fewer steps.
    """
    positions: Positions = "additive" if task.uses_positions else "none"
    if isinstance(task, LabelledTask):
        return functools.partial(labelled_encoder, task.form)
    if task.answered_at == "sequence":
        return lambda heads: ClassTokenSpec(heads=heads, positions=positions)
    return lambda heads: EncoderSpec(
        heads=heads,
        rank=task.dim,
        width=task.dim,
        hidden=ENCODER_HIDDEN,
        norm_first=True,
        positions=positions,
        answered_at=task.answered_at,
    )


def default_train(task: AnyTask) -> TrainSpec:
    """The usual recipe; encoders learn from a stream, as in the second paper."""
    if isinstance(task, LabelledTask):
        return LABELLED_TRAIN
    return TrainSpec() if task.answered_at == "sequence" or not task.endless else TrainSpec(train_examples=0)


def _require_fit(task: AnyTask, spec: AbstractSpec) -> None:
    require(
        isinstance(spec, EncoderSpec) or not isinstance(task, LabelledTask),
        f"{task.name} is data with labels, which a class-token model cannot read; take an EncoderSpec.",
    )
    require(
        spec.answered_at == task.answered_at,
        f'{task.name} is answered at "{task.answered_at}", the model at "{spec.answered_at}"; '
        f'take an EncoderSpec with answered_at="{task.answered_at}".',
    )


def _distinct(name: str, values: Sequence) -> list:
    require(len(values) > 0, f"{name} must name at least one value.")
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    require(len(set(plain)) == len(plain), f"{name} must not repeat a value, got {plain}.")
    return plain


@dataclass(frozen=True)
class Shape:
    """What one compiled program is made for. `train` has its learning rate and seeds taken out: those are members."""

    task: str
    length: int
    model: AbstractSpec
    train: TrainSpec


@dataclass(frozen=True)
class Bucket:
    """Cells that one program trains side by side."""

    shape: Shape
    cells: tuple[Cell, ...]


def shape_of(cell: Cell) -> Shape:
    return Shape(
        task=task_key(cell.task),
        length=cell.length,
        model=cell.model.padded(),
        train=dataclasses.replace(cell.train, learning_rate=1.0),
    )


def buckets(cells: Iterable[Cell], max_members: Callable[[Shape], int] | None = None) -> list[Bucket]:
    """Cells grouped by shape, in their order, and split where a group has more than `max_members(shape)` of them."""
    groups: dict[Shape, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(shape_of(cell), []).append(cell)
    made = []
    for shape, group in groups.items():
        size = len(group) if max_members is None else max(1, max_members(shape))
        pieces = -(-len(group) // size)
        size = -(-len(group) // pieces)  # even pieces: one program serves them all but perhaps the last
        made += [Bucket(shape, tuple(group[start : start + size])) for start in range(0, len(group), size)]
    return made
