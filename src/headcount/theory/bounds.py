"""The first paper's formulas as functions: each bound has a value, the claim it makes, its source and its conditions.

Symbols: h heads, n head_dim, D intrinsic_dim, T length, L layers, d dim, M parameters of the two feed-forward nets, eps
the largest error over the domain, L0 = sup |grad F0|_1 the Lipschitz constant of the outer map, gamma the rate of the
component nets (within delta by two-layer nets of width C / delta^gamma).
Source: Yu et al. (arXiv 2510.06662), section 4. Where a published step had to be repaired, `kind` is "repaired".
"""

import math
from dataclasses import dataclass

from scipy.special import lambertw

from .doors import require_below_one, require_counts, require_positive

PAPER = "arXiv 2510.06662"


@dataclass(frozen=True)
class Condition:
    """A condition of a bound, and whether it holds; None where the setting does not determine it."""

    text: str
    holds: bool | None


@dataclass(frozen=True, kw_only=True)
class Bound:
    """`value` is None where the bound is vacuous, `why` gives the reason. `kind`: theorem, repaired or conjecture."""

    name: str
    value: float | None
    claim: str
    source: str
    conditions: tuple[Condition, ...] = ()
    kind: str = "theorem"
    why: str = ""

    @property
    def applies(self) -> bool:
        """Whether it is not vacuous and no condition is known to fail."""
        return self.value is not None and all(condition.holds is not False for condition in self.conditions)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The sizes of a task and a model that the theorems use."""

    heads: int
    intrinsic_dim: int
    length: int
    head_dim: int = 8
    layers: int = 1
    dim: int = 1
    eps: float = 1e-2
    outer_slope: float | None = None
    """L0; by default D, that of a sum of the components."""
    gamma: float = 1.0

    def __post_init__(self):
        counts = ("heads", "intrinsic_dim", "length", "head_dim", "layers", "dim")
        require_counts(**{name: getattr(self, name) for name in counts})
        require_below_one(eps=self.eps)
        require_positive(outer_slope=self.slope, gamma=self.gamma)

    @property
    def slope(self) -> float:
        return float(self.intrinsic_dim) if self.outer_slope is None else self.outer_slope


ASSUMPTION_2 = Condition(
    "Assumption 2 on the task (linear components, as in Tables 2 to 5 and max + min, fail its clause 2.3)", None
)
"""A setting does not determine it; `tasks.check_assumptions` tests a task."""


def selector_error(q: float) -> float:
    """Return the error of the smooth selector of Theorem 1: sup_a a / (1 + exp(q a^2)) = 0.278 q^(-1/2)."""
    # With a = b / sqrt(q) it is b / (1 + exp(b^2)) over sqrt(q), largest where exp(-b^2) = 2 b^2 - 1.
    square = 0.5 + float(lambertw(math.exp(-0.5) / 2).real)
    return math.sqrt(square / q) / (1 + math.exp(square))


def component_accuracy(setting: Setting) -> float:
    """delta = eps / (4 L0 D)."""
    return setting.eps / (4 * setting.slope * setting.intrinsic_dim)


def sharpness_needed(setting: Setting) -> float:
    """Return the minimum beta of Theorem 2(1): max(1, 4 C_T L0 D / eps, log of the same), C_T = max(T / e, T) = T."""
    steepness = 4 * setting.length * setting.slope * setting.intrinsic_dim / setting.eps
    return max(1.0, steepness, math.log(steepness))


def head_error(beta: float, set_size: int, length: int, gate: float = 2.0) -> float:
    """|z~_i - min over S_i of Psi_i| <= (|S_i| - 1) / (e beta) + T exp(-beta (G - 1)) for a gate of depth G > 1.

    The published gate has depth 1 and the tail T exp(-beta), which fails: a token in S_i with Psi = 1 then ties with
    one outside with Psi = 0.
    """
    tail = length * math.exp(-beta * (gate - 1)) if set_size < length else 0.0
    return (set_size - 1) / (math.e * beta) + tail


def max_net_widths(length: int, eps: float) -> tuple[int, int]:
    """Return the number of units of the two hidden layers of Lemma 9's net: T N and 2 N with N = ceil(1 / eps)."""
    steps = math.ceil(1 / eps)
    return length * steps, 2 * steps


def exponent(heads: int, intrinsic_dim: int, length: int, head_dim: int) -> float:
    """k = (T/4 - s - D + 1) / ((n + 1) s + 1) - 1 with s heads."""
    return (length / 4 - heads - intrinsic_dim + 1) / ((head_dim + 1) * heads + 1) - 1


def steep_net_size(rise: float, distance: float, inputs: int) -> float:
    """Lemma 4: a net on n inputs whose output moves by B over a distance A has M >= B / (A sqrt(n)) hidden units.

    It has two layers, a 1-Lipschitz activation and weights of at most 1 in magnitude.
    """
    return rise / (distance * math.sqrt(inputs))


def unique_dim(first: int, second: int, length: int, gamma: float = 1.0) -> Bound:
    """Return Corollary 1: D is unique among representations with D1 and D2 components when D1^2 + D2^2 <= T / 50.

    The proof has as many heads as the smaller D, of two numbers, with M of the order of eps^-gamma, and needs eps^-k of
    them for the larger D: a contradiction where k > gamma.
    """
    k = exponent(min(first, second), max(first, second), length, 2)
    return Bound(
        name="uniqueness of D: minimum length",
        value=50.0 * (first**2 + second**2),
        claim=f"from this length on no task has one representation with {first} and another with {second} components",
        source=f"Corollary 1, {PAPER}",
        conditions=(
            Condition("D1^2 + D2^2 <= T / 50", first**2 + second**2 <= length / 50),
            Condition(f"k = {k:.3g} of min(D1, D2) heads with n = 2 above gamma = {gamma:g}", k > gamma),
            ASSUMPTION_2,
        ),
    )


def depth_conjecture(setting: Setting) -> Bound:
    """Return Conjecture 1: L layers are efficient only if L h >= D."""
    return Bound(
        name="depth: minimum heads per layer",
        value=float(-(-setting.intrinsic_dim // setting.layers)),
        claim=f"with L = {setting.layers} fewer heads per layer need log M of the order of |log eps| a_L T^b_L / (n h)",
        source=f"Conjecture 1, {PAPER}",
        conditions=(Condition("L h < D", setting.layers * setting.heads < setting.intrinsic_dim),),
        kind="conjecture",
    )


def all_bounds(setting: Setting) -> tuple[Bound, ...]:
    """Return every bound of the first paper at one setting, in its order."""
    dims, length, eps = setting.intrinsic_dim, setting.length, setting.eps
    q, beta, needed = 1 / eps**2, sharpness_needed(setting), length * setting.dim
    enough = Condition("h >= D", setting.heads >= dims)
    return (
        Bound(
            name="selector error",
            value=selector_error(q),
            claim=f"with q = {q:.3g} the order-statistics selector recovers every input within this",
            source=f"Theorem 1, {PAPER}; the rate is ours",
            kind="repaired",
        ),
        Bound(
            name="component accuracy delta",
            value=component_accuracy(setting),
            claim="component nets within this of f_i use at most a quarter of eps",
            source=f"Theorem 2(1), {PAPER}",
            conditions=(enough,),
        ),
        Bound(
            name="sharpness beta",
            value=beta,
            claim="with scores scaled by this D heads read D minima accurately enough",
            source=f"Theorem 2(1), {PAPER}",
            conditions=(enough,),
        ),
        Bound(
            name="head error",
            value=head_error(beta, length, length),
            claim=f"a softmax with beta = {beta:.3g} reads the minimum over {length} of {length} places within this",
            source=f"Theorem 2(1), {PAPER}; a gate of depth 2 in place of 1",
            kind="repaired",
        ),
        Bound(
            name="enough heads: exponent",
            value=setting.gamma,
            claim="h = D heads with head_dim n = 2 need M of the order of eps^-this",
            source=f"Theorem 2(1), {PAPER}",
            conditions=(
                enough,
                Condition("head_dim n >= 2", setting.head_dim >= 2),
                Condition("components and F0 within delta by two-layer nets of width C / delta^gamma", None),
            ),
        ),
        *_too_few_heads(setting),
        # Lemma 9's middle matrix has T N x 2 N entries with N of the order of 1 / eps, most of them zeros.
        Bound(
            name="one wide head: exponent",
            value=1 + setting.gamma,
            claim=f"one head with head_dim n >= T d = {needed} and a five-layer readout needs eps^-this non-zero "
            "weights",
            source=f"Theorem 2(3), {PAPER}; with the zeros of its blocks M grows as "
            f"eps^-{max(2.0, 1 + setting.gamma):g}",
            kind="repaired",
            conditions=(Condition(f"head_dim n >= T d = {needed}", setting.head_dim >= needed),),
        ),
        Bound(
            name="maximum by ReLU: width",
            value=float(max(max_net_widths(length, eps))),
            claim=f"a three-layer ReLU net this wide gives the maximum of {length} numbers in [0, 1] within eps = "
            f"{eps:g}",
            source=f"Lemma 9, {PAPER} (it states at most 2 T ceil(1 / eps) = {2 * length * math.ceil(1 / eps)})",
        ),
        unique_dim(dims, dims + 1, length, setting.gamma),
        depth_conjecture(setting),
    )


def averaging_error(setting: Setting) -> float:
    """Return the error from which on heads that only average need no large M: L0 / (2 c) with c = floor(h n / D).

    With values v_j = clip(j + 1 - c f_i, 0, 1), j < c, of every component and equal weights, min(1, T mean v_j) tells
    whether a token of cell j or below is there. Their sum over j reads z_i within 1 / (2 c); a linear outer map is
    within L0 / (2 c) by 2 h n ceil(T / c) ReLU units with entries at most 1. Infinite where the heads are too narrow.
    """
    cells = setting.heads * setting.head_dim // setting.intrinsic_dim
    return setting.slope / (2 * cells) if cells else math.inf


def _too_few_heads(setting: Setting) -> tuple[Bound, Bound]:
    """Return Theorem 2(2): the exponent k, and the exponent k / 4 of a five-layer readout.

    Both are of eps -> 0 at fixed n and T: no size of M at one eps follows.
    """
    heads, dims, from_there = setting.heads, setting.intrinsic_dim, averaging_error(setting)
    k = exponent(heads, dims, setting.length, setting.head_dim)
    limit = "" if math.isinf(from_there) else f" = {from_there:.3g}"
    averages = f"; averages and small nets reach eps = {from_there:.3g} for a linear F0"
    # The smallest multiple of 4 that makes k positive: T/4 > (n + 2) s + D.
    min_length = 4 * ((setting.head_dim + 2) * heads + dims + 1)
    remedy = f"it takes length {min_length} or more"
    if heads >= dims:
        remedy = f"no length helps: h >= D = {dims} heads are enough"
    shared = {
        "conditions": (
            Condition(f"eps < L0 / (2 floor(h n / D)){limit}", setting.eps < from_there),
            Condition("h < D", heads < dims),
            Condition("4 divides T", setting.length % 4 == 0),
            Condition("one attention layer", setting.layers == 1),
            Condition("Assumption 1: |P| <= 1, F of two layers, every weight at most 1", None),
            ASSUMPTION_2,
        ),
        "why": "" if k > 0 else f"vacuous: k = {k:.3g} is not positive; {remedy}",
    }
    return (
        Bound(
            name="too few heads: exponent k",
            value=k if k > 0 else None,
            claim="as eps goes to 0, T and n fixed, with fewer than D heads M grows at least as eps^-this"
            f"{'' if setting.eps < from_there else averages}",
            source=f"Theorem 2(2), {PAPER}",
            **shared,
        ),
        Bound(
            name="too few heads, five-layer readout: exponent",
            value=k / 4 if k > 0 else None,
            claim="a deeper readout does not help: as eps goes to 0, M still grows at least as eps^-this",
            source=f"after Theorem 2, {PAPER}",
            **shared,
        ),
    )
