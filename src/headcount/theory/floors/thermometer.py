"""One head of n numbers that answers a D-retrieval: a thermometer code of every component, read by clipped sums.

[low, high] is cut into c = floor(n / D) cells; u_ij = clip(c (f_i - low) / span - j, 0, 1) is how far f_i has come in
cell j. The values are v_ij = (exp(-b u_ij) - exp(-b)) / (1 - exp(-b)), 1 - u_ij for b = 0, and 0 outside S_i. The head
averages them with equal weights. The readout takes m_ij = min(1, T mean v_ij), inverts the code, and adds up over j:

    error <= L0 (span / c) min(1, log T / b) / 2        slope <= L0 T span (exp(b) - 1) / (b sqrt(c))

for every sequence, with L0 = sup |grad F0|_1. From n = D L0 span / (2 eps) on b = 0 is enough, and the slope is linear
in T. The proof is in docs/floors.md.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._shapes import Target, Tokens
from ...errors import InputError, require
from ...tasks import Retrieval
from ..constructions.parts import known_outer
from ..doors import require_below_one, require_counts, require_positive

MAX_SHARPNESS = 700.0
"""b above which exp(-b) is not a normal number in float64."""
ROUNDING = 1e-12


class ThermometerHead(eqx.Module):
    """One head that averages thermometer codes, and its readout. Call it with one sequence, in float64."""

    task: Retrieval
    cells: int = eqx.field(static=True)
    sharpness: float = eqx.field(static=True)
    """b, of the code inside a cell; 0 for a ramp."""
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    promised: float = eqx.field(static=True)
    """No sequence whose components lie in [low, high] has a larger error."""
    decades: float = eqx.field(static=True)
    """log10 of the readout's slope, at most."""

    @property
    def head_dim(self) -> int:
        return len(self.task.position_sets) * self.cells

    def output(self, tokens: Tokens) -> Float[Array, " n"]:
        """Output of the head: a mean over all tokens with equal weights."""
        levels = (jax.vmap(self.task.features)(tokens) - self.low) / (self.high - self.low)
        steps = jnp.clip(self.cells * levels[..., None] - jnp.arange(self.cells), 0.0, 1.0)
        codes = jnp.where(self.task.mask[..., None], self._code(steps), 0.0)
        return jnp.mean(codes, axis=0).ravel()

    def readout(self, output: Float[Array, " n"]) -> Target:
        totals = jnp.clip(output * self.task.length, 0.0, 1.0)
        steps = self._decode(totals).reshape(-1, self.cells).sum(axis=1)
        span, largest = self.high - self.low, max(len(places) for places in self.task.position_sets)
        # Sums only read too low, by at most twice this.
        minima = self.low + span * steps / self.cells + one_sided_error(largest, self.cells, self.sharpness, span) / 2
        return jnp.atleast_1d(self.task.outer(jnp.clip(minima, self.low, self.high)))

    def __call__(self, tokens: Tokens) -> Target:
        return self.readout(self.output(tokens))

    def _code(self, steps: Array) -> Array:
        if not self.sharpness:
            return 1 - steps
        least = math.exp(-self.sharpness)
        return (jnp.exp(-self.sharpness * steps) - least) / (1 - least)

    def _decode(self, codes: Array) -> Array:
        if not self.sharpness:
            return 1 - codes
        least = math.exp(-self.sharpness)
        return -jnp.log(codes * (1 - least) + least) / self.sharpness


def construct_thermometer(
    task: Retrieval,
    eps: float,
    *,
    head_dim: int | None = None,
    outer_slope: float | None = None,
    low: float = 0.0,
    high: float = 1.0,
) -> ThermometerHead:
    """Return one head of at most `head_dim` numbers that answers a retrieval within `eps`, everywhere.

    Without `head_dim`, so many numbers that the readout's slope is linear in the length. The other arguments, and what
    the result has, are those of `one_head_answer`.

    Example:
        >>> import headcount as hc
        >>> from headcount.theory import construct_thermometer
        >>> task = hc.find_task("max-plus-min", length=128)
        >>> head = construct_thermometer(task, 0.01)
        >>> head.head_dim, round(10**head.decades)
        (200, 26)
        >>> round(construct_thermometer(task, 0.01, head_dim=20).decades)
        21
    """
    slope = checked_slope(task, eps, outer_slope, low, high)
    dims, span = len(task.position_sets), high - low
    enough = cells_enough(eps, outer_slope=slope, span=span)
    if head_dim is not None:
        require_counts(head_dim=head_dim)
        require(head_dim >= dims, what="head_dim", given=head_dim, needed=f"at least D = {dims}, one cell each")
    cells = enough if head_dim is None else head_dim // dims
    largest = max(len(places) for places in task.position_sets)
    sharpness = _sharpness(largest, eps, cells, slope * span)
    require(
        sharpness <= MAX_SHARPNESS,
        what="head_dim",
        given=head_dim,
        needed=f"at least {dims * math.ceil(cells * sharpness / MAX_SHARPNESS)} for eps = {eps:g}: with fewer numbers "
        "exponentials leave the range of float64",
    )
    return ThermometerHead(
        task=task,
        cells=cells,
        sharpness=sharpness,
        low=low,
        high=high,
        promised=slope * one_sided_error(largest, cells, sharpness, span) / 2 + ROUNDING,
        decades=_decades(task.length, cells, sharpness, slope * span),
    )


def checked_slope(task: Retrieval, eps: float, outer_slope: float | None, low: float, high: float) -> float:
    """Return sup |grad F0|_1, as given or known; raise `InputError` where neither, or another argument is wrong."""
    require_below_one(eps=eps)
    require(math.isfinite(high - low) and low < high, what="low", given=low, needed=f"below high, {high:g}")
    known = known_outer(task)
    slope = known.steepness if outer_slope is None and known is not None else outer_slope
    if slope is None:
        raise InputError(
            f"{task.name}: outer_slope, sup |grad F0|_1, must be given; it is known of a sum and of max-plus-min only.",
            what="outer_slope",
            given=None,
            needed="sup |grad F0|_1 of the outer map",
        )
    require_positive(outer_slope=slope)
    return slope


def cells_enough(eps: float, *, outer_slope: float, span: float = 1.0) -> int:
    """Return the number of cells with which a ramp is within `eps`: L0 span / (2 eps), rounded up."""
    return max(1, math.ceil(outer_slope * span / (2 * eps) * (1 - 1e-12)))


def one_sided_error(length: int, cells: int, sharpness: float, span: float = 1.0) -> float:
    """Return how far below a minimum over `length` tokens its code can be read: a cell, or log T / b of it."""
    if length == 1:
        return 0.0
    return span / cells * (min(1.0, math.log(length) / sharpness) if sharpness else 1.0)


def thermometer_slope(length: int, eps: float, cells: int, *, outer_slope: float) -> float:
    """Return log10 of the slope with which one head of this many cells per component answers within `eps`."""
    return _decades(length, cells, _sharpness(length, eps, cells, outer_slope), outer_slope)


def thermometer_error(length: int, decades: float, cells: int, *, outer_slope: float) -> float:
    """Return the error that one head promises with a readout of slope 10^decades; infinite for none."""
    if _decades(length, cells, 0.0, outer_slope) > decades:
        return math.inf
    low, high = 0.0, 4 * (abs(decades) + 1) * math.log(10)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _decades(length, cells, middle, outer_slope) <= decades else (low, middle)
    return outer_slope * one_sided_error(length, cells, low) / 2


def _sharpness(length: int, eps: float, cells: int, outer_slope: float) -> float:
    """b; 0 where a ramp within each cell is enough."""
    cells_for_a_ramp = outer_slope / (2 * eps)
    return 0.0 if cells >= cells_for_a_ramp * (1 - 1e-12) else math.log(length) * cells_for_a_ramp / cells


def _decades(length: int, cells: int, sharpness: float, outer_slope: float) -> float:
    # log of (exp(b) - 1) / b without overflow; tiny b is a ramp.
    steeper = sharpness + math.log(-math.expm1(-sharpness) / sharpness) if sharpness > 1e-12 else 0.0
    return (math.log(outer_slope * length / math.sqrt(cells)) + steeper) / math.log(10)
