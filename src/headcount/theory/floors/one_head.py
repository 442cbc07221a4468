"""The upper bound to Theorem 2(2): one head of D numbers answers every D-retrieval, with a steep readout.

All scores are equal, so the head averages v_i = exp(-b (f_i - low)) for t in S_i, else 0, and the readout takes the
logarithms of the means m_i = (T / |S_i|) mean v_i. The answer is within L0 log(T) / (2 b) for every sequence, L0 =
sup |grad F0|_1, with a slope of at most L0 (T / |S_i|) exp(b (high - low)) / b. For T below about 1 / eps a head that
counts cells has less, L0 span T p^T, p the least prime from L0 span / (2 eps) on: it rounds f_i to the middle of one of
p cells, and averages whole numbers whose sums tell all multisets apart (Bose and Chowla). The proofs are in
docs/floors.md.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._shapes import Target, Tokens
from ...errors import InputError, require
from ...tasks import Retrieval
from ..bounds import Bound, Condition
from ..constructions.parts import known_outer
from ..doors import require_below_one, require_counts, require_positive
from .bounded import BoundedClass, slope_needed

MAX_SHARPNESS = 700.0
"""b (high - low) above which exp(-b (f_i - low)) is not a normal number in float64."""
ROUNDING = 1e-12
MAX_EXACT = 1e9
"""Cells above are not searched for the least prime: there is one below twice their number."""
SOURCE = "ours: the better of a mean of exponentials with a logarithmic readout, and of counts of cells (Bose, Chowla)"


class OneHead(eqx.Module):
    """One head that averages D exponentials, and a readout of D logarithms. Call it with one sequence, in float64."""

    task: Retrieval
    sharpness: float = eqx.field(static=True)
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    promised: float = eqx.field(static=True)
    """No sequence whose components lie in [low, high] has a larger error."""
    decades: float = eqx.field(static=True)
    """log10 of the readout's slope, at most."""

    @property
    def head_dim(self) -> int:
        return len(self.task.position_sets)

    def output(self, tokens: Tokens) -> Float[Array, " D"]:
        """Output of the head: a mean over all tokens with equal weights."""
        values = jnp.exp(-self.sharpness * (jax.vmap(self.task.features)(tokens) - self.low))
        return jnp.mean(jnp.where(self.task.mask, values, 0.0), axis=0)

    def readout(self, output: Float[Array, " D"]) -> Target:
        sizes = jnp.asarray([len(places) for places in self.task.position_sets], output.dtype)
        # Outside this range no sequence has its output; the bounds make the slope finite everywhere.
        lowest = math.exp(-self.sharpness * (self.high - self.low))
        means = jnp.clip(output * self.task.length / sizes, lowest, 1.0)
        minima = self.low - (jnp.log(means) + jnp.log(sizes) / 2) / self.sharpness
        # No minimum lies outside, where F0 may be of any slope.
        minima = jnp.clip(minima, self.low, self.high)
        return jnp.atleast_1d(self.task.outer(minima))

    def __call__(self, tokens: Tokens) -> Target:
        return self.readout(self.output(tokens))


def one_head_error(length: int, decades: float, *, outer_slope: float) -> float:
    """Return the error that one head promises with a readout of slope 10^decades; S_i is the whole sequence, V = 1."""
    # exp(b) / b is least at b = 1 and rises from there: the largest b by bisection.
    low, high = 1.0, max(2.0, 4 * (abs(decades) + 1) * math.log(10))
    if _decades(low, outer_slope) > decades:
        return math.inf
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _decades(middle, outer_slope) <= decades else (low, middle)
    return outer_slope * math.log(length) / (2 * low)


def one_head_slope(length: int, eps: float, *, outer_slope: float, span: float = 1.0, share: float = 1.0) -> float:
    """Return log10 of the slope with which one head of D numbers answers within `eps`.

    `outer_slope` is L0, sup |grad F0|_1, `span` the length of the interval that f_i maps into, and `share` the share of
    the places that the smallest S_i has.

    Example:
        >>> from headcount.theory import one_head_slope
        >>> round(one_head_slope(128, 0.007, outer_slope=2.0))  # max + min
        298
    """
    require_counts(length=length)
    require_below_one(eps=eps)
    require_positive(outer_slope=outer_slope, span=span, share=share)
    return _decades(_sharpness(length, eps, outer_slope, span), outer_slope, span) - math.log10(share)


def one_head_answer(
    task: Retrieval, eps: float, *, outer_slope: float | None = None, low: float = 0.0, high: float = 1.0
) -> OneHead:
    """Return one head of D numbers that answers a retrieval within `eps`, everywhere.

    The components of the task take values in [low, high], as on the cube. `outer_slope`, L0 = sup |grad F0|_1 on
    [low, high]^D, may be left out where the outer map is known: a sum, or that of max-plus-min. Call the result with
    tokens; `.promised` bounds its error and `.decades` the slope of its readout. Raises `InputError` where `eps` needs
    exponentials below what float64 can hold, or `outer_slope` is missing.

    Example:
        >>> import headcount as hc
        >>> from headcount.theory import one_head_answer
        >>> one = one_head_answer(hc.find_task("max-plus-min", length=128), 0.007)
        >>> one.head_dim, round(one.decades)
        (2, 298)
    """
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
    largest = max(len(places) for places in task.position_sets)
    smallest = min(len(places) for places in task.position_sets)
    sharpness = _sharpness(largest, eps, slope, high - low)
    least = slope * math.log(largest) * (high - low) / (2 * MAX_SHARPNESS)
    require(
        sharpness * (high - low) <= MAX_SHARPNESS,
        what="eps",
        given=eps,
        needed=f"at least {least:.2g}, below which exponentials leave the range of float64",
    )
    share = smallest / task.length
    return OneHead(
        task=task,
        sharpness=sharpness,
        low=low,
        high=high,
        promised=slope * math.log(largest) / (2 * sharpness) + ROUNDING,
        decades=_decades(sharpness, slope, high - low) - math.log10(share),
    )


def counting_slope(length: int, eps: float, *, outer_slope: float, span: float = 1.0) -> float:
    """Return log10 of the slope with which one head of D numbers that counts cells answers within `eps`.

    Example:
        >>> from headcount.theory import counting_slope, one_head_slope
        >>> [round(slope(4, 0.01, outer_slope=2.0)) for slope in (counting_slope, one_head_slope)]
        [9, 58]
    """
    require_counts(length=length)
    require_below_one(eps=eps)
    require_positive(outer_slope=outer_slope, span=span)
    cells = outer_slope * span / (2 * eps)
    numbers = itertools.count(max(2, math.ceil(cells)))
    prime = next(filter(_is_prime, numbers)) if cells <= MAX_EXACT else 2 * cells
    return math.log10(outer_slope * span * length) + length * math.log10(prime)


def counting_error(length: int, decades: float, *, outer_slope: float) -> float:
    """Return the error that a head that counts cells promises with a readout of slope 10^decades; infinite for none."""
    largest = 10 ** min(math.log10(MAX_EXACT), (decades - math.log10(outer_slope * length)) / length)
    if largest < 2:
        return math.inf
    # Rounding must not give a prime that the slope does not allow.
    numbers = range(math.floor(largest * (1 - 1e-12)), 1, -1)
    prime = next(filter(_is_prime, numbers), None)
    return math.inf if prime is None else outer_slope / (2 * prime)


def least_slope(length: int, eps: float, *, outer_slope: float, share: float = 1.0, values: float = 1.0) -> float:
    """Return log10 of the lesser slope of the two heads, of exponentials and of counted cells.

    With values of at most V slopes are those of values of at most 1, divided by V.
    """
    steep = one_head_slope(length, eps, outer_slope=outer_slope, share=share)
    return min(steep, counting_slope(length, eps, outer_slope=outer_slope)) - math.log10(values)


def one_head_bounds(
    length: int, eps: float, slope: float, *, intrinsic_dim: int, head_dim: int, outer_slope: float, values: float = 1.0
) -> tuple[Bound, Bound]:
    """Return the slope with which one head is enough, and the error it promises with a given slope."""
    decades = math.log10(slope) + math.log10(values)
    error = min(promise(length, decades, outer_slope=outer_slope) for promise in (one_head_error, counting_error))
    shared = {
        "source": SOURCE,
        "conditions": (
            Condition("head_dim n >= D", head_dim >= intrinsic_dim),
            Condition(f"f_i in an interval of length 1, values at most {values:g}, S_i the whole sequence", None),
            Condition(f"F0 of slope |grad F0|_1 at most {outer_slope:g}", None),
            Condition("any encoder, any readout of that slope", None),
        ),
    }
    enough = Bound(
        name="one head: decades of slope enough",
        value=least_slope(length, eps, outer_slope=outer_slope, values=values),
        claim=f"one head of D = {intrinsic_dim} numbers answers within eps = {eps:g}; log10 of its readout's slope",
        **shared,
    )
    promised = Bound(
        name="one head: error promised",
        value=error if math.isfinite(error) else None,
        claim=f"one head of D = {intrinsic_dim} numbers with a readout of slope {slope:g} errs by at most this",
        why="" if math.isfinite(error) else f"says nothing: a slope of {slope:g} is too small for both heads",
        **shared,
    )
    return enough, promised


class Phase(NamedTuple):
    """log10 of two slopes at one length and error. Between them nothing is proved.

    Every model of s heads with the setting's largest value and a slope below `fails_below` errs by more than eps on
    some sequence; with `enough_from`, the lesser slope of two constructions, there is one head of D numbers that never
    does.
    """

    length: int
    eps: float
    fails_below: float
    enough_from: float


def phase_diagram(
    setting: BoundedClass, lengths: Iterable[int], errors: Iterable[float], *, outer_slope: float
) -> list[Phase]:
    """Return the two slopes at every error and length, in that order.

    The length and slope of `setting` are not used; `outer_slope` is L0, sup |grad F0|_1, of the one head's readout.

    Example:
        >>> from headcount.theory import BoundedClass, phase_diagram
        >>> one = BoundedClass(heads=1, intrinsic_dim=2, length=128)
        >>> (phase,) = phase_diagram(one, [128], [0.01], outer_slope=2.0)
        >>> 3 < phase.fails_below < phase.enough_from < 210
        True
    """
    require(
        setting.head_dim >= setting.intrinsic_dim,
        what="head_dim",
        given=setting.head_dim,
        needed=f"at least intrinsic_dim, {setting.intrinsic_dim}: one head answers with D numbers",
    )
    scale = {"outer_slope": outer_slope, "share": setting.share, "values": setting.values}
    phases = []
    for eps, length in itertools.product(errors, lengths):
        fails_below = slope_needed(dataclasses.replace(setting, length=length), eps)
        phases.append(Phase(length, eps, fails_below, least_slope(length, eps, **scale)))
    return phases


def _sharpness(length: int, eps: float, outer_slope: float, span: float) -> float:
    """b; at least 1 / span, from where on a larger b is a steeper readout."""
    return max(1 / span, outer_slope * math.log(max(length, 2)) / (2 * eps))


def _decades(sharpness: float, outer_slope: float, span: float = 1.0) -> float:
    return (sharpness * span + math.log(outer_slope / sharpness)) / math.log(10)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
