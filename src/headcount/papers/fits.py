"""Laws fitted to errors: a power of one quantity, a learning curve, the first paper's surface over heads and length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..answer.bootstrap import COVERAGE

DELTAS = np.linspace(0.0, 2.0, 41)
"""Where the surface's delta is looked for, before it is refined between the neighbours of the best."""
SMALLEST_SHARE = 1e-4
"""Shares nearer to 0 or 1 than this count as this: 0 and 1 have no log-odds."""


class Estimate(NamedTuple):
    """A value and its 90 % interval."""

    low: float
    value: float
    high: float


class FittedLine(NamedTuple):
    """A line of least squares. `margin` is Student's t times the scatter of the points around it, 90 % of them within.

    Two points say nothing of their scatter: the margin is then infinite. `middle` and `spread` are the mean of x, and
    the sum of squares of x around it.
    """

    slope: float
    intercept: float
    margin: float
    middle: float
    spread: float
    points: int

    @property
    def slopes(self) -> Estimate:
        margin = float(self.margin / np.sqrt(self.spread))
        return Estimate(self.slope - margin, self.slope, self.slope + margin)


def fitted_line(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> FittedLine:
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - intercept - slope * x
    margin = _within(np.sqrt(residual @ residual / max(1, len(x) - 2)), len(x) - 2)
    spread = float(np.sum((x - x.mean()) ** 2))
    return FittedLine(float(slope), float(intercept), margin, float(x.mean()), spread, len(x))


def _within(deviation: float, freedom: int) -> float:
    """Bound 90 % of a normal quantity whose deviation was estimated; infinite where nothing estimates it."""
    if freedom < 1:
        return np.inf
    from scipy.special import stdtrit  # imported where it is used, like scipy.optimize below: they load slowly

    return float(stdtrit(freedom, (1 + COVERAGE) / 2) * deviation)


@dataclass(frozen=True)
class PowerLaw:
    """y = constant * x**exponent; the exponent lies in [low, high] with 90 % confidence under log-normal scatter."""

    constant: float
    exponent: float
    low: float
    high: float
    points: int

    def at(self, x: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        return self.constant * np.asarray(x, float) ** self.exponent


def power_law(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> PowerLaw | None:
    """Fit least squares on logarithms over the finite and positive points; None with fewer than two."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    kept = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    if len(np.unique(x[kept])) < 2:
        return None
    line = fitted_line(np.log(x[kept]), np.log(y[kept]))
    low, exponent, high = line.slopes
    return PowerLaw(float(np.exp(line.intercept)), exponent, low, high, line.points)


@dataclass(frozen=True)
class LearningCurve:
    """log(share / (1 - share)) of wrong answers as a line in the logarithm of the number of examples.

    Its margin covers the scatter around the line, or that of the mean over seeds where it is larger.
    """

    line: FittedLine

    def at(self, examples: float) -> Estimate:
        """Return the share with this many examples, and the interval that the mean over seeds would lie in."""
        line, x = self.line, np.log(examples)
        margin = line.margin * np.sqrt(1 + 1 / line.points + (x - line.middle) ** 2 / line.spread)
        middle = line.intercept + line.slope * x
        return Estimate(*(float(0.5 + 0.5 * np.tanh(o / 2)) for o in (middle - margin, middle, middle + margin)))


def learning_curve(examples: Sequence[int], shares: Float[np.ndarray, "examples seeds"]) -> LearningCurve | None:
    """Fit the mean log-odds over seeds, NaN left out; None with fewer than three numbers of examples."""
    clipped = np.clip(shares, SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    rows = [row[np.isfinite(row)] for row in np.log(clipped / (1 - clipped))]
    there = [(count, row) for count, row in zip(examples, rows, strict=True) if len(row)]
    if len(there) < 3:
        return None
    line = fitted_line(np.log([count for count, _ in there]), np.array([row.mean() for _, row in there]))
    seeds = [len(row) for _, row in there]
    freedom = sum(seeds) - len(there)
    squares = sum(float(np.sum((row - row.mean()) ** 2)) for _, row in there)
    # The deviation of a mean over as many seeds as a row has on average.
    noise = _within(np.sqrt(squares / max(1, freedom) / np.mean(seeds)), freedom) if freedom else 0.0
    return LearningCurve(line._replace(margin=max(line.margin, noise)))


@dataclass(frozen=True)
class Surface:
    """err = c T**b exp(a h / T**delta); `log_error` is the mean absolute error of its logarithm (natural)."""

    a: float
    b: float
    c: float
    delta: float
    log_error: float
    cells: int

    def at(self, heads: Float[np.ndarray, "..."], length: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        heads, length = np.asarray(heads, float), np.asarray(length, float)
        return self.c * length**self.b * np.exp(self.a * heads / length**self.delta)


def surface_fit(
    heads: tuple[int, ...], lengths: tuple[int, ...], errors: Float[np.ndarray, "heads lengths"]
) -> Surface | None:
    """Fit the surface of least mean absolute error in log scale, delta from 0 to 2, over the cells that are there.

    For a given delta the logarithm is linear in (log c, b, a), and its least absolute error a linear program with an
    exact answer; only delta is searched for. None with fewer than five cells, two head counts or two lengths. Source:
    Yu et al. (arXiv 2510.06662), Figure 2b.
    """
    from scipy.optimize import minimize_scalar

    grid_heads, grid_lengths = np.meshgrid(np.asarray(heads, float), np.asarray(lengths, float), indexing="ij")
    kept = np.isfinite(errors) & (errors > 0)
    h, t, log_error = grid_heads[kept], grid_lengths[kept], np.log(errors[kept])
    if len(h) < 5 or len(np.unique(h)) < 2 or len(np.unique(t)) < 2:
        return None

    def fit(delta: float) -> tuple[np.ndarray, float]:
        return _least_absolute(np.stack([np.ones_like(t), np.log(t), h / t**delta], axis=1), log_error)

    losses = [fit(delta)[1] for delta in DELTAS]
    best = int(np.argmin(losses))
    bounds = (DELTAS[max(0, best - 1)], DELTAS[min(len(DELTAS) - 1, best + 1)])
    refined = minimize_scalar(lambda delta: fit(delta)[1], bounds=bounds, method="bounded", options={"xatol": 1e-5})
    delta = float(refined.x) if refined.fun < losses[best] else float(DELTAS[best])
    (log_c, b, a), least = fit(delta)
    return Surface(a=float(a), b=float(b), c=float(np.exp(log_c)), delta=delta, log_error=least, cells=len(h))


def _least_absolute(terms: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Find x of least mean |terms x - values|: the least sum of slacks s with -s <= terms x - values <= s."""
    from scipy.optimize import linprog

    count, width = terms.shape
    slack = np.eye(count)
    program = linprog(
        np.concatenate([np.zeros(width), np.ones(count)]),
        A_ub=np.block([[terms, -slack], [-terms, -slack]]),
        b_ub=np.concatenate([values, -values]),
        bounds=[(None, None)] * width + [(0, None)] * count,
        method="highs",
    )
    x = program.x[:width]
    return x, float(np.mean(np.abs(terms @ x - values)))
