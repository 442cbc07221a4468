"""Laws fitted to errors: a power of one quantity, and the first paper's surface over heads and length."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._errors import HeadcountError, require
from .bootstrap import COVERAGE

DELTAS = np.linspace(0.0, 2.0, 41)
"""Where the surface's delta is looked for, before it is refined between the neighbours of the best."""


@dataclass(frozen=True)
class PowerLaw:
    """y = constant * x**exponent; the exponent lies in [low, high] with 90 % confidence under log-normal scatter.

    With two points the line is exact and says nothing of its own error: the interval is then all numbers.
    """

    constant: float
    exponent: float
    low: float
    high: float
    points: int

    def at(self, x: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        return self.constant * np.asarray(x, float) ** self.exponent


def power_law(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> PowerLaw | None:
    """Least squares on logarithms over the points that are there (finite and positive); None with fewer than two."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    kept = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    log_x, log_y = np.log(x[kept]), np.log(y[kept])
    if len(np.unique(log_x)) < 2:
        return None
    exponent, intercept = np.polyfit(log_x, log_y, 1)
    freedom = len(log_x) - 2
    margin = np.inf
    if freedom > 0:
        from scipy.special import stdtrit  # imported where it is used, like scipy.optimize below: they load slowly

        residual = log_y - intercept - exponent * log_x
        error = np.sqrt(residual @ residual / freedom / np.sum((log_x - log_x.mean()) ** 2))
        margin = stdtrit(freedom, (1 + COVERAGE) / 2) * error
    return PowerLaw(
        float(np.exp(intercept)), float(exponent), float(exponent - margin), float(exponent + margin), len(log_x)
    )


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
) -> Surface:
    """The surface with the least mean absolute error in log scale, delta from 0 to 2, over the cells that are there.

    For a given delta the logarithm is linear in (log c, b, a), and its least absolute error a linear program with an
    exact answer; only delta is searched for. Source: Yu et al. (arXiv 2510.06662), Figure 2b.
    """
    from scipy.optimize import minimize_scalar

    grid_heads, grid_lengths = np.meshgrid(np.asarray(heads, float), np.asarray(lengths, float), indexing="ij")
    require(
        errors.shape == grid_heads.shape,
        f"{len(heads)} heads x {len(lengths)} lengths need as many errors, got shape {errors.shape}.",
    )
    kept = np.isfinite(errors) & (errors > 0)
    h, t, log_error = grid_heads[kept], grid_lengths[kept], np.log(errors[kept])
    require(
        len(h) >= 5 and len(np.unique(h)) >= 2 and len(np.unique(t)) >= 2,
        "a surface of four numbers needs at least five cells over two head counts and two lengths; "
        f"{len(h)} cells over {len(np.unique(h))} head counts and {len(np.unique(t))} lengths are there.",
    )

    def loss(delta: float) -> float:
        return _least_absolute(_terms(h, t, delta), log_error)[1]

    losses = [loss(delta) for delta in DELTAS]
    best = int(np.argmin(losses))
    bounds = (DELTAS[max(0, best - 1)], DELTAS[min(len(DELTAS) - 1, best + 1)])
    refined = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-5})
    delta = float(refined.x) if refined.fun < losses[best] else float(DELTAS[best])
    (log_c, b, a), least = _least_absolute(_terms(h, t, delta), log_error)
    return Surface(a=a, b=b, c=float(np.exp(log_c)), delta=delta, log_error=least, cells=len(h))


def _terms(h: np.ndarray, t: np.ndarray, delta: float) -> np.ndarray:
    return np.stack([np.ones_like(t), np.log(t), h / t**delta], axis=1)


def _least_absolute(terms: np.ndarray, values: np.ndarray) -> tuple[tuple[float, float, float], float]:
    """Coefficients x of least mean |terms x - values|: the least sum of slacks s with -s <= terms x - values <= s."""
    from scipy.optimize import linprog

    count, width = terms.shape
    cost = np.concatenate([np.zeros(width), np.ones(count)])
    slack = np.eye(count)
    above, below = np.hstack([terms, -slack]), np.hstack([-terms, -slack])
    program = linprog(
        cost,
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([values, -values]),
        bounds=[(None, None)] * width + [(0, None)] * count,
        method="highs",
    )
    if not program.success:
        raise HeadcountError(f"the surface could not be fitted: {program.message}")
    x = program.x[:width]
    return (float(x[0]), float(x[1]), float(x[2])), float(np.mean(np.abs(terms @ x - values)))
