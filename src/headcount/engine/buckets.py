"""Buckets: the cells that one compiled program trains.

Same task, length and training, same model but for the number of heads, which is padded (`spec.padded()`). Buckets
depend only on the cells they are made of, so an interrupted sweep and its continuation share them.
"""

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..models import AbstractSpec, spec_from_dict
from ..store import Cell, TrainSpec
from .sweep import task_key


@dataclass(frozen=True)
class Shape:
    """What one program is compiled for. The learning rate in `train` is 1: rates, like seeds, vary by member."""

    task: str
    length: int
    model: AbstractSpec
    train: TrainSpec


@dataclass(frozen=True)
class Bucket:
    """Cells that one program trains side by side."""

    shape: Shape
    cells: tuple[Cell, ...]


def spec_of(cell: Cell) -> AbstractSpec:
    """The model spec of a cell."""
    return _spec_of(task_key(cell.model))


@functools.lru_cache(maxsize=4096)
def _spec_of(text: str) -> AbstractSpec:
    return spec_from_dict(json.loads(text))


def shape_of(cell: Cell) -> Shape:
    """The shape of the program that trains a cell."""
    return Shape(
        task=task_key(cell.task),
        length=cell.length,
        model=spec_of(cell).padded(),
        train=replace(cell.train, learning_rate=1.0),
    )


def buckets(cells: Iterable[Cell], max_members: Callable[[Shape], int]) -> list[Bucket]:
    """Cells grouped by shape, in their order; a group of more than `max_members(shape)` is split evenly."""
    groups: dict[Shape, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(shape_of(cell), []).append(cell)
    split = []
    for shape, group in groups.items():
        pieces = -(-len(group) // max(1, max_members(shape)))
        size = -(-len(group) // pieces)  # even pieces: one program serves them all but perhaps the last
        split += [Bucket(shape, tuple(group[start : start + size])) for start in range(0, len(group), size)]
    return split
