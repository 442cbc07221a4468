"""Buckets: the cells that one compiled program trains.

Same task, length and training, same model but for the number of heads, which is padded (`spec.padded()`). Buckets
depend only on the cells they are made of, so an interrupted sweep and its continuation share them.
"""

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..models import AbstractSpec, spec_from_dict
from ..store import Cell, TrainSpec, json_text
from ..store.cell import MIN_VALIDATION_EXAMPLES


@dataclass(frozen=True)
class ProgramShape:
    """Compilation key: the model spec and the training settings that all members share."""

    model: AbstractSpec
    train: TrainSpec


@dataclass(frozen=True)
class BucketShape:
    """Settings that the cells of a bucket share. The learning rate in `train` is 1: rates, like seeds, vary by member.

    Models that start from random weights are scaled by some tokens first; those that start from trained ones are not.
    """

    task: str
    length: int
    model: AbstractSpec
    train: TrainSpec
    from_random: bool = True

    @property
    def program(self) -> ProgramShape:
        """Steps and learning rate vary by member, and the examples come with the data: stored ones, or a stream."""
        stored = min(self.train.train_examples, 1)
        examples = {"train_examples": stored, "validation_examples": MIN_VALIDATION_EXAMPLES, "data_seed": 0}
        return ProgramShape(self.model, replace(self.train, steps=1, learning_rate=1.0, **examples))


@dataclass(frozen=True)
class Bucket:
    """Cells that one program trains side by side, in a program that has `slots` for at least as many."""

    shape: BucketShape
    cells: tuple[Cell, ...]
    slots: int


def spec_of(cell: Cell) -> AbstractSpec:
    """The model spec of a cell."""
    return _spec_of(json_text(cell.model))


@functools.lru_cache(maxsize=4096)
def _spec_of(text: str) -> AbstractSpec:
    return spec_from_dict(json.loads(text))


def shape_of(cell: Cell) -> BucketShape:
    """The shape of the program that trains a cell."""
    return _shape(json_text(cell.task), cell.length, json_text(cell.model), cell.train, cell.start == "random")


@functools.lru_cache(maxsize=4096)
def _shape(task: str, length: int, model: str, train: TrainSpec, from_random: bool) -> BucketShape:
    return BucketShape(task, length, _spec_of(model).padded(), replace(train, learning_rate=1.0), from_random)


def parent_spec(cell: Cell) -> AbstractSpec:
    """The spec of the model that a cell starts from: its own, with the heads that are removed."""
    spec = spec_of(cell)
    # Not of the spec: one head has keys of its own, whether or not it shared them with others before.
    return spec_of(replace(cell, model=cell.model | {"heads": spec.heads + len(cell.removed)}))


def buckets(
    cells: Iterable[Cell], max_members: Callable[[BucketShape], int], slots: Callable[[BucketShape, int, int], int]
) -> list[Bucket]:
    """Cells grouped by shape, in their order; a group of more than `max_members(shape)` is split evenly.

    `slots(shape, members, max_members)` says for how many members the program of a bucket is compiled.
    """
    groups: dict[BucketShape, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(shape_of(cell), []).append(cell)
    split = []
    for shape, group in groups.items():
        most = max(1, max_members(shape))
        pieces = -(-len(group) // most)
        size = -(-len(group) // pieces)  # even pieces: one program serves them all but perhaps the last
        parts = (tuple(group[start : start + size]) for start in range(0, len(group), size))
        split += [Bucket(shape, part, slots(shape, len(part), most)) for part in parts]
    return split
