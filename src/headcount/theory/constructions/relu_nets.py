"""ReLU nets with explicit weights: affine maps with a ReLU between consecutive ones, in float64.

Source: Yu et al. (arXiv 2510.06662), Lemmas 8 and 9; the interpolation bound is the classical one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from ...errors import require
from ...models.class_token import Linear
from ..doors import require_below_one, require_counts

AffineMap: Callable[[Any, Any], Linear] = Linear
"""x -> W x + b, of NumPy arrays in float64."""


@dataclass(frozen=True)
class ReluNet:
    """x -> W_L relu(.. relu(W_1 x + b_1) ..) + b_L."""

    layers: tuple[Linear, ...]

    def __call__(self, x: Float[np.ndarray, " inputs"]) -> Any:
        reached: Any = x
        for layer in self.layers[:-1]:
            reached = np.maximum(layer(reached), 0.0)
        return self.layers[-1](reached)

    @property
    def inputs(self) -> int:
        return self.layers[0].weight.shape[1]

    @property
    def outputs(self) -> int:
        return len(self.layers[-1].bias)

    @property
    def parameters(self) -> int:
        """Weights and biases, zeros included."""
        return sum(layer.weight.size + layer.bias.size for layer in self.layers)

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(len(layer.bias) for layer in self.layers[:-1])


def compose(first: ReluNet, *others: ReluNet) -> ReluNet:
    """Apply the others after `first`, as one net: two affine maps that meet become one (Lemma 8).

    Nets of 2, 3 and 2 layers make one of 5.
    """
    whole = first
    for net in others:
        outputs, inputs = whole.outputs, net.inputs
        require(outputs == inputs, f"a net of {inputs} inputs cannot follow one of {outputs} outputs.")
        before, after = whole.layers[-1], net.layers[0]
        joined = AffineMap(after.weight @ before.weight, after(before.bias))
        whole = ReluNet((*whole.layers[:-1], joined, *net.layers[1:]))
    return whole


def in_parallel(nets: Sequence[ReluNet]) -> ReluNet:
    """Join nets of equal depth side by side: inputs and outputs are concatenated."""
    stacks = [
        (block_diag(*(layer.weight for layer in layers)), np.concatenate([layer.bias for layer in layers]))
        for layers in zip(*(net.layers for net in nets), strict=True)
    ]
    return ReluNet(tuple(AffineMap(np.asarray(weight, float), bias) for weight, bias in stacks))


def affine(weight: Float[np.ndarray, "after before"], bias: Float[np.ndarray, " after"] | None = None) -> ReluNet:
    """Return a net of one layer, without a ReLU; the bias is zero where None."""
    weight = np.asarray(weight, float)
    return ReluNet((AffineMap(weight, np.zeros(len(weight)) if bias is None else np.asarray(bias, float)),))


def pieces_needed(curvature: float, low: float, high: float, delta: float) -> int:
    """Return the equal pieces for interpolation within delta: its error is (high - low)^2 |f''| / (8 pieces^2)."""
    return max(1, math.ceil((high - low) * math.sqrt(curvature / (8 * delta))))


def interpolation_net(
    function: Callable[[float], float], *, curvature: float, low: float, high: float, delta: float
) -> ReluNet:
    """Return a two-layer net within `delta` of a function on [low, high] with second derivative at most `curvature`.

    It has one unit per piece, so width C / delta^(1/2).
    """
    knots = np.linspace(low, high, pieces_needed(curvature, low, high, delta) + 1)
    values = np.array([float(function(float(knot))) for knot in knots])
    require(bool(np.isfinite(values).all()), f"the function must be finite on [{low:g}, {high:g}].")
    return through_net(knots, values)


def through_net(knots: Float[np.ndarray, " knots"], values: Float[np.ndarray, " knots"]) -> ReluNet:
    """Return the two-layer net that interpolates `values` at increasing `knots` linearly:

    f(x_0) + sum over j of (slope_j - slope_(j-1)) relu(x - x_j).
    """
    slopes = np.diff(values) / np.diff(knots)
    changes = np.diff(slopes, prepend=0.0)
    return ReluNet((AffineMap(np.ones((len(slopes), 1)), -knots[:-1]), AffineMap(changes[None, :], values[:1])))


def ridges_net(directions: Float[np.ndarray, "ridges dim"], profiles: Sequence[ReluNet]) -> ReluNet:
    """x -> sum over k of profile_k(a_k . x), with the depth of the profiles."""
    return compose(affine(directions), in_parallel(profiles), affine(np.ones((1, len(profiles)))))


def max_net(count: int, eps: float) -> ReluNet:
    """Return a three-layer net within `eps` of the maximum of `count` numbers in [0, 1] (Lemma 9).

    With N = ceil(1 / eps) and S_j = sum over t of relu(x_t - j/N): the sum over j of relu(S_j) - relu(S_j - 1/N).

    Inputs outside [0, 1] act as if clipped to it, and the output lies in [0, 1]: each summand is min(S_j, 1/N), an
    input below 0 adds nothing to any S_j, as 0 would, and one above 1 makes every S_j at least 1/N, as 1 would.
    """
    require_counts(count=count)
    require_below_one(eps=eps)
    steps = math.ceil(1 / eps)
    levels = np.arange(steps) / steps
    sums = np.kron(np.eye(steps), np.ones((1, count)))
    signs = np.repeat([1.0, -1.0], steps)
    return ReluNet(
        (
            AffineMap(np.tile(np.eye(count), (steps, 1)), -np.repeat(levels, count)),
            AffineMap(np.concatenate([sums, sums]), np.where(signs > 0, 0.0, -1 / steps)),
            AffineMap(signs[None, :], np.zeros(1)),
        )
    )


def min_net(count: int, eps: float) -> ReluNet:
    """Return a three-layer net within `eps` of the minimum: 1 - max(1 - x)."""
    turned = affine(-np.eye(count), np.ones(count))
    return compose(turned, max_net(count, eps), affine(-np.ones((1, 1)), np.ones(1)))
