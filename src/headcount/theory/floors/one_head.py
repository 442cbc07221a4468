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
from ...errors import require
from ...tasks import Retrieval
from ..bounds import Bound, Condition
from ..doors import require_below_one, require_counts, require_positive
from .bounded import BoundedClass, slope_needed
from .thermometer import MAX_SHARPNESS, ROUNDING, checked_slope, thermometer_error, thermometer_slope

MAX_EXACT = 1e9
"""Cells above are not searched for the least prime: there is one below twice their number."""
SOURCE = "ours: the best of means of exponentials, of thermometer codes, and of counts of cells (Bose, Chowla)"


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
    slope = checked_slope(task, eps, outer_slope, low, high)
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


def least_slope(setting: BoundedClass, eps: float, *, outer_slope: float) -> float:
    """Return log10 of the least slope of three heads: of exponentials, of counted cells, and of thermometer codes.

    The first two have D numbers, the third has those of a head of `setting`. With values of at most V slopes are those
    of values of at most 1, divided by V.
    """
    cells = setting.head_dim // setting.intrinsic_dim
    slopes = (
        one_head_slope(setting.length, eps, outer_slope=outer_slope, share=setting.share),
        counting_slope(setting.length, eps, outer_slope=outer_slope),
        thermometer_slope(setting.length, eps, cells, outer_slope=outer_slope) if cells else math.inf,
    )
    return min(slopes) - math.log10(setting.values)


def one_head_bounds(setting: BoundedClass, eps: float, *, outer_slope: float) -> tuple[Bound, Bound]:
    """Return the slope with which one head is enough, and the error it promises with the slope of `setting`."""
    length, decades = setting.length, math.log10(setting.slope) + math.log10(setting.values)
    cells, dims = setting.head_dim // setting.intrinsic_dim, setting.intrinsic_dim
    error = min(promise(length, decades, outer_slope=outer_slope) for promise in (one_head_error, counting_error))
    if cells:
        error = min(error, thermometer_error(length, decades, cells, outer_slope=outer_slope))
    numbers = f"D = {dims}" if cells <= 1 else f"at most {setting.head_dim}"
    shared = {
        "source": SOURCE,
        "conditions": (
            Condition("head_dim n >= D", setting.head_dim >= dims),
            Condition(
                f"f_i in an interval of length 1, values at most {setting.values:g}, S_i the whole sequence", None
            ),
            Condition(f"F0 of slope |grad F0|_1 at most {outer_slope:g}", None),
            Condition("any encoder, any readout of that slope", None),
        ),
    }
    enough = Bound(
        name="one head: decades of slope enough",
        value=least_slope(setting, eps, outer_slope=outer_slope),
        claim=f"one head of {numbers} numbers answers within eps = {eps:g}; log10 of its readout's slope",
        **shared,
    )
    promised = Bound(
        name="one head: error promised",
        value=error if math.isfinite(error) else None,
        claim=f"one head of {numbers} numbers with a readout of slope {setting.slope:g} errs by at most this",
        why="" if math.isfinite(error) else f"says nothing: a slope of {setting.slope:g} is too small for these heads",
        **shared,
    )
    return enough, promised


class Phase(NamedTuple):
    """log10 of two slopes at one setting. Between them nothing is proved.

    Every model of s heads with the setting's largest value and a slope below `fails_below` errs by more than eps on
    some sequence; with `enough_from`, the least slope of three constructions, there is one head of at most as many
    numbers that never does.
    """

    length: int
    eps: float
    head_dim: int
    fails_below: float
    enough_from: float


def phase_diagram(
    setting: BoundedClass,
    lengths: Iterable[int],
    errors: Iterable[float],
    *,
    outer_slope: float,
    widths: Iterable[int] | None = None,
) -> list[Phase]:
    """Return the two slopes at every error, length and head width (that of `setting` alone by default), in that order.

    The length and slope of `setting` are not used; `outer_slope` is L0, sup |grad F0|_1, of the one head's readout.

    Example:
        >>> from headcount.theory import BoundedClass, phase_diagram
        >>> one = BoundedClass(heads=1, intrinsic_dim=2, length=128)
        >>> narrow, wide = phase_diagram(one, [128], [0.01], outer_slope=2.0, widths=[2, 200])
        >>> 3 < narrow.fails_below < narrow.enough_from < 210
        True
        >>> 0 < wide.fails_below < wide.enough_from < 2
        True
    """
    widths = [setting.head_dim] if widths is None else list(widths)
    for width in widths:
        require(
            width >= setting.intrinsic_dim,
            what="head_dim",
            given=width,
            needed=f"at least intrinsic_dim, {setting.intrinsic_dim}: one head answers with D numbers",
        )
    phases = []
    for eps, length, width in itertools.product(errors, lengths, widths):
        sized = dataclasses.replace(setting, length=length, head_dim=width)
        fails_below, enough_from = slope_needed(sized, eps), least_slope(sized, eps, outer_slope=outer_slope)
        phases.append(Phase(length, eps, width, fails_below, enough_from))
    return phases


def _sharpness(length: int, eps: float, outer_slope: float, span: float) -> float:
    """b; at least 1 / span, from where on a larger b is a steeper readout."""
    return max(1 / span, outer_slope * math.log(max(length, 2)) / (2 * eps))


def _decades(sharpness: float, outer_slope: float, span: float = 1.0) -> float:
    return (sharpness * span + math.log(outer_slope / sharpness)) / math.log(10)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
