"""Parts that the charts of a trained model share: lines of loss increases, the tolerance, ticks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...answer.answer_base import Interval
from ...answer.words import decimal
from ...report.chart import Level, Series
from .facts import NO_LOSS, Increases

if TYPE_CHECKING:
    from .model import TrainedModel

LOWEST = 0.02
"""Increases below this share of the tolerance are drawn there: the axis is logarithmic."""


def needed_series(name: str, layers: Sequence[int], needs: Sequence[Interval | None], *, place: int = 0) -> Series:
    """A line of each layer's need with its interval; a gap where that is not known."""
    at, low, high = (
        tuple(float("nan") if need is None else float(getattr(need, edge)) for need in needs)
        for edge in ("at", "low", "high")
    )
    return Series(name, tuple(layers), at, place=place, low=low, high=high)


def increase_series(
    name: str, curve: Increases, model: "TrainedModel", *, place: int, band: bool = False, thin: bool = False
) -> Series:
    line = tuple(_shown(value, model) for value in curve.mean)
    low, high = (tuple(_shown(value, model) for value in edge) for edge in curve.bounds) if band else (None, None)
    return Series(name, curve.at, line, place=place, low=low, high=high, thin=thin)


def _shown(increase: float, model: "TrainedModel") -> float:
    """An increase as it is drawn on a logarithmic axis; NaN where there was no loss."""
    if increase >= NO_LOSS / len(model.layers or (1,)) / 1e3:
        return float("nan")
    return max(float(increase), _lowest(model))


def _lowest(model: "TrainedModel") -> float:
    return LOWEST * model.budget if model.budget > 0 else 1e-9


def drawn_at_bottom(model: "TrainedModel") -> str:
    """Part of a caption: small increases are drawn higher than they are."""
    return f"; less than {decimal(_lowest(model))} is drawn as that"


def increase_label(model: "TrainedModel") -> str:
    """The y axis of loss increases, with the loss's unit."""
    name = str(model.data.get("loss") or "loss").split(" (")
    unit = f" ({name[1]}" if len(name) > 1 else ""
    return f"loss increase{unit}"


def tolerance_level(model: "TrainedModel") -> tuple[Level, ...]:
    value = decimal(model.budget)
    return (Level("tolerance", f"tolerance: {value}", model.budget, value),) if model.budget > 0 else ()


def round_ticks(low: int, high: int) -> tuple[int, ...]:
    """Round counts from low to high, both included."""
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if (high - low) / size <= 9)
    inner = [tick for tick in range(-(-low // step) * step, high, step) if low < tick and high - tick > step / 2]
    return tuple(dict.fromkeys((low, *(tick for tick in inner if tick - low > step / 2), high)))
