"""One question about heads, and every cell that may help to answer it."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..engine import Sweep, spec_of
from ..engine.sweep import sweep
from ..errors import InputError
from ..models import AbstractSpec
from ..store import Cell, Experiment, TrainSpec, Value
from ..tasks import AbstractTask
from .levels import DESCENT_RATE, DESCENT_SHARE

FULL_RATE_HEADS = 16
"""With more heads than this the learning rate falls in proportion."""
AXES = ("heads", "length", "data_seed", "start", "seed")


@dataclass(kw_only=True)
class Question:
    """The head counts that may be tried on a task, and the cells asked for so far.

    `heads` are in rising order, and the last is where the descent begins. `most` is how far it may be raised. `taken`
    are places of the experiment that are stored, with the keys of their cells.
    """

    task: AbstractTask
    model: Callable[..., AbstractSpec]
    train: TrainSpec
    heads: tuple[int, ...]
    most: int
    lengths: tuple[int, ...]
    cells: dict[str, Cell] = field(default_factory=dict)
    taken: dict[tuple[Value, ...], str] = field(default_factory=dict)

    def __post_init__(self):
        whole = self._sweep(self.heads, self.lengths, [self.train.data_seed], [0])
        settings = dict(whole.experiment.settings)
        settings["train"] = settings["train"] | {"data_seed": self.train.data_seed}  # of the first draw
        axes = AXES if self.removes_heads else tuple(axis for axis in AXES if axis not in ("data_seed", "start"))
        self.experiment: Experiment = replace(whole.experiment, axes=axes, places={}, settings=settings)

    def _sweep(self, heads: Sequence[int], lengths: Sequence[int], draws: Sequence[int], seeds: Iterable[int]) -> Sweep:
        axes = {"heads": heads, "length": lengths, "data_seed": draws, "seed": list(seeds)}
        return sweep(self.task, axes=axes, model=self.model, train=self.train)

    @property
    def removes_heads(self) -> bool:
        """Whether models of fewer heads can descend from those of more: the same spec, but for the heads."""
        few, many = (self.model(count) for count in (self.heads[0], self.heads[-1]))
        if not many.removes_heads:
            return False
        try:
            return few == replace(many, heads=few.heads)  # pyright: ignore[reportArgumentType]
        except InputError:  # the other fields of the larger model do not go with so few heads
            return False

    def between(self, low: int, high: int) -> list[int]:
        """Return the head counts that may be tried, from `low` to `high`."""
        larger = range(self.heads[-1] + 1, self.most + 1)
        return [count for count in (*self.heads, *larger) if low <= count <= high]

    def around(self, heads: int) -> list[int]:
        """Return the first head count that may be tried and is at least `heads`, and its two neighbours."""
        counts = self.between(1, self.most)
        place = next((place for place, count in enumerate(counts) if count >= heads), len(counts) - 1)
        return counts[max(0, place - 1) : place + 2]

    def can_draw(self, number: int) -> bool:
        """Whether there is another draw of the data, of which the validation examples are not all alike."""
        if not self.task.resamples or self.task.endless:
            return self.task.resamples
        for length in self.lengths:
            split = self.task.at(length).examples(
                self.train.train_examples, self.train.validation_examples, self.data_seed(number)
            )
            if not self.task.objective.baseline(np.asarray(split.validation.targets))[0] > 0:
                return False
        return True

    def data_seed(self, number: int) -> int:
        """Return the data seed of a draw of the data."""
        return self.train.data_seed + number

    def random(self, heads: Sequence[int], seeds: Iterable[int], *, draw: int = 0, rate: float = 1.0) -> list[Cell]:
        """Add random starts, at every length, at a share of the learning rate; with many heads at a smaller one."""
        cells = []
        if not heads:
            return cells
        for cell in self._sweep(heads, self.lengths, [self.data_seed(draw)], seeds).cells:
            share = rate * min(1.0, FULL_RATE_HEADS / cell.model["heads"])
            cell = replace(cell, train=replace(cell.train, learning_rate=share * self.train.learning_rate))
            self._add(cell)
            cells.append(cell)
        return cells

    def continued(self, parent: Cell) -> Cell:
        """Add a trained model, trained on for as long again."""
        train = replace(self.train, learning_rate=_slower(parent), data_seed=parent.train.data_seed)
        return self._placed(replace(parent, train=train, parent=parent.key, removed=()))

    def descended(self, parent: Cell, removed: Sequence[int]) -> Cell:
        """Add a trained model without some of its heads, trained on for a share of the steps."""
        spec = spec_of(parent)
        train = replace(
            self.train,
            steps=max(1, round(DESCENT_SHARE * self.train.steps)),
            learning_rate=_slower(parent),
            data_seed=parent.train.data_seed,
        )
        model = parent.model | {"heads": spec.heads - len(removed)}
        child = replace(parent, model=model, train=train, parent=parent.key, removed=tuple(sorted(removed)))
        return self._placed(child)

    def _placed(self, child: Cell) -> Cell:
        """Return the child with a seed of its own among those of its place; itself where it was asked for before."""
        for seed in itertools.count():
            child = replace(child, seed=seed)
            if self.taken.get(self._place(child), child.key) == child.key:
                self._add(child)
                return child
        raise AssertionError("unreachable")

    def _place(self, cell: Cell) -> tuple[Value, ...]:
        place = {"heads": cell.model["heads"], "length": cell.length, "data_seed": cell.train.data_seed}
        place |= {"start": cell.start, "seed": cell.seed}
        return tuple(place[axis] for axis in self.experiment.axes)

    def _add(self, cell: Cell) -> None:
        self.cells[cell.key] = cell
        self.taken[self._place(cell)] = cell.key

    def sweep_of(self, cells: Iterable[Cell]) -> Sweep:
        """Return these cells, each once, as part of the experiment."""
        cells = tuple({cell.key: cell for cell in cells}.values())
        experiment = replace(self.experiment, places={cell.key: self._place(cell) for cell in cells})
        return Sweep(experiment=experiment, tasks=(self.task,), cells=cells)

    def whole(self) -> Experiment:
        """Return the experiment with every cell asked for so far."""
        return replace(self.experiment, places={key: self._place(cell) for key, cell in self.cells.items()})


def _slower(parent: Cell) -> float:
    """Return the peak learning rate of a model that starts from a trained one."""
    return (DESCENT_RATE if parent.start == "random" else 1.0) * parent.train.learning_rate
