"""Assumption 2 of the first paper, tested clause by clause on the cube [0,1]^d.

    range  f_i maps the cube into [0,1]                 (section 3)
    2.1    f_i has a unique global minimiser x^(i), with value z_i*
    2.2    the minimisers are pairwise distinct
    2.3    the Hessian of f_i at x^(i) is positive definite; no linear component meets it, so neither a sum of maxima
           nor max + min does. The proof of Theorem 2(2) uses only a rise along a segment from x^(i)
    2.4    every partial derivative of F0 at (z_1*, .., z_D*) is non-zero
    sets   |S_i| >= T/4                                  (section 3)

The test is numerical: minimisers come from many starts of a bounded quasi-Newton search in float64. It can refute a
clause with a witness; where it finds none, that supports the clause but does not prove it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize

from .._precision import traced_in_double
from ..errors import InputError
from ..keys import named_generator
from ..tasks.retrieval import Retrieval

STARTS = 48
VALUE_TOLERANCE = 1e-7
"""Minima that differ by no more count as equal."""
PLACE_TOLERANCE = 1e-3
"""Minimisers no farther apart count as one point."""


class Clause(NamedTuple):
    """One clause, whether it holds, and the numbers that show it."""

    name: str
    holds: bool
    evidence: str


@dataclass(frozen=True, kw_only=True)
class AssumptionReport:
    """The clauses of Assumption 2 for one task, with numbers.

    `minimisers[i]` is x^(i), `minima[i]` its value, `hessian_floor[i]` the smallest Hessian eigenvalue there, and
    `outer_gradient[o, i]` the derivative of output o of F0 with respect to z_i at the minima.
    """

    clauses: tuple[Clause, ...]
    minimisers: np.ndarray
    minima: np.ndarray
    hessian_floor: np.ndarray
    outer_gradient: np.ndarray

    @property
    def failing(self) -> tuple[str, ...]:
        """Names of the clauses that do not hold."""
        return tuple(clause.name for clause in self.clauses if not clause.holds)

    @property
    def holds(self) -> bool:
        """Whether every clause holds."""
        return not self.failing


def check_assumptions(task: Retrieval) -> AssumptionReport:
    """Test every clause of Assumption 2, and the size of the position sets, numerically on the cube [0, 1]^dim.

    Args:
        task: A retrieval task; its components and outer map must be differentiable in JAX.

    Returns:
        An `AssumptionReport`: `.holds`, the names of `.failing` clauses, and the evidence for each clause.

    Raises:
        InputError: `task` is not a `Retrieval`.

    Example:
        >>> import headcount as hc
        >>> report = hc.check_assumptions(hc.find_task("max-plus-min"))
        >>> report.holds, report.failing
        (False, ('2.3',))
    """
    if not isinstance(task, Retrieval):
        raise InputError(what="task", given=getattr(task, "name", task), needed="a retrieval task")
    with jax.enable_x64(True):
        features = traced_in_double(task.features, task.dim)
        outer = traced_in_double(task.outer, len(task.position_sets))
        # Compiled whole: one by one, their operations would be some hundred programs.
        component = jax.jit(jax.value_and_grad(lambda x, i: features(x)[i]))
        everywhere = jax.jit(jax.vmap(features))
        searches = [_minimise(component, everywhere, i, task.dim) for i in range(len(task.position_sets))]
        places, minima, rivals, lowest, highest = (np.array(part) for part in zip(*searches, strict=True))
        hessian = jax.jit(jax.hessian(features))  # of all components; only the i-th is used at the i-th minimiser
        floors = np.array([np.linalg.eigvalsh(np.asarray(hessian(place))[i])[0] for i, place in enumerate(places)])
        gradient = np.atleast_2d(np.asarray(jax.jit(jax.jacobian(outer))(minima)))
    slopes = np.max(np.abs(gradient), axis=0)
    together, nearest = _nearest_minimisers(places)
    smallest = min(len(set_places) for set_places in task.position_sets)
    size = f"the smallest S_i holds {smallest} of {task.length} positions"
    # Of every clause, by components, whether it fails and what is said then; what is said where it holds.
    outside = (lowest < -VALUE_TOLERANCE) | (highest > 1 + VALUE_TOLERANCE)
    rows = (
        (
            "range",
            [f"f_{i + 1} takes values in [{lowest[i]:.4g}, {highest[i]:.4g}]" for i in np.flatnonzero(outside)],
            "every sampled value lies in [0, 1]",
        ),
        (
            "2.1",
            [
                f"f_{i + 1} reaches its minimum {minima[i]:.4g} at {rivals[i]} other end points of {STARTS} searches"
                for i in np.flatnonzero(rivals)
            ],
            f"all {STARTS} searches per component end at one minimiser",
        ),
        ("2.2", [nearest] if together else [], nearest),
        (
            "2.3",
            [
                f"the Hessian of f_{i + 1} has eigenvalue {floors[i]:.4g} at x^({i + 1})"
                for i in np.flatnonzero(~(floors > 1e-6))
            ],
            f"smallest Hessian eigenvalue {floors.min():.4g}",
        ),
        (
            "2.4",
            [f"dF0/dz_{i + 1} is {slopes[i]:.3g} at the minima" for i in np.flatnonzero(~(slopes > 1e-9))],
            f"smallest |dF0/dz_i| is {slopes.min():.4g}",
        ),
        ("sets", [size] if 4 * smallest < task.length else [], size),
    )
    return AssumptionReport(
        clauses=tuple(Clause(name, not failures, "; ".join(failures) or support) for name, failures, support in rows),
        minimisers=places,
        minima=minima,
        hessian_floor=floors,
        outer_gradient=gradient,
    )


def _minimise(component, everywhere, i: int, dim: int) -> tuple[np.ndarray, float, int, float, float]:
    """Return x^(i), z_i*, how many end points elsewhere reach z_i*, and the range of f_i."""

    def value_and_slope(x):
        value, gradient = component(x, i)
        return float(value), np.asarray(gradient, np.float64)

    generator = named_generator(0, "assumption search", i)
    ends = [
        minimize(value_and_slope, start, jac=True, bounds=[(0, 1)] * dim, method="L-BFGS-B", tol=1e-14)
        for start in generator.random((STARTS, dim))
    ]
    best = min(ends, key=lambda end: end.fun)
    lowest, away = best.fun + VALUE_TOLERANCE, PLACE_TOLERANCE
    rivals = sum(end.fun <= lowest and bool(np.linalg.norm(end.x - best.x) > away) for end in ends)
    sampled = np.asarray(everywhere(generator.random((4096, dim))))[:, i]
    return best.x, float(best.fun), rivals, min(float(best.fun), sampled.min()), float(sampled.max())


def _nearest_minimisers(places: np.ndarray) -> tuple[bool, str]:
    """Return whether the two nearest minimisers are one point, and how far apart they are."""
    count = len(places)
    if count < 2:
        return False, "there is only one minimiser"
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.where(np.eye(count), np.inf, 0)
    i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
    words = f"nearest minimisers x^({i + 1}) and x^({j + 1}) are {gaps[i, j]:.4g} apart"
    return bool(gaps[i, j] <= PLACE_TOLERANCE), words
