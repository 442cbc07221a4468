"""Observables of a sequence: numbers that must agree for two sequences to collide.

Three systems, each of them sufficient:

    class outputs   c(X), the class token after attention: E coordinates, at any depth; before a norm E - 1
    head outputs    sum over t of a_i(t) v_i(t) for each head i, the same before W_O: n h coordinates, one layer
    moments         sum over t of exp(beta s_i(t)) (1, v_i(t)) for each head, without the tokens that both sequences
                    share: (n + 1) h coordinates, numerators and denominators of the softmax, scaled per head

A trained head often attends to one token with a weight that is 1 to sixteen digits, and in float64 its output then does
not depend on the other tokens. Its moments do: once the tokens that take the weight are shared, they cancel exactly.
The proof of Theorem 2(2) uses them, with the most responsive points shared (Yu et al., arXiv 2510.06662).

A layer norm before the readout, N(c) = u / sqrt(|u|^2 / E + floor) with u = c - mean(c), is one to one in u, for its
length grows with that of u. So N(c) = N(c') exactly where c and c' differ by the same number in every entry: a norm
keeps every collision and adds those, of E - 1 coordinates c_j - c_1. Its slope in u is at most 1 / sqrt(floor).
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._shapes import AnyArray, Tokens
from ...errors import require
from ...models import ClassTokenTransformer, folded
from ...tasks import GeneratedTask
from .heads import Coordinates, FoldedHeads

Pair = Float[Array, "2 length dim"]
Scale = Any
"""One score per head, subtracted before the exponential for both sequences; None where observables need no scale."""


class AbstractObservables(eqx.Module):
    """Coordinates that must agree between two sequences. `shared` are the places at which both hold the same token."""

    shared: eqx.AbstractVar[tuple[int, ...]]

    @abstractmethod
    def observe(self, tokens: Tokens, scale: Scale) -> Float[Array, " observed"]:
        """Return the coordinates of one sequence."""

    @abstractmethod
    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "observed length dim"]:
        """Return their derivative with respect to the tokens."""

    def scale(self, pair: Pair) -> Scale:
        return None

    def reach(self, pair: Pair) -> Float[Array, ""]:
        """Return how far a token can move before a score moves by about one: the range of a linearisation."""
        return jnp.asarray(jnp.inf)

    def tied(self, pair: Pair) -> Pair:
        """Return the pair with the first sequence's tokens at the shared places."""
        if not self.shared:
            return pair
        return pair.at[1, np.array(self.shared)].set(pair[0, np.array(self.shared)])

    def difference(self, pair: Pair, scale: Scale) -> Float[Array, " observed"]:
        return self.observe(pair[0], scale) - self.observe(pair[1], scale)

    def linearised(self, pair: Pair) -> tuple[Float[Array, " observed"], Float[Array, "observed entries"]]:
        """Return G, the difference of a pair, and its derivative with respect to all token entries of the pair."""
        scale = self.scale(pair)
        one, other = (self.jacobian(tokens, scale) for tokens in pair)
        rows = jnp.concatenate([one.reshape(len(one), -1), -other.reshape(len(other), -1)], axis=1)
        return self.difference(pair, scale), rows


def seen_by_readout(model: ClassTokenTransformer, tokens: Tokens) -> Float[Array, " total"]:
    """Return the input of the readout net: the class token after attention, normed where the model has a norm."""
    return folded.readout_input(model, folded.class_output(model, tokens))


class ClassOutputs(AbstractObservables):
    """The class token after attention; before a norm, which does not see a common shift, relative to its first entry.

    (The norm of a single number is always 0. It is compared as if there were no norm, which is sufficient.)
    """

    model: ClassTokenTransformer
    shared: tuple[int, ...] = eqx.field(static=True, default=())

    def observe(self, tokens: Tokens, scale: Scale) -> Float[Array, " observed"]:
        output = folded.class_output(self.model, tokens)
        return output[1:] - output[0] if self.model.spec.final_norm and len(output) > 1 else output

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "observed length dim"]:
        return jax.jacrev(lambda tokens: self.observe(tokens, scale))(tokens)


class AbstractHeadObservables(AbstractObservables):
    """Observables of one layer: sums over tokens of contributions to each head.

    With `features`, the values of a head are those entries of (x(t), r(t)), the token and its hidden units, instead of
    W_V x^(t). Where every other unit is off at all tokens, or on at all tokens and the token is among the features,
    W_V x^(t) is an affine function of the features.
    """

    heads: FoldedHeads
    coordinates: Coordinates = eqx.field(static=True)
    shared: tuple[int, ...] = eqx.field(static=True, default=())
    features: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def reach(self, pair: Pair) -> Float[Array, ""]:
        places = np.arange(pair.shape[1])
        slopes = [jax.vmap(jax.jacfwd(self.heads.scores))(tokens, places) for tokens in pair]
        return 1 / jnp.maximum(jnp.max(jnp.linalg.norm(jnp.concatenate(slopes), axis=-1)), 1e-12)

    @property
    def owners(self) -> np.ndarray:
        """The head of every coordinate."""
        return np.array(self.coordinates)[:, 0]

    def places(self, length: int) -> np.ndarray:
        """Return the places that are not shared."""
        return np.array([place for place in range(length) if place not in self.shared])

    def token_values(self, token: Float[Array, " dim"], place: Any) -> Float[Array, " coordinates"]:
        if self.features is None:
            return self.heads.token_values(token, place)
        return jnp.concatenate([token, self.heads.hidden(token, place)])[np.array(self.coordinates)[:, 1]]


class HeadOutputs(AbstractHeadObservables):
    """The output of every head, before W_O."""

    def observe(self, tokens: Tokens, scale: Scale) -> Float[Array, " observed"]:
        return jnp.sum(
            self._attention_weights(tokens) * jax.vmap(self.token_values)(tokens, np.arange(len(tokens))), axis=0
        )

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "observed length dim"]:
        """a_i(t) (dv_i(t) + (v_i(t) - output_i) ds_i(t)) for every token t."""
        places, weights = np.arange(len(tokens)), self._attention_weights(tokens)
        values = jax.vmap(self.token_values)(tokens, places)
        outputs = jnp.sum(weights * values, axis=0)
        score_slopes = jax.vmap(jax.jacfwd(self.heads.scores))(tokens, places)[:, self.owners]
        value_slopes = jax.vmap(jax.jacfwd(self.token_values))(tokens, places)
        return jnp.moveaxis(weights[..., None] * (value_slopes + (values - outputs)[..., None] * score_slopes), 0, 1)

    def _attention_weights(self, tokens: Tokens) -> Float[Array, "length coordinates"]:
        scores = jax.vmap(self.heads.scores)(tokens, np.arange(len(tokens)))
        return jax.nn.softmax(scores, axis=0)[:, self.owners]


class CentredOutputs(AbstractObservables):
    """Input of a norm after one layer: every entry of the class token less the first, a matrix times the head outputs.

    The same as `ClassOutputs` before a norm, with the enclosed constants and the derivative of the heads.
    """

    outputs: HeadOutputs
    mixing: Float[AnyArray, "*models centred observed"]
    """Of one model, or of several side by side before they are mapped over."""
    shared: tuple[int, ...] = eqx.field(static=True, default=())

    def observe(self, tokens: Tokens, scale: Scale) -> Float[Array, " centred"]:
        return self.mixing @ self.outputs.observe(tokens, scale)

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "centred length dim"]:
        return jnp.tensordot(self.mixing, self.outputs.jacobian(tokens, scale), axes=1)

    def reach(self, pair: Pair) -> Float[Array, ""]:
        return self.outputs.reach(pair)


def mixing_of(model: ClassTokenTransformer, coordinates: Coordinates) -> Float[np.ndarray, "total coordinates"]:
    """Return the columns of W_O that these coordinates of the only layer reach."""
    heads, rows = np.array(coordinates).T
    return np.asarray(model.attention[0].output, np.float64)[:, heads, rows]


class Moments(AbstractHeadObservables):
    """Numerators and denominators of every head, over the places that are not shared."""

    def observe(self, tokens: Tokens, scale: Scale) -> Float[Array, " observed"]:
        places = self.places(len(tokens))
        return jnp.sum(jax.vmap(self._contribution, in_axes=(0, 0, None))(tokens[places], places, scale), axis=0)

    def jacobian(self, tokens: Tokens, scale: Scale) -> Float[Array, "observed length dim"]:
        places = self.places(len(tokens))
        blocks = jax.vmap(jax.jacfwd(self._contribution), in_axes=(0, 0, None))(tokens[places], places, scale)
        parts = jnp.moveaxis(blocks, 0, 1)
        zero = jnp.zeros((parts.shape[0], 1, parts.shape[2]))
        order = [int(np.flatnonzero(places == t)[0]) if t in places else len(places) for t in range(len(tokens))]
        return jnp.concatenate([parts, zero], axis=1)[:, np.array(order)]

    def scale(self, pair: Pair) -> Scale:
        """Return the highest score of each head, which makes its moments of the order of one."""
        places = self.places(pair.shape[1])
        scores = [jax.vmap(self.heads.scores)(tokens[places], places) for tokens in pair]
        return jax.lax.stop_gradient(jnp.max(jnp.concatenate(scores), axis=0))

    def _contribution(self, token: Float[Array, " dim"], place: Any, scale: Scale) -> Float[Array, " observed"]:
        """Return the contribution of one token: its weight in each head, and the weight times each value."""
        weights = jnp.exp(self.heads.scores(token, place) - scale)
        return jnp.concatenate(
            [weights[np.unique(self.owners)], weights[self.owners] * self.token_values(token, place)]
        )


def check_fit(model: ClassTokenTransformer, task: GeneratedTask, *, done: str = "collisions are searched") -> None:
    """Check that a model reads the task's sequences. Raises `InputError` where the model has another token dimension,
    or positions for another length, or reads otherwise than by soft attention of heads with their own keys.
    """
    differs = {"kv_heads": None, "window": None, "causal": False, "attention": "soft"}
    for name, plain in differs.items():
        given = getattr(model.spec, name)
        why = f"{done} with {name} {plain} alone, the model has {given}."
        require(given == plain, why, what=name, given=given)
    table = model.position_table
    dim = model.sizes()["dim"]
    if table is not None:
        require(
            table.shape[0] == task.length,
            f"the model has positions for length {table.shape[0]}, {task.name} has length {task.length}.",
        )
    require(dim == task.dim, f"the model reads tokens of dim {dim}, {task.name} has dim {task.dim}.")
