"""ReLU nets with explicit weights, each within a proved distance of the function it approximates.

A net of L layers is L affine maps with a ReLU between consecutive ones. Weights are float64. Nets of sums of ridges
g(a . x) of known slope and curvature are composed of these. Source: Yu et al. (arXiv
2510.06662), Lemmas 8 and 9; the interpolation bound is the classical one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from ...errors import InputError, require, require_count
from ...keys import named_generator
from ...tasks import Retrieval
from ...tasks.presets import Basins, ScalarEnds, largest_plus_smallest


@dataclass(frozen=True)
class AffineMap:
    """x -> W x + b."""

    weight: Float[np.ndarray, "after before"]
    bias: Float[np.ndarray, " after"]

    def __call__(self, x: Float[np.ndarray, " before"]) -> Float[np.ndarray, " after"]:
        return self.weight @ x + self.bias


@dataclass(frozen=True)
class ReluNet:
    """x -> W_L relu(.. relu(W_1 x + b_1) ..) + b_L."""

    layers: tuple[AffineMap, ...]

    def __call__(self, x: Float[np.ndarray, " inputs"]) -> Float[np.ndarray, " outputs"]:
        for layer in self.layers[:-1]:
            x = np.maximum(layer(x), 0.0)
        return self.layers[-1](x)

    @property
    def inputs(self) -> int:
        return self.layers[0].weight.shape[1]

    @property
    def outputs(self) -> int:
        return len(self.layers[-1].bias)

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(len(layer.bias) for layer in self.layers[:-1])

    @property
    def parameters(self) -> int:
        """Weights and biases, as the paper counts M."""
        return sum(layer.weight.size + layer.bias.size for layer in self.layers)


def compose(*nets: ReluNet) -> ReluNet:
    """nets[-1] after .. after nets[0] as one net: two affine maps that meet become one (Lemma 8).

    Nets of 2, 3 and 2 layers make one of 5.
    """
    require(len(nets) > 0, "compose needs at least one net, got none.")
    whole = nets[0]
    for net in nets[1:]:
        outputs, inputs = whole.outputs, net.inputs
        require(outputs == inputs, f"a net of {inputs} inputs cannot follow one of {outputs} outputs.")
        last, first = whole.layers[-1], net.layers[0]
        joined = AffineMap(first.weight @ last.weight, first(last.bias))
        whole = ReluNet((*whole.layers[:-1], joined, *net.layers[1:]))
    return whole


def beside(nets: Sequence[ReluNet]) -> ReluNet:
    """Nets of equal depth in parallel: inputs and outputs are concatenated."""
    depths = {len(net.layers) for net in nets}
    require(len(depths) == 1, f"nets in parallel must have the same depth, got {sorted(depths)}.")
    stacks = [
        (block_diag(*(layer.weight for layer in layers)), np.concatenate([layer.bias for layer in layers]))
        for layers in zip(*(net.layers for net in nets), strict=True)
    ]
    return ReluNet(tuple(AffineMap(np.asarray(weight, float), bias) for weight, bias in stacks))


def affine(weight: Float[np.ndarray, "after before"], bias: Float[np.ndarray, " after"]) -> ReluNet:
    """A net of one layer, without a ReLU."""
    return ReluNet((AffineMap(np.asarray(weight, float), np.asarray(bias, float)),))


def pieces_needed(curvature: float, low: float, high: float, delta: float) -> int:
    """Equal pieces for linear interpolation within delta: its error is (high - low)^2 |f''| / (8 pieces^2)."""
    require(low < high, f"low must be less than high, got {low!r} and {high!r}.")
    require(0 <= curvature < math.inf, f"curvature must be finite and not negative, got {curvature!r}.")
    require(delta > 0, f"delta must be positive, got {delta!r}.")
    return max(1, math.ceil((high - low) * math.sqrt(curvature / (8 * delta))))


def interpolation_net(
    function: Callable[[float], float], *, curvature: float, low: float, high: float, delta: float
) -> ReluNet:
    """A two-layer net within `delta` of a function on [low, high] with second derivative at most `curvature`.

    f(x_0) + sum over j of (slope_j - slope_(j-1)) relu(x - x_j): one unit per piece, so width C / delta^(1/2).
    """
    knots = np.linspace(low, high, pieces_needed(curvature, low, high, delta) + 1)
    values = np.array([float(function(float(knot))) for knot in knots])
    require(bool(np.isfinite(values).all()), f"the function must be finite on [{low:g}, {high:g}].")
    return through_net(knots, values)


def through_net(knots: Float[np.ndarray, " knots"], values: Float[np.ndarray, " knots"]) -> ReluNet:
    """The two-layer net that interpolates `values` at increasing `knots` linearly: one unit per piece."""
    slopes = np.diff(values) / np.diff(knots)
    changes = np.diff(slopes, prepend=0.0)
    return ReluNet((AffineMap(np.ones((len(slopes), 1)), -knots[:-1]), AffineMap(changes[None, :], values[:1])))


def ridges_net(directions: Float[np.ndarray, "ridges dim"], profiles: Sequence[ReluNet]) -> ReluNet:
    """x -> sum over k of profile_k(a_k . x), with the depth of the profiles."""
    inwards = affine(directions, np.zeros(len(directions)))
    return compose(inwards, beside(profiles), affine(np.ones((1, len(profiles))), np.zeros(1)))


def max_net(count: int, eps: float) -> ReluNet:
    """A three-layer net within `eps` of the maximum of `count` numbers in [0, 1] (Lemma 9).

    With N = ceil(1 / eps) and S_j = sum over t of relu(x_t - j/N): the sum over j of relu(S_j) - relu(S_j - 1/N).

    Inputs outside [0, 1] act as if clipped to it, and the output lies in [0, 1]: each summand is min(S_j, 1/N), an
    input below 0 adds nothing to any S_j, as 0 would, and one above 1 makes every S_j at least 1/N, as 1 would.
    """
    require_count("count", count)
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    steps = math.ceil(1 / eps)
    levels = np.arange(steps) / steps
    sums = np.kron(np.eye(steps), np.ones((1, count)))
    return ReluNet(
        (
            AffineMap(np.tile(np.eye(count), (steps, 1)), -np.repeat(levels, count)),
            AffineMap(np.concatenate([sums, sums]), np.concatenate([np.zeros(steps), np.full(steps, -1 / steps)])),
            AffineMap(np.concatenate([np.ones(steps), -np.ones(steps)])[None, :], np.zeros(1)),
        )
    )


def min_net(count: int, eps: float) -> ReluNet:
    """A three-layer net within `eps` of the minimum: 1 - max(1 - x)."""
    turned = affine(-np.eye(count), np.ones(count))
    return compose(turned, max_net(count, eps), affine(-np.ones((1, 1)), np.ones(1)))


@dataclass(frozen=True, kw_only=True)
class Nets:
    """The nets of a construction and its sharpness, before its heads are arranged.

    `encoder` maps a token to (Psi_1, .., Psi_D), `readout` maps D minima to the answer; its first layer is scaled, so
    that GELU in place of ReLU costs no more than its share of eps. `promised` bounds the error of every arrangement
    whose heads read each minimum over S_i of Psi_i within `bounds.head_error`.
    """

    encoder: ReluNet
    readout: ReluNet
    beta: float
    delta: float
    promised: float
    proved: bool


PROBES = 1001
"""Points at which the slope and curvature that a ridge states are tested: so many equally spaced and as many random
ones, since a wave may vanish at all of the first. Steps of no power of two: on dyadic points a polynomial in float64
has values that look like float32."""
COARSE = 20
"""Of values in float32 only every 20th is used: their second differences over short steps are rounding."""
SLACK = 1e-6
"""Relative excess of a difference over a stated bound that is not refused: constants may have been rounded."""


@dataclass(frozen=True)
class Ridge:
    """g(a . x) with |g'| <= slope and |g''| <= curvature wherever it is used.

    Both bounds are taken from whoever states them; a net of the ridge is refused where its values contradict them.
    """

    direction: tuple[float, ...]
    function: Callable[[float], float]
    slope: float
    curvature: float

    def range(self, low: float, high: float) -> tuple[float, float]:
        """The minimum and maximum of a . x for x in [low, high]^d."""
        ends = [(min(a * low, a * high), max(a * low, a * high)) for a in self.direction]
        return sum(smallest for smallest, _ in ends), sum(largest for _, largest in ends)

    def check(self, low: float, high: float) -> None:
        """Raise `InputError` where values of g on [low, high] are steeper or more curved than stated.

        Every first (second) divided difference is a value of g' (g'') in between, so one that exceeds the stated bound
        by more than rounding refutes it. Differences that do not exceed it are no proof.
        """
        drawn = named_generator(0, "probes of a ridge").uniform(low, high, PROBES)
        for points in (np.linspace(low, high, PROBES), np.sort(drawn)):
            with jax.enable_x64(True):
                values = np.array([float(self.function(float(point))) for point in points])
            if high == low or not np.isfinite(values).all():
                return  # `interpolation_net` refuses these
            self._check_at(points, values)

    def _check_at(self, points: Float[np.ndarray, " points"], values: Float[np.ndarray, " points"]) -> None:
        """`check` at these increasing points, with the values that g has there."""
        low, high = points[0], points[-1]
        single = np.array_equal(values, values.astype(np.float32))
        stride = COARSE if single else 1
        points, values = points[::stride], values[::stride]
        rounding = 4 * float(np.finfo(np.float32 if single else float).eps) * max(1.0, float(np.abs(values).max()))
        steps = np.maximum(np.diff(points), np.finfo(float).tiny)
        slopes, unsure = np.diff(values) / steps, rounding / steps
        between = (steps[1:] + steps[:-1]) / 2
        bends = np.diff(slopes) / between, (unsure[1:] + unsure[:-1]) / between
        for name, stated, (differences, off) in (
            ("slope", self.slope, (slopes, unsure)),
            ("curvature", self.curvature, bends),
        ):
            above = np.abs(differences) - off
            if np.max(above) > stated * (1 + SLACK):
                seen = float(np.abs(differences)[np.argmax(above)])
                raise InputError(
                    f"the ridge along {self.direction} has a {name} of at least {seen:.4g} on [{low:.4g}, {high:.4g}], "
                    f"it states at most {stated:.4g}.",
                    what=name,
                    given=stated,
                    needed=f"at least {seen:.4g}",
                )


@dataclass(frozen=True)
class RidgeSum:
    """A sum of ridges over one space."""

    ridges: tuple[Ridge, ...]

    def __call__(self, x: Float[np.ndarray, " dim"]) -> float:
        return sum(float(ridge.function(float(np.dot(ridge.direction, x)))) for ridge in self.ridges)

    @property
    def steepness(self) -> float:
        """A bound on |grad|_1: how far the sum moves when every coordinate moves by at most 1."""
        return sum(ridge.slope * float(np.sum(np.abs(ridge.direction))) for ridge in self.ridges)

    def net(self, *, low: float, high: float, delta: float) -> ReluNet:
        """A two-layer net within `delta` of it on [low, high]^d, every ridge interpolated within its share of delta.

        Raises `InputError` where a ridge is steeper or more curved there than it states.
        """
        share = delta / len(self.ridges)
        parts = []
        for ridge in self.ridges:
            start, stop = ridge.range(low, high)
            ridge.check(start, stop)
            parts.append(
                interpolation_net(ridge.function, curvature=ridge.curvature, low=start, high=stop, delta=share)
            )
        return ridges_net(np.array([ridge.direction for ridge in self.ridges], float), parts)


def linear(weights: tuple[float, ...], shift: float = 0.0) -> RidgeSum:
    """w . x + shift: one ridge without curvature."""
    return RidgeSum((Ridge(weights, lambda s: s + shift, slope=1.0, curvature=0.0),))


def known_components(task: Retrieval) -> tuple[RidgeSum, ...] | None:
    """The components of a preset, where they are ridges inside [0, 1]; None for other tasks."""
    if isinstance(task.features, ScalarEnds):
        return linear((-1.0,), 1.0), linear((1.0,))
    if isinstance(task.features, Basins):
        return tuple(_bowl(centre) for centre in np.asarray(task.features.centres, float))
    return None


def known_outer(task: Retrieval) -> RidgeSum | None:
    """The outer map where it is the plain sum or that of `max_plus_min`; None otherwise."""
    if task.outer is jnp.sum:
        return linear((1.0,) * len(task.position_sets))
    if task.outer is largest_plus_smallest:
        return linear((-1.0, 1.0), 1.0)
    return None


def _bowl(centre: Float[np.ndarray, " dim"]) -> RidgeSum:
    """|x - c|^2 / d on the cube: a parabola along every axis."""
    dim = len(centre)

    def along(axis: int) -> Ridge:
        middle, direction = float(centre[axis]), tuple(float(k == axis) for k in range(dim))
        return Ridge(direction, lambda s: (s - middle) ** 2 / dim, slope=2 / dim, curvature=2 / dim)

    return RidgeSum(tuple(along(axis) for axis in range(dim)))
