"""Theorem 2(3) as a program: one head with head_dim T d that only averages, and a readout of five ReLU layers.

Hidden unit (t, j) of the encoder is relu(x_j + code_t - 1) with a one-hot position code: x_j at place t, 0 elsewhere
since x_j <= 1. So token t occupies block t of R^(T d). The query is zero, attention is uniform, W_V and W_O are the
identity, the class token is zero: the head outputs (x(1), .., x(T)) / T. The readout F is one net of 2 + 3 + 2 - 2
layers (Lemma 8): nets within delta of f_i on every token of S_i, a minimum over S_i within 1/N (Lemma 9), a net of F0.

    error <= L0 (delta + 1/N) + error of the net of F0,    L0 = sup |grad F0|_1

The component nets may leave [0, 1] by delta at no cost: the net of Lemma 9 clips its inputs to [0, 1] (see `max_net`),
which stays within delta of f_i, and its output lies in [0, 1], where F0 is known. M counts zero weights too and grows
as eps^-max(2, 1 + gamma); the weights that may differ from zero grow as eps^-(1 + gamma), as published.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(3), Lemmas 8 and 9.
"""

import functools
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

import equinox as eqx
import jax
import numpy as np

from ..._shapes import Target, Tokens
from ...errors import require
from ...models import ClassTokenSpec, ClassTokenTransformer, folded
from ...models.class_token import Attention, Linear
from ...tasks import Retrieval
from ..bounds import max_net_widths
from ..doors import require_below_one
from .parts import GivenParts, parts_of
from .relu_nets import AffineMap, ReluNet, affine, compose, in_parallel, min_net

MAX_PARAMETERS = 20_000_000
"""160 MB in float64."""
MAX_DELTA = 0.5
"""Of delta and the resolution, however flat the outer map."""
OUTER_SHARE = 0.24
"""Share of eps for the outer map: a little less than the remaining quarter, so that the sum stays below eps."""


class WideHead(eqx.Module):
    """A model of one head whose readout has five layers; `head` is an ordinary model with an empty readout."""

    head: ClassTokenTransformer
    layers: tuple[Linear, ...]

    def __call__(self, tokens: Tokens) -> Target:
        x = folded.class_output(self.head, tokens)
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


@dataclass(frozen=True, kw_only=True)
class WideConstruction:
    """A model whose error on every sequence of the cube is at most `promised`; `proved` as in `Construction`.

    Sizes follow from the nets that the readout is composed of; `model` is built when it is first used.
    """

    task: Retrieval
    components: tuple[ReluNet, ...]
    outer: ReluNet
    delta: float
    resolution: float
    """Error of a minimum over a position set, with N = ceil(1 / resolution) steps."""
    promised: float
    proved: bool

    @functools.cached_property
    def model(self) -> WideHead:
        """The head, and a readout of five layers from its output (x(1), .., x(T)) / T to the prediction."""
        task, sets = self.task, self.task.position_sets
        wanted = np.concatenate([np.eye(task.length)[list(places)] for places in sets])
        tokens = affine(np.kron(wanted, task.length * np.eye(task.dim)))
        components = [net for places, net in zip(sets, self.components, strict=True) for _ in places]
        minima = [min_net(len(places), self.resolution) for places in sets]
        readout = compose(tokens, in_parallel(components), in_parallel(minima), self.outer)
        return WideHead(_averaging_head(task), readout.layers)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of the four hidden layers of the readout."""
        sizes = [len(places) for places in self.task.position_sets]
        minima = [max_net_widths(size, self.resolution) for size in sizes]
        inner = sum(size * net.widths[0] for size, net in zip(sizes, self.components, strict=True))
        return inner, sum(first for first, _ in minima), sum(second for _, second in minima), self.outer.widths[0]

    @property
    def parameters(self) -> int:
        """M: weights and biases of the encoder and of the readout, zeros included."""
        inputs = self.task.length * self.task.dim
        encoder, readout = (self.task.dim + self.task.length, inputs, inputs), (inputs, *self.widths, 1)
        return sum(before * after + after for sizes in (encoder, readout) for before, after in pairwise(sizes))

    @property
    def connections(self) -> int:
        """Weights inside the blocks, and all biases: a unit reads one token, one component's net, one position set."""
        inputs, widths = self.task.length * self.task.dim, self.widths
        blocks = zip(self.task.position_sets, self.components, strict=True)
        steps = max_net_widths(1, self.resolution)[0]
        minima = sum(len(places) * steps * (net.widths[0] + 2) for places, net in blocks)
        return 5 * inputs + widths[0] * self.task.dim + minima + widths[2] * widths[3] + widths[3] + sum(widths) + 1


def construct_wide(task: Retrieval, eps: float, **given: Unpack[GivenParts]) -> WideConstruction:
    """Write a model of one wide head whose error is at most `eps` everywhere on [0,1]^(length x dim).

    `components` and `outer` are as in `construct`: those neither given nor known of a preset are fitted. Raises
    `InputError` as `construct` does, and where the model would have more than `MAX_PARAMETERS` parameters.
    """
    plan = _plan(task, eps, given)
    require(
        plan.parameters <= MAX_PARAMETERS,
        f"{task.name}: one wide head within eps = {eps:g} has {plan.parameters:,} weights and biases, more than "
        f"{MAX_PARAMETERS:,}; use a larger eps or a shorter length.",
    )
    return plan


def wide_size(task: Retrieval, eps: float, *, zeros: bool = True, **given: Unpack[GivenParts]) -> int:
    """Count M of `construct_wide` without building it; without `zeros`, only weights that may differ from zero."""
    plan = _plan(task, eps, given)
    return plan.parameters if zeros else plan.connections


def _plan(task: Retrieval, eps: float, given: GivenParts) -> WideConstruction:
    """Half of eps for the minima, which cost most, a quarter for the components, the rest for the outer map."""
    require_below_one(eps=eps)
    parts = parts_of(task, **given)
    slope = max(parts.outer.steepness, 1e-12)
    delta, resolution = min(eps / (4 * slope), MAX_DELTA), min(eps / (2 * slope), MAX_DELTA)
    return WideConstruction(
        task=task,
        components=tuple(part.net(delta=delta) for part in parts.components),
        outer=parts.outer.net(delta=OUTER_SHARE * eps),
        delta=delta,
        resolution=resolution,
        promised=slope * (delta + resolution) + OUTER_SHARE * eps,
        proved=parts.proved,
    )


def _averaging_head(task: Retrieval) -> ClassTokenTransformer:
    """Return one head with head_dim T d: token t in block t, averaged over places. Its own readout has no units."""
    length, dim = task.length, task.dim
    total = length * dim
    places = np.repeat(np.eye(length), dim, axis=0)
    inwards = np.concatenate([np.tile(np.eye(dim), (length, 1)), places], axis=1)
    identity, zeros = np.eye(total), np.zeros((1, total, total))
    leaves: dict[str, Any] = {"position_table": np.eye(length), "class_token": np.zeros(total)}
    weights: dict[str, Any] = {"query": zeros, "key": zeros, "value": identity[None], "output": identity[:, None]}
    return ClassTokenTransformer(
        encoder_in=AffineMap(inwards, -np.ones(total)),
        encoder_out=AffineMap(identity, np.zeros(total)),
        attention=(Attention(**weights),),
        readout_in=AffineMap(np.zeros((0, total)), np.zeros(0)),
        readout_out=AffineMap(np.zeros((1, 0)), np.zeros(1)),
        spec=ClassTokenSpec(heads=1, head_dim=total, hidden=total, positions="concatenated", beta=1.0),
        **leaves,
    )
