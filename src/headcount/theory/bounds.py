"""Every formula of the first paper's theorems as a function: a value, the claim it makes, its source, its conditions.

Symbols: h heads, n head_dim, D intrinsic_dim, T length, L layers, M parameters of the two feed-forward nets, eps the
largest error over the domain, L0 = sup |grad F0|_1 the slope of the outer map, gamma the rate of the component nets
(within delta by two-layer nets of width C / delta^gamma).
Source: Yu et al. (arXiv 2510.06662), section 4. Where a published step had to be repaired to hold, the bound says so.
"""

import math
from dataclasses import dataclass

from scipy.special import lambertw

from .._errors import require, require_count

PAPER = "arXiv 2510.06662"


@dataclass(frozen=True)
class Condition:
    """What a bound needs, and whether it is so here; None where the setting does not tell."""

    text: str
    holds: bool | None


@dataclass(frozen=True, kw_only=True)
class Bound:
    """`value` is None where the bound says nothing: `why` gives the reason. `kind`: theorem, repaired or conjecture."""

    name: str
    value: float | None
    claim: str
    source: str
    conditions: tuple[Condition, ...] = ()
    kind: str = "theorem"
    why: str = ""

    @property
    def applies(self) -> bool:
        """Whether it says something and no condition is known to fail."""
        return self.value is not None and all(condition.holds is not False for condition in self.conditions)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A task and a model as the theorems see them."""

    heads: int
    intrinsic_dim: int
    length: int
    head_dim: int = 8
    layers: int = 1
    dim: int = 1
    eps: float = 1e-2
    outer_slope: float | None = None
    """L0; without it that of a sum of the components, D."""
    gamma: float = 1.0

    def __post_init__(self):
        for name in ("heads", "intrinsic_dim", "length", "head_dim", "layers", "dim"):
            require_count(name, getattr(self, name))
        require(0 < self.eps < 1, f"eps must lie between 0 and 1, got {self.eps!r}.")
        if self.outer_slope is None:
            object.__setattr__(self, "outer_slope", float(self.intrinsic_dim))
        for name in ("outer_slope", "gamma"):
            value = getattr(self, name)
            require(0 < value < math.inf, f"{name} must be positive and finite, got {value!r}.")

    @property
    def slope(self) -> float:
        assert self.outer_slope is not None
        return self.outer_slope


def all_bounds(setting: Setting) -> tuple[Bound, ...]:
    """Every bound, in the paper's order, at one setting."""
    return (
        selector_error(1 / setting.eps**2),
        component_accuracy(setting),
        sharpness(setting),
        head_error(sharpness_needed(setting), setting.length, setting.length),
        enough_heads_rate(setting),
        too_few_heads_exponent(setting),
        too_few_heads_size(setting),
        deeper_readout_exponent(setting),
        wide_head_rate(setting),
        max_net_width(setting.length, setting.eps),
        unique_dim(setting.intrinsic_dim, setting.intrinsic_dim + 1, setting.length),
        depth_conjecture(setting),
    )


def selector_error(q: float) -> Bound:
    """The smooth selector of Theorem 1 is off by at most sup_a a / (1 + exp(q a^2)) = 0.278 q^(-1/2)."""
    require(0 < q < math.inf, f"q must be positive and finite, got {q!r}.")
    # With a = b / sqrt(q) it is b / (1 + exp(b^2)) over sqrt(q), greatest where exp(-b^2) = 2 b^2 - 1.
    square = 0.5 + float(lambertw(math.exp(-0.5) / 2).real)
    return Bound(
        name="selector error",
        value=math.sqrt(square / q) / (1 + math.exp(square)),
        claim=f"with q = {q:.3g} the order-statistics selector recovers every input within this",
        source=f"Theorem 1, {PAPER}; the rate is ours",
        kind="repaired",
    )


def component_accuracy(setting: Setting) -> Bound:
    """delta = eps / (4 L0 D)."""
    return Bound(
        name="component accuracy delta",
        value=setting.eps / (4 * setting.slope * setting.intrinsic_dim),
        claim="nets this near to every component f_i leave a quarter of eps",
        source=f"Theorem 2(1), {PAPER}",
        conditions=(_enough(setting),),
    )


def sharpness_needed(setting: Setting) -> float:
    """The least beta of Theorem 2(1): max(1, 4 C_T L0 D / eps, log of the same), where C_T = max(T / e, T) = T."""
    steepness = 4 * setting.length * setting.slope * setting.intrinsic_dim / setting.eps
    return max(1.0, steepness, math.log(steepness))


def sharpness(setting: Setting) -> Bound:
    return Bound(
        name="sharpness beta",
        value=sharpness_needed(setting),
        claim="scores this much multiplied let D heads read D minima well enough",
        source=f"Theorem 2(1), {PAPER}",
        conditions=(_enough(setting),),
    )


def head_error(beta: float, set_size: int, length: int, gate: float = 2.0) -> Bound:
    """|z~_i - min over S_i of Psi_i| <= (|S_i| - 1) / (e beta) + T exp(-beta (G - 1)) for a gate of depth G > 1.

    The published gate has depth 1 and the tail T exp(-beta), which fails: a token in S_i with Psi = 1 then ties with
    one outside with Psi = 0.
    """
    require_count("set_size", set_size)
    require_count("length", length)
    require(set_size <= length, f"a position set of {set_size} places does not fit into length {length}.")
    require(beta >= 1, f"the head error is proved for beta of at least 1, got {beta!r}.")
    require(gate > 1, f"a gate must be deeper than 1 to close, got {gate!r}.")
    tail = length * math.exp(-beta * (gate - 1)) if set_size < length else 0.0
    return Bound(
        name="head error",
        value=(set_size - 1) / (math.e * beta) + tail,
        claim=f"a softmax with beta = {beta:.3g} reads the minimum over {set_size} of {length} places within this",
        source=f"Theorem 2(1), {PAPER}; a gate of depth {gate:g} in place of 1",
        kind="repaired",
    )


def enough_heads_rate(setting: Setting) -> Bound:
    """M = C / eps^gamma."""
    return Bound(
        name="enough heads: exponent",
        value=setting.gamma,
        claim="h = D heads of n = 2 numbers need M of the order of eps^-this",
        source=f"Theorem 2(1), {PAPER}",
        conditions=(
            _enough(setting),
            Condition("head_dim n >= 2", setting.head_dim >= 2),
            Condition("components and F0 within delta by two-layer nets of width C / delta^gamma", None),
        ),
    )


def exponent(heads: int, intrinsic_dim: int, length: int, head_dim: int) -> float:
    """k = (T/4 - s - D + 1) / ((n + 1) s + 1) - 1 with s heads."""
    return (length / 4 - heads - intrinsic_dim + 1) / ((head_dim + 1) * heads + 1) - 1


def too_few_heads_exponent(setting: Setting) -> Bound:
    """The exponent k of Theorem 2(2), which says nothing unless it is positive."""
    k = exponent(setting.heads, setting.intrinsic_dim, setting.length, setting.head_dim)
    return Bound(
        name="too few heads: exponent k",
        value=k if k > 0 else None,
        claim="with fewer than D heads M grows at least as eps^-this",
        source=f"Theorem 2(2), {PAPER}",
        conditions=_too_few(setting),
        why="" if k > 0 else f"vacuous: k = {k:.3g} is not positive; it takes length {_least_length(setting)} or more",
    )


def _least_length(setting: Setting) -> int:
    """The least T that 4 divides and that makes k positive: T/4 > (n + 2) s + D."""
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
    """A five-layer readout changes the exponent to k / 4 only."""
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
    """Lemma 4: M >= B / (A sqrt(n)) when a net on n inputs must move by B over a distance A."""
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


def wide_head_rate(setting: Setting) -> Bound:
    """One head of n >= T d numbers: M = C / eps^(1 + gamma), zeros not counted.

    Lemma 9's middle matrix has T N x 2 N entries with N of the order of 1 / eps, most of them zeros.
    """
    needed = setting.length * setting.dim
    return Bound(
        name="one wide head: exponent",
        value=1 + setting.gamma,
        claim=f"one head of n >= T d = {needed} numbers, read by five layers, needs eps^-this non-zero weights",
        source=f"Theorem 2(3), {PAPER}; with the zeros of its blocks M grows as eps^-{max(2.0, 1 + setting.gamma):g}",
        kind="repaired",
        conditions=(Condition(f"head_dim n >= T d = {needed}", setting.head_dim >= needed),),
    )


def max_net_widths(length: int, eps: float) -> tuple[int, int]:
    """Units of the two hidden layers of Lemma 9's net: T N and 2 N with N = ceil(1 / eps)."""
    require_count("length", length)
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    steps = math.ceil(1 / eps)
    return length * steps, 2 * steps


def max_net_width(length: int, eps: float) -> Bound:
    return Bound(
        name="maximum by ReLU: width",
        value=float(max(max_net_widths(length, eps))),
        claim=f"a three-layer ReLU net this wide gives the maximum of {length} numbers in [0, 1] within eps = {eps:g}",
        source=f"Lemma 9, {PAPER} (it states at most 2 T ceil(1 / eps) = {2 * length * math.ceil(1 / eps)})",
    )


def unique_dim(first: int, second: int, length: int) -> Bound:
    """D is unique among representations with D1 and D2 components when D1^2 + D2^2 <= T / 50."""
    require_count("first", first)
    require_count("second", second)
    require_count("length", length)
    return Bound(
        name="uniqueness of D: least length",
        value=50.0 * (first**2 + second**2),
        claim=f"from this length on no task has one representation with {first} and another with {second} components",
        source=f"Corollary 1, {PAPER}",
        conditions=(Condition("D1^2 + D2^2 <= T / 50", first**2 + second**2 <= length / 50),),
    )


def depth_conjecture(setting: Setting) -> Bound:
    """L layers are efficient only if L h >= D."""
    return Bound(
        name="depth: least heads a layer",
        value=float(-(-setting.intrinsic_dim // setting.layers)),
        claim=f"with L = {setting.layers} fewer heads a layer need log M of the order of |log eps| a_L T^b_L / (n h)",
        source=f"Conjecture 1, {PAPER}",
        conditions=(Condition("L h < D", setting.layers * setting.heads < setting.intrinsic_dim),),
        kind="conjecture",
    )


def _enough(setting: Setting) -> Condition:
    return Condition("h >= D", setting.heads >= setting.intrinsic_dim)


def _too_few(setting: Setting) -> tuple[Condition, ...]:
    return (
        Condition("h < D", setting.heads < setting.intrinsic_dim),
        Condition("4 divides T", setting.length % 4 == 0),
        Condition("one attention layer", setting.layers == 1),
        Condition("Assumption 1: |P| <= 1, F of two layers, every weight at most 1", None),
    )
