"""Lower bounds of the first paper: what fewer than D heads cost, and when D is unique.

Theorem 2(2) (h < D heads), Lemma 4 (a steep net is large), Corollary 1 (uniqueness of D), Conjecture 1 (depth). Symbols
are those of `bound`.
"""

import math

from ..._errors import require, require_count
from .bound import PAPER, Bound, Condition, Setting


def exponent(heads: int, intrinsic_dim: int, length: int, head_dim: int) -> float:
    """k = (T/4 - s - D + 1) / ((n + 1) s + 1) - 1 with s heads."""
    return (length / 4 - heads - intrinsic_dim + 1) / ((head_dim + 1) * heads + 1) - 1


def too_few_heads_exponent(setting: Setting) -> Bound:
    """The exponent k of Theorem 2(2), vacuous unless positive."""
    k = exponent(setting.heads, setting.intrinsic_dim, setting.length, setting.head_dim)
    return Bound(
        name="too few heads: exponent k",
        value=k if k > 0 else None,
        claim="with fewer than D heads M grows at least as eps^-this",
        source=f"Theorem 2(2), {PAPER}",
        conditions=_too_few(setting),
        why="" if k > 0 else f"vacuous: k = {k:.3g} is not positive; it takes length {_min_length(setting)} or more",
    )


def _min_length(setting: Setting) -> int:
    """The smallest multiple of 4 that makes k positive: T/4 > (n + 2) s + D."""
    return 4 * ((setting.head_dim + 2) * setting.heads + setting.intrinsic_dim + 1)


def too_few_heads_size(setting: Setting) -> Bound:
    """eps^-k, the growth of M up to a constant that the theorem does not give."""
    bound = too_few_heads_exponent(setting)
    decades = None if bound.value is None else -bound.value * math.log10(setting.eps)
    return Bound(
        name="too few heads: decades of M",
        value=decades,
        claim=f"from eps = 1 to eps = {setting.eps:g} M grows by at least this many powers of ten, up to a constant",
        source=bound.source,
        conditions=bound.conditions,
        why=bound.why,
    )


def deeper_readout_exponent(setting: Setting) -> Bound:
    """A five-layer readout only changes the exponent to k / 4."""
    bound = too_few_heads_exponent(setting)
    return Bound(
        name="too few heads, five-layer readout: exponent",
        value=None if bound.value is None else bound.value / 4,
        claim="a deeper readout does not help: M still grows at least as eps^-this",
        source=f"after Theorem 2, {PAPER}",
        conditions=bound.conditions,
        why=bound.why,
    )


def steep_net_size(rise: float, distance: float, inputs: int) -> Bound:
    """Lemma 4: a net on n inputs whose output moves by B over a distance A has M >= B / (A sqrt(n))."""
    require(rise >= 0, f"rise must not be negative, got {rise!r}.")
    require(distance > 0, f"distance must be positive, got {distance!r}.")
    require_count("inputs", inputs)
    return Bound(
        name="steepness: M",
        value=rise / (distance * math.sqrt(inputs)),
        claim=f"a net that moves by {rise:.3g} over a distance of {distance:.3g} has at least this many hidden units",
        source=f"Lemma 4, {PAPER}",
        conditions=(Condition("two layers, a 1-Lipschitz activation, weights at most 1 in magnitude", None),),
    )


def unique_dim(first: int, second: int, length: int) -> Bound:
    """D is unique among representations with D1 and D2 components when D1^2 + D2^2 <= T / 50."""
    require_count("first", first)
    require_count("second", second)
    require_count("length", length)
    return Bound(
        name="uniqueness of D: minimum length",
        value=50.0 * (first**2 + second**2),
        claim=f"from this length on no task has one representation with {first} and another with {second} components",
        source=f"Corollary 1, {PAPER}",
        conditions=(Condition("D1^2 + D2^2 <= T / 50", first**2 + second**2 <= length / 50),),
    )


def depth_conjecture(setting: Setting) -> Bound:
    """L layers are efficient only if L h >= D."""
    return Bound(
        name="depth: minimum heads per layer",
        value=float(-(-setting.intrinsic_dim // setting.layers)),
        claim=f"with L = {setting.layers} fewer heads per layer need log M of the order of |log eps| a_L T^b_L / (n h)",
        source=f"Conjecture 1, {PAPER}",
        conditions=(Condition("L h < D", setting.layers * setting.heads < setting.intrinsic_dim),),
        kind="conjecture",
    )


def _too_few(setting: Setting) -> tuple[Condition, ...]:
    return (
        Condition("h < D", setting.heads < setting.intrinsic_dim),
        Condition("4 divides T", setting.length % 4 == 0),
        Condition("one attention layer", setting.layers == 1),
        Condition("Assumption 1: |P| <= 1, F of two layers, every weight at most 1", None),
    )
