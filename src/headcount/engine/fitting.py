"""Whether what is asked for can be counted at all: sizes by arithmetic, before anything is made.

Whether it can be trained is asked of the machine that trains: `Plan.require_trainable`.
"""

import math
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from .._limits import require_size, require_within

DRAWN_FREELY = ("seed", "data_seed", "task_seed")
"""Axes whose values are names of draws, not sizes."""


def require_axes_fit(axes: Mapping[str, Sequence[Any]]) -> None:
    """Raise `InputError` if axes have more combinations than are allowed, or a value that no machine can have."""
    counts = {axis: len(values) if isinstance(values, Sized) else 1 for axis, values in axes.items()}
    models = math.prod(counts.values())
    listed = " x ".join(f"{count:,} of {axis}" for axis, count in counts.items() if count > 1)
    require_within(f"{models:,} models are asked for ({listed})", models, "HEADCOUNT_MAX_MODELS")
    for axis, values in axes.items():
        _require_sizes(axis, values if isinstance(values, Sized) else ())


def require_sizes_fit(settings: Mapping[str, Any]) -> None:
    """Raise `InputError` if settings of a model or of its training have a size that no machine can have."""
    for name, value in settings.items():
        _require_sizes(name, [value])


def _require_sizes(name: str, values: Sequence[Any]) -> None:
    if name not in DRAWN_FREELY:
        for value in values:
            require_size(name, value)
