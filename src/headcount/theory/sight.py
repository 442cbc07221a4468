"""What a readout can see of a sequence, as numbers that must agree for two sequences to look alike.

Three systems, each of them enough:

    class outputs   c(X), the class token after attention: E numbers, at any depth
    head outputs    sum over t of a_i(t) v_i(t) for each head i, the same before W_O: n h numbers, one layer
    moments         sum over t of exp(beta s_i(t)) (1, v_i(t)) for each head, tokens that both sequences share left
                    out: (n + 1) h numbers, numerators and denominators of the softmax, each head on its own scale

A trained head often reads one token with a weight of one to sixteen digits, and its outputs then say in float64 nothing
of the others. Moments do: once the tokens that take the weight are shared, they cancel exactly. They are the numbers of
the proof of Theorem 2(2), where the most responsive points are shared (Yu et al., arXiv 2510.06662).
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._errors import require
from .._shapes import Tokens
from ..models import ClassTokenTransformer, folded
from ..tasks import AbstractTask
from . import intervals
from .heads import Heads, Numbers
from .intervals import Interval, point

Pair = Float[Array, "2 length dim"]
Scale = Any
"""One number for each head that both sequences' numbers are measured by, or None where a sight needs no scale."""


class AbstractSight(eqx.Module):
    """Numbers of one model that two sequences must have in common. `shared` are the places where they are equal."""

    shared: eqx.AbstractVar[tuple[int, ...]]

    @abstractmethod
    def of(self, tokens: Tokens, scale: Scale) -> Float[Array, " seen"]:
        """The numbers of one sequence."""

    @abstractmethod
    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "seen length dim"]:
        """Their derivative."""

    def scale(self, pair: Pair) -> Scale:
        """The scale that suits a pair."""
        return None

    def reach(self, pair: Pair) -> Float[Array, ""]:
        """How far a token can move before a score moves by about one: what is linear goes no further."""
        return jnp.asarray(jnp.inf)

    def tied(self, pair: Pair) -> Pair:
        """The pair with the first sequence's tokens at the shared places."""
        if not self.shared:
            return pair
        return pair.at[1, np.array(self.shared)].set(pair[0, np.array(self.shared)])

    def difference(self, pair: Pair, scale: Scale) -> Float[Array, " seen"]:
        return self.of(pair[0], scale) - self.of(pair[1], scale)

    def linearised(self, pair: Pair) -> tuple[Float[Array, " seen"], Float[Array, "seen numbers"]]:
        """G, the difference of a pair, and its derivative with respect to all numbers of the pair."""
        scale = self.scale(pair)
        one, other = (self.jacobian(tokens, scale) for tokens in pair)
        rows = jnp.concatenate([one.reshape(len(one), -1), -other.reshape(len(other), -1)], axis=1)
        return self.difference(pair, scale), rows


class ClassOutputs(AbstractSight):
    """The class token after attention."""

    model: ClassTokenTransformer
    shared: tuple[int, ...] = eqx.field(static=True, default=())

    def of(self, tokens: Tokens, scale: Scale) -> Float[Array, " seen"]:
        return folded.class_output(self.model, tokens)

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "seen length dim"]:
        return jax.jacrev(lambda tokens: self.of(tokens, scale))(tokens)


class AbstractHeadSight(AbstractSight):
    """Sights of one layer: sums over tokens of what each token adds to each head.

    With `features`, a head's values are these of (x(t), r(t)), the token and its hidden units, instead of W_V x^(t).
    Where all other units are off at every token, or on at every token and the token is among the features, W_V x^(t) is
    an affine function of those.
    """

    heads: Heads
    numbers: Numbers = eqx.field(static=True)
    shared: tuple[int, ...] = eqx.field(static=True, default=())
    features: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def reach(self, pair: Pair) -> Float[Array, ""]:
        places = np.arange(pair.shape[1])
        slopes = [jax.vmap(jax.jacfwd(self.heads.scores))(tokens, places) for tokens in pair]
        return 1 / jnp.maximum(jnp.max(jnp.linalg.norm(jnp.concatenate(slopes), axis=-1)), 1e-12)

    @property
    def owners(self) -> np.ndarray:
        """The head of every number."""
        return np.array(self.numbers)[:, 0]

    def places(self, length: int) -> np.ndarray:
        """Those that are not shared."""
        return np.array([place for place in range(length) if place not in self.shared])

    def values(self, token: Float[Array, " dim"], place: Any) -> Float[Array, " numbers"]:
        if self.features is None:
            return self.heads.values(token, place)
        return jnp.concatenate([token, self.heads.hidden(token, place)])[np.array(self.numbers)[:, 1]]


class HeadOutputs(AbstractHeadSight):
    """What every head reads, number by number."""

    def of(self, tokens: Tokens, scale: Scale) -> Float[Array, " seen"]:
        return jnp.sum(self._weights(tokens) * jax.vmap(self.values)(tokens, np.arange(len(tokens))), axis=0)

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "seen length dim"]:
        """a_i(t) (dv_i(t) + (v_i(t) - output_i) ds_i(t)), token by token."""
        places, weights = np.arange(len(tokens)), self._weights(tokens)
        values = jax.vmap(self.values)(tokens, places)
        outputs = jnp.sum(weights * values, axis=0)
        score_slopes = jax.vmap(jax.jacfwd(self.heads.scores))(tokens, places)[:, self.owners]
        value_slopes = jax.vmap(jax.jacfwd(self.values))(tokens, places)
        return jnp.moveaxis(weights[..., None] * (value_slopes + (values - outputs)[..., None] * score_slopes), 0, 1)

    def _weights(self, tokens: Tokens) -> Float[Array, "length numbers"]:
        """The attention weight that goes with every number."""
        scores = jax.vmap(self.heads.scores)(tokens, np.arange(len(tokens)))
        return jax.nn.softmax(scores, axis=0)[:, self.owners]


class Moments(AbstractHeadSight):
    """Numerators and denominators of every head, over the places that are not shared."""

    def of(self, tokens: Tokens, scale: Scale) -> Float[Array, " seen"]:
        places = self.places(len(tokens))
        return jnp.sum(jax.vmap(self._added, in_axes=(0, 0, None))(tokens[places], places, scale), axis=0)

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "seen length dim"]:
        places = self.places(len(tokens))
        blocks = jax.vmap(jax.jacfwd(self._added), in_axes=(0, 0, None))(tokens[places], places, scale)
        parts = jnp.moveaxis(blocks, 0, 1)
        nothing = jnp.zeros((parts.shape[0], 1, parts.shape[2]))
        order = [int(np.flatnonzero(places == t)[0]) if t in places else len(places) for t in range(len(tokens))]
        return jnp.concatenate([parts, nothing], axis=1)[:, np.array(order)]

    def scale(self, pair: Pair) -> Scale:
        """The highest score of each head: its moments are then of the order of one."""
        places = self.places(pair.shape[1])
        scores = [jax.vmap(self.heads.scores)(tokens[places], places) for tokens in pair]
        return jax.lax.stop_gradient(jnp.max(jnp.concatenate(scores), axis=0))

    def _added(self, token: Float[Array, " dim"], place: Any, scale: Scale) -> Float[Array, " seen"]:
        """What one token adds: its weight in each head, and the weight times each value."""
        weights = jnp.exp(self.heads.scores(token, place) - scale)
        return jnp.concatenate([weights[np.unique(self.owners)], weights[self.owners] * self.values(token, place)])


def check_fit(model: ClassTokenTransformer, task: AbstractTask) -> None:
    """Refuse a model that cannot read the task's sequences."""
    table = model.position_table
    dim = model.encoder_in.weight.shape[1]
    if table is not None:
        require(
            table.shape[0] == task.length,
            f"the model has places for {table.shape[0]} tokens, {task.name} has sequences of {task.length}.",
        )
        dim -= table.shape[1] if model.concatenated else 0
    require(dim == task.dim, f"the model reads tokens of {dim} numbers, those of {task.name} have {task.dim}.")


STEADY = 1e-6
"""A hidden unit this far from its kink at every token is taken to stay on its side; `steady` proves it."""


def with_features(sight: AbstractSight, pair: Float[np.ndarray, "2 length dim"]) -> AbstractSight:
    """The same sight on fewer numbers, where few hidden units change between on and off among the tokens of this pair.

    Where tokens lie together a head's n numbers move in fewer than n directions, and no test for a zero could succeed
    on them. Only for models that know no places: else values are no function of the features.
    """
    if not isinstance(sight, AbstractHeadSight) or sight.features is not None:
        return sight
    if np.ptp(sight.heads.bias, axis=0).any() or np.ptp(sight.heads.value_bias, axis=0).any():
        return sight
    before, dim = _before_relu(sight, pair), pair.shape[-1]
    on, off = np.all(before > STEADY, axis=0), np.all(before < -STEADY, axis=0)
    if on.sum() > dim:  # units that are always on are affine in the token, and the token has fewer numbers
        features = (*range(dim), *(dim + np.flatnonzero(~on & ~off)))
    else:
        features = tuple(dim + np.flatnonzero(~off))
    owners = np.unique(sight.owners)
    if len(features) * len(owners) >= len(sight.numbers) or (not features and isinstance(sight, Moments)):
        return sight
    numbers = tuple((int(head), int(feature)) for head in owners for feature in features)
    kind, chosen = type(sight), tuple(int(feature) for feature in features)
    return kind(heads=sight.heads, numbers=numbers, shared=sight.shared, features=chosen)


def steady(sight: AbstractSight, boxes: list[Interval]) -> bool:
    """Whether no hidden unit but those among the features changes sign anywhere in the boxes of two sequences."""
    if not isinstance(sight, AbstractHeadSight) or sight.features is None:
        return True
    dim, places = boxes[0].shape[-1], sight.places(len(boxes[0].low))
    others = np.setdiff1d(np.arange(len(sight.heads.inwards)), np.array(sight.features, int) - dim)
    weight, bias = np.asarray(sight.heads.inwards)[others], np.asarray(sight.heads.bias)[0, others]
    both = Interval(*(np.concatenate([getattr(box, end)[places] for box in boxes]) for end in ("low", "high")))
    before = intervals.add(intervals.product(both, point(weight.T)), point(bias))
    on, off = np.all(before.low > 0, axis=0), np.all(before.high < 0, axis=0)
    return bool(np.all(np.logical_or(on, off) if 0 in sight.features else off))


def _before_relu(
    sight: AbstractHeadSight, pair: Float[np.ndarray, "2 length dim"]
) -> Float[np.ndarray, "tokens hidden"]:
    """What enters the ReLU, at all tokens that are not shared."""
    tokens = np.asarray(pair)[:, sight.places(pair.shape[1])].reshape(-1, pair.shape[-1])
    return tokens @ np.asarray(sight.heads.inwards).T + np.asarray(sight.heads.bias)[0]
