"""The curves of what is in training, drawn for the page: cheap enough to be drawn anew twice per second."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..report.chart import COLOURS, MAX_DRAWN, MIN_DRAWN
from ..store.live import LiveCurve

WIDTH, HEIGHT = 460.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 24.0, 8.0, 38.0


@dataclass(frozen=True)
class Drawn:
    """Lines (colour, points, what they are), ticks of both axes (place, words), and the legend (colour, words)."""

    lines: tuple[tuple[int, str, str], ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    legend: tuple[tuple[int, str], ...]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    bottom: float = HEIGHT - BOTTOM


def drawn_curves(curves: Iterable[LiveCurve]) -> Drawn | None:
    """Validation error (on a logarithmic axis) against steps, a colour per head count; None where there is none yet."""
    known = [
        (curve, points)
        for curve in curves
        for points in [[(s, e) for s, e in curve.points if MIN_DRAWN <= e <= MAX_DRAWN]]
        if points
    ]
    if not known:
        return None
    errors = [error for _, points in known for _, error in points]
    low, high = math.floor(math.log10(min(errors))), math.ceil(math.log10(max(errors)))
    high = max(high, low + 1)
    last = max(max(curve.steps, points[-1][0]) for curve, points in known)

    def x(step: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * step / last, 1)

    def y(error: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(error)) / (high - low), 1)

    heads = sorted({curve.heads for curve, _ in known})
    colour = {count: place % len(COLOURS) for place, count in enumerate(heads)}
    every = max(1, (high - low) // 4)
    return Drawn(
        lines=tuple(
            (colour[curve.heads], " ".join(f"{x(step)},{y(error)}" for step, error in points), _words(curve, points))
            for curve, points in known
        ),
        x_ticks=tuple((x(step), f"{step:g}") for step in _steps(last)),
        y_ticks=tuple((y(10.0**power), _power(power)) for power in range(low, high + 1, every)),
        legend=tuple((colour[count], f"{count} head{'s' if count != 1 else ''}") for count in heads),
    )


def _words(curve: LiveCurve, points: list[tuple[int, float]]) -> str:
    step, error = points[-1]
    return f"{curve.heads} heads, {curve.length} tokens, seed {curve.seed}, {curve.start}: {error:.2g} at step {step}"


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -4 < power < 5 else f"1e{power}"


def _steps(last: int) -> list[float]:
    """Round numbers of steps, four or fewer."""
    size = 10.0 ** math.floor(math.log10(last))
    gap = next(gap for gap in (size / 5, size / 2, size, 2 * size, 5 * size) if last / gap <= 4)
    return [gap * i for i in range(int(last / gap) + 1)]
