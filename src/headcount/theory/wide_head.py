"""Theorem 2(3) as a program: one head of n = T d numbers that only averages, and five ReLU layers that do the work.

Hidden unit (t, j) of the encoder is relu(x_j + code_t - 1) with a one-hot code of the place: x_j at place t, and 0
elsewhere since x_j <= 1. So token t stands in block t of R^(T d). The query is zero, attention is uniform, W_V and W_O
are the identity, the class token is zero: what leaves the head is (x(1), .., x(T)) / T. F is one net of 2 + 3 + 2 - 2
layers (Lemma 8): nets within delta of f_i on every token of S_i, a minimum over S_i within 1/N (Lemma 9), a net of F0.

    error <= L0 (delta + 1/N) + error of the net of F0,    L0 = sup |grad F0|_1

The component nets may leave [0, 1] by delta. That costs nothing: the net of Lemma 9 takes such a number for the nearer
end of [0, 1] (see `max_net`), which is within delta of f_i too, and its own answer is in [0, 1], where F0 is known.

M counts zeros as weights. The minimum's middle matrices have |S_i| N times 2 N entries a component, most of them zeros,
so M grows as eps^-max(2, 1 + gamma); the weights that may differ from zero grow as eps^-(1 + gamma), as published.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(3), Lemmas 8 and 9.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._errors import require
from .._shapes import Target, Tokens
from ..models import ClassTokenSpec, ClassTokenTransformer, folded
from ..models.class_token import Attention, Linear
from ..tasks import Retrieval
from .bounds import max_net_widths
from .parts import parts_of
from .relu_nets import ReluNet, affine, beside, compose, min_net
from .ridges import RidgeSum

MOST_PARAMETERS = 20_000_000
"""160 MB in float64."""
COARSEST = 0.5
"""The largest delta and resolution used, however flat the outer map."""

OUTER_SHARE = 0.24
"""Of eps, a hair less than the quarter that is left, so that rounding does not carry the sum over eps."""


class WideHead(eqx.Module):
    """A model of one head whose readout has five layers; `head` is an ordinary model that reads out nothing."""

    head: ClassTokenTransformer
    layers: tuple[Linear, ...]

    def __call__(self, tokens: Tokens) -> Target:
        """The answer for one sequence."""
        x = folded.class_output(self.head, tokens)
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


@dataclass(frozen=True, kw_only=True)
class WideConstruction:
    """A model and what is promised of it: no sequence of the cube is answered worse than by `promised`.

    Where `proved`, that is a theorem, given the slopes and curvatures that the ridges state. Otherwise it is an
    estimate: it rests on errors and slopes seen at sample points (`theory/fitted.py`).
    """

    model: WideHead
    eps: float
    promised: float
    proved: bool
    delta: float
    resolution: float
    """The minimum of a set is read within this, by N = ceil(1 / this) steps."""
    widths: tuple[int, ...]
    """Units of the four hidden layers of F."""
    parameters: int
    """M: weights and biases of the encoder and of F, zeros included."""


def construct_wide(
    task: Retrieval, eps: float, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> WideConstruction:
    """Weights of one head that answer `task` within `eps` everywhere on [0,1]^(length x dim).

    `components` and `outer` are as in `construct`: those neither given nor known of a preset are fitted.
    """
    plan = _plan(task, eps, components, outer)
    require(
        plan.parameters <= MOST_PARAMETERS,
        f"{task.name}: one wide head within eps = {eps:g} has {plan.parameters:,} weights and biases, more than "
        f"{MOST_PARAMETERS:,}; a larger eps or a shorter length would do.",
    )
    weights = _layers(_readout(plan))
    return WideConstruction(
        model=WideHead(_averaging_head(task), weights),
        eps=eps,
        promised=plan.promised,
        proved=plan.proved,
        delta=plan.delta,
        resolution=plan.resolution,
        widths=plan.widths,
        parameters=plan.parameters,
    )


def wide_size(
    task: Retrieval,
    eps: float,
    *,
    components: tuple[RidgeSum, ...] | None = None,
    outer: RidgeSum | None = None,
    zeros: bool = True,
) -> int:
    """M of `construct_wide`, counted and not built; without `zeros`, only what may differ from zero."""
    plan = _plan(task, eps, components, outer)
    return plan.parameters if zeros else plan.connections


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The nets that F is put together from, and what follows from them."""

    task: Retrieval
    components: tuple[ReluNet, ...]
    outer: ReluNet
    delta: float
    resolution: float
    promised: float
    proved: bool

    @property
    def widths(self) -> tuple[int, ...]:
        sizes = [len(places) for places in self.task.position_sets]
        minima = [max_net_widths(size, self.resolution) for size in sizes]
        inner = sum(size * net.widths[0] for size, net in zip(sizes, self.components, strict=True))
        return inner, sum(first for first, _ in minima), sum(second for _, second in minima), self.outer.widths[0]

    @property
    def parameters(self) -> int:
        inputs = self.task.length * self.task.dim
        encoder = (self.task.dim + self.task.length, inputs, inputs)
        return _dense(encoder) + _dense((inputs, *self.widths, 1))

    @property
    def connections(self) -> int:
        """Weights inside the blocks, and all biases: a unit reads one token, one component's net, one set of places."""
        inputs, widths = self.task.length * self.task.dim, self.widths
        sizes = [len(places) for places in self.task.position_sets]
        blocks = zip(sizes, self.components, strict=True)
        steps = max_net_widths(1, self.resolution)[0]
        minima = sum(size * steps * (net.widths[0] + 2) for size, net in blocks)
        encoder = 3 * inputs + 2 * inputs
        return encoder + widths[0] * self.task.dim + minima + widths[2] * widths[3] + widths[3] + sum(widths) + 1


def _dense(sizes: tuple[int, ...]) -> int:
    return sum(before * after + after for before, after in pairwise(sizes))


def _plan(task: Retrieval, eps: float, components: tuple[RidgeSum, ...] | None, outer: RidgeSum | None) -> _Plan:
    """Half of eps to the minima, which are the dearest, a quarter to the components, the rest to the outer map."""
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    parts = parts_of(task, components=components, outer=outer)
    slope = max(parts.outer.steepness, 1e-12)
    delta, resolution = min(eps / (4 * slope), COARSEST), min(eps / (2 * slope), COARSEST)
    return _Plan(
        task=task,
        components=tuple(part.net(low=0.0, high=1.0, delta=delta) for part in parts.components),
        outer=parts.outer.net(low=0.0, high=1.0, delta=OUTER_SHARE * eps),
        delta=delta,
        resolution=resolution,
        promised=slope * (delta + resolution) + OUTER_SHARE * eps,
        proved=parts.proved,
    )


def _readout(plan: _Plan) -> ReluNet:
    """F: five layers from the head's (x(1), .., x(T)) / T to the answer."""
    task, sets = plan.task, plan.task.position_sets
    block = task.length * np.eye(task.dim)
    wanted = np.concatenate([np.eye(task.length)[list(places)] for places in sets])
    tokens = affine(np.kron(wanted, block), np.zeros(len(wanted) * task.dim))
    components = [net for places, net in zip(sets, plan.components, strict=True) for _ in places]
    minima = [min_net(len(places), plan.resolution) for places in sets]
    return compose(tokens, beside(components), beside(minima), plan.outer)


def _averaging_head(task: Retrieval) -> ClassTokenTransformer:
    """One head of T d numbers: token t in block t, averaged over places. Its own readout has no units."""
    length, dim = task.length, task.dim
    total = length * dim
    places = np.repeat(np.eye(length), dim, axis=0)
    inwards = np.concatenate([np.tile(np.eye(dim), (length, 1)), places], axis=1)
    identity, nothing = np.eye(total), np.zeros((1, total, total))
    weights: dict[str, Any] = {
        "encoder_in": _linear(inwards, -np.ones(total)),
        "encoder_out": _linear(identity, np.zeros(total)),
        "position_table": np.eye(length),
        "class_token": np.zeros(total),
        "attention": (_attention(nothing, nothing, identity[None], identity[:, None]),),
        "readout_in": _linear(np.zeros((0, total)), np.zeros(0)),
        "readout_out": _linear(np.zeros((1, 0)), np.zeros(1)),
    }
    spec = ClassTokenSpec(heads=1, head_dim=total, hidden=total, positions="concatenated")
    return ClassTokenTransformer(**weights, spec=spec)


def _linear(weight: Any, bias: Any) -> Linear:
    return Linear(weight, bias)


def _attention(query: Any, key: Any, value: Any, output: Any) -> Attention:
    return Attention(query=query, key=key, value=value, output=output)


def _layers(net: ReluNet) -> tuple[Linear, ...]:
    return tuple(_linear(layer.weight, layer.bias) for layer in net.layers)
