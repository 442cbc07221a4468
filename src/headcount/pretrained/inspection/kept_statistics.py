"""The statistics of all layers as one file beside an unfinished inspection, so that going on gives the same numbers."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from ...errors import StoreError
from ...store.weights import Weights, read_weights, write_weights
from ..evaluation.layer_statistics import LayerStatistics

ARRAYS = ("moments", "cross", "inputs", "gradients", "fisher")


class KeptStatistics:
    """The original's statistics: read from the file, or measured once and written there.

    Args:
        measure: Measures them.
        path: The file; None keeps them in memory only.
    """

    def __init__(self, measure: Callable[[], tuple[LayerStatistics, ...]], path: Path | None = None):
        self._measure, self._path = measure, path

    @cached_property
    def layers(self) -> tuple[LayerStatistics, ...]:
        """One per layer."""
        if self._path is not None and self._path.exists():
            try:
                return from_arrays(read_weights(self._path))
            except (StoreError, KeyError):
                self._path.unlink()  # damaged: it can be measured again
        statistics = self._measure()
        if self._path is not None:
            try:
                write_weights(self._path, to_arrays(statistics))
            except OSError as error:
                raise StoreError(f"{self._path} cannot be written: {error.strerror or error}.") from error
        return statistics

    def forget(self) -> None:
        """Remove the file: nothing is left to be measured with it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def to_arrays(statistics: tuple[LayerStatistics, ...]) -> Weights:
    """All numbers, by layer and name."""
    arrays: Weights = {}
    for index, layer in enumerate(statistics):
        arrays |= {f"{index}.{name}": each for name in ARRAYS if (each := getattr(layer, name)) is not None}
        arrays[f"{index}.numbers"] = np.array([layer.target_square, layer.tokens], np.float64)
    return arrays


def from_arrays(arrays: Weights) -> tuple[LayerStatistics, ...]:
    """What `to_arrays` was given. KeyError where something is missing."""
    count = sum(name.endswith(".numbers") for name in arrays)
    layers = []
    for index in range(count):
        square, tokens = arrays[f"{index}.numbers"]
        layers.append(
            LayerStatistics(
                moments=arrays[f"{index}.moments"],
                cross=arrays[f"{index}.cross"],
                inputs=arrays[f"{index}.inputs"],
                gradients=arrays.get(f"{index}.gradients"),
                fisher=arrays.get(f"{index}.fisher"),
                target_square=float(square),
                tokens=int(tokens),
            )
        )
    return tuple(layers)
