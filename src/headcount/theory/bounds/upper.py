"""Upper bounds of the first paper: how accurate enough heads are, and how large the nets around them.

Theorem 1 (selector), Theorem 2(1) (h >= D heads), Theorem 2(3) (one wide head), Lemma 9 (a maximum by ReLU). Symbols
are those of `bound`. Where a published step had to be repaired to hold, the bound's `kind` is "repaired".
"""

import math

from scipy.special import lambertw

from ..._errors import require, require_count
from .bound import PAPER, Bound, Condition, Setting


def selector_error(q: float) -> Bound:
    """The error of the smooth selector of Theorem 1: sup_a a / (1 + exp(q a^2)) = 0.278 q^(-1/2)."""
    require(0 < q < math.inf, f"q must be positive and finite, got {q!r}.")
    # With a = b / sqrt(q) it is b / (1 + exp(b^2)) over sqrt(q), largest where exp(-b^2) = 2 b^2 - 1.
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
        claim="component nets within this of f_i use at most a quarter of eps",
        source=f"Theorem 2(1), {PAPER}",
        conditions=(_enough(setting),),
    )


def sharpness_needed(setting: Setting) -> float:
    """The minimum beta of Theorem 2(1): max(1, 4 C_T L0 D / eps, log of the same), where C_T = max(T / e, T) = T."""
    steepness = 4 * setting.length * setting.slope * setting.intrinsic_dim / setting.eps
    return max(1.0, steepness, math.log(steepness))


def sharpness(setting: Setting) -> Bound:
    """`sharpness_needed` with its claim and source."""
    return Bound(
        name="sharpness beta",
        value=sharpness_needed(setting),
        claim="with scores scaled by this D heads read D minima accurately enough",
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
    require(set_size <= length, f"set_size must be at most length = {length}, got {set_size}.")
    require(beta >= 1, f"beta must be at least 1, got {beta!r}.")
    require(gate > 1, f"gate must be greater than 1, got {gate!r}.")
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
        claim="h = D heads with head_dim n = 2 need M of the order of eps^-this",
        source=f"Theorem 2(1), {PAPER}",
        conditions=(
            _enough(setting),
            Condition("head_dim n >= 2", setting.head_dim >= 2),
            Condition("components and F0 within delta by two-layer nets of width C / delta^gamma", None),
        ),
    )


def wide_head_rate(setting: Setting) -> Bound:
    """One head with head_dim n >= T d: M = C / eps^(1 + gamma), zero weights not counted.

    Lemma 9's middle matrix has T N x 2 N entries with N of the order of 1 / eps, most of them zeros.
    """
    needed = setting.length * setting.dim
    return Bound(
        name="one wide head: exponent",
        value=1 + setting.gamma,
        claim=f"one head with head_dim n >= T d = {needed} and a five-layer readout needs eps^-this non-zero weights",
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
    """The larger of `max_net_widths` with its claim and source."""
    return Bound(
        name="maximum by ReLU: width",
        value=float(max(max_net_widths(length, eps))),
        claim=f"a three-layer ReLU net this wide gives the maximum of {length} numbers in [0, 1] within eps = {eps:g}",
        source=f"Lemma 9, {PAPER} (it states at most 2 T ceil(1 / eps) = {2 * length * math.ceil(1 / eps)})",
    )


def _enough(setting: Setting) -> Condition:
    return Condition("h >= D", setting.heads >= setting.intrinsic_dim)
