"""The class-token transformer's weights: how they are drawn, padded and rescaled.

    x^(t) = W2 relu(W1 x(t) + b1) + b2                                            encoder, E numbers per token
    y     = W4 gelu(W3 (c0 + W_O concat_i [sum_t a_i(t) W_V,i x^(t)]) + b3) + b4   read at the class token
    a_i   = softmax_t(beta <W_Q,i c0, W_K,i x^(t)>)

With L > 1 layers the same attention, residual included, first updates every token and the class token L - 1 times.
There are no feed-forward nets between unless `inner_hidden` asks for them, so that the parameters the papers count (M)
are those of the two outer nets. With `final_norm` the readout sees the layer norm of the class token.
Source: Yu et al. (arXiv 2510.06662), section 3; the depth rule is our choice where the paper is silent.

Nothing here is compiled: weights are drawn, resized and rescaled as NumPy arrays, or stay JAX where they are.
"""

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Self, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..._choices import Backend
from ..._shapes import AnyArray, Key, Target, TokenIds, Tokens
from ...errors import require
from ..attention import HeadMatrices, places_of, share_groups, unread_keys
from ..base import AbstractModel, absent_tokens, skeleton
from ..layers import POSITION_SCALE, Linear, draw_linear, draw_normal, draw_uniform, with_zeros
from .spec import ClassTokenSpec

if TYPE_CHECKING:
    from .removal import HeadRemoval

CLASS_TOKEN_SCALE = 0.1


class Attention(HeadMatrices):
    """The heads of a layer, whose W_O is over the concatenated heads."""

    @property
    def head_keys(self) -> Float[AnyArray, "heads rank total"]:
        """W_K as each head has it."""
        return share_groups(self.key, len(self.query))

    @property
    def head_values(self) -> Float[AnyArray, "heads head_dim total"]:
        """W_V as each head has it."""
        return share_groups(self.value, len(self.query))

    @property
    def written(self) -> Float[AnyArray, "total heads head_dim"]:
        """W_O; the part of a head that is padding is not trained."""
        if len(self.key) == len(self.query):
            return super().written
        # A head that is added to others that share its values has values, so its W_O would be trained: of mere padding
        # W_Q and W_O are all zero.
        trained = (self.query != 0).any(axis=(1, 2)) | (self.output != 0).any(axis=(0, 2))
        return super().written * trained[:, None]


class InnerNet(eqx.Module):
    """x -> x + W_b relu(W_a x + b_a) + b_b, between two attention layers."""

    first: Linear
    second: Linear

    def __call__(self, x: Float[AnyArray, " total"]) -> Float[AnyArray, " total"]:
        return x + self.second(jax.nn.relu(self.first(x)))


@final
class ClassTokenTransformer(AbstractModel):
    """The weights of one model. `folded.predict` computes its answers.

    What it computes reads nothing of the spec but `positions`, `beta`, `masks_padding`, `vocabulary`, `final_norm` and
    how heads read: `window`, `causal`, `attention`, `top_k`.
    """

    encoder_in: Linear
    encoder_out: Linear
    position_table: Float[AnyArray, "length code"] | None
    class_token: Float[AnyArray, " total"]
    attention: tuple[Attention, ...]
    readout_in: Linear
    readout_out: Linear
    spec: ClassTokenSpec = eqx.field(static=True)
    inner: tuple[InnerNet, ...] = ()
    """One after every attention layer but the last; empty without them."""

    @property
    def position_codes(self) -> Float[AnyArray, "length code"] | None:
        """What is concatenated to the tokens."""
        return self.position_table if self.spec.positions == "concatenated" else None

    @property
    def added_positions(self) -> Float[AnyArray, "length total"] | None:
        """What is added to the embedded tokens."""
        return self.position_table if self.spec.positions == "additive" else None

    def __call__(self, tokens: Tokens | TokenIds, *, key: Key | None = None) -> Target:
        from . import folded

        return folded.predict(self, self.read_tokens(tokens))

    def answers(
        self,
        tokens: Float[AnyArray, "examples length dim"],
        keys: AnyArray | None = None,
        *,
        backend: Backend = "reference",
    ) -> Float[AnyArray, "examples outputs"]:
        if backend == "reference" or not self.spec.pools:
            return super().answers(tokens, keys)
        from . import folded

        return folded.predict_batch(self, tokens)

    def without_absent(self, tokens: Tokens) -> tuple[Tokens, Bool[AnyArray, " length"] | None]:
        """Return tokens to compute with, and which of them no head may read; None where every token is there."""
        if not self.spec.masks_padding:
            return tokens, None
        absent = absent_tokens(tokens)
        return jnp.where(absent[:, None], 0, tokens), absent

    def unread_at_class_token(
        self, length: int, absent: Bool[AnyArray, " length"] | None
    ) -> Bool[AnyArray, " length"] | None:
        """Return which tokens the class token does not read; None where it reads all. It comes after them."""
        if self.spec.window is None:
            return absent
        after = jnp.asarray(length) if absent is None else jnp.sum(~absent)
        hidden = unread_keys(self.spec, absent, after[None], places_of(absent, length), after=1)
        return None if hidden is None else hidden[0]

    def unread_at_tokens(
        self, length: int, absent: Bool[AnyArray, " length"] | None
    ) -> Bool[AnyArray, "*length length"] | None:
        """Return which tokens each token does not read; one row where all read the same, None for none."""
        if self.spec.window is None and not self.spec.causal:
            return absent
        places = places_of(absent, length)
        return unread_keys(self.spec, absent, places, places)

    def with_heads(self, heads: int) -> Self:
        """Add heads of zero weights, or cut surplus ones off from the end.

        Added heads change nothing, and training keeps them at zero: every added weight acts only through a product with
        another added weight, so the gradient of all of them vanishes there. Models of several head counts can so share
        one program. An added head that shares the values of others does have some: see `Attention.written`. A norm sees
        every number: models with one are never padded.

        Raises `InputError` for another number of heads than those of a model with a norm.
        """
        if self.spec.final_norm:
            needed = f"{self.spec.heads}: a norm before the readout would see heads that are added or cut off"
            require(heads == self.spec.heads, what="heads", given=heads, needed=needed)
            return self
        spec = replace(self.spec, heads=heads)
        model = skeleton(spec, **self.sizes())
        arrays = [_resized(*pair) for pair in zip(jax.tree.leaves(self), jax.tree.leaves(model), strict=True)]
        return jax.tree.unflatten(jax.tree.structure(model), arrays)

    def calibrated(self, tokens: Float[AnyArray, "examples length dim"]) -> Self:
        """Return the model with its last W_O rescaled so that what reaches the readout varies by one over `tokens`.

        Averages over T tokens vary by 1/sqrt(T) only: the readout net would start, and often stay, linear.
        """
        from . import folded

        reached = jax.vmap(folded.class_output, in_axes=(None, 0))(self, tokens)
        variance = jnp.var(reached, axis=0)
        scale = jnp.sqrt(jnp.sum(variance) / jnp.maximum(jnp.sum(variance > 0), 1))  # padded numbers do not vary
        last = self.attention[-1].output / jnp.where(scale > 0, scale, 1.0)
        return eqx.tree_at(lambda model: model.attention[-1].output, self, last)

    def outer_maps(self) -> tuple[Linear, Linear]:
        return self.encoder_in, self.readout_out

    def head_removal(self, tokens: Float[AnyArray, "examples length dim"]) -> "HeadRemoval":
        if not self.spec.removes_heads:
            return super().head_removal(tokens)
        from .removal import HeadRemoval

        return HeadRemoval(self, np.asarray(tokens))

    def attention_weights(self, tokens: Tokens | TokenIds) -> tuple[Float[AnyArray, "heads tokens"], ...]:
        from . import folded

        return folded.attention_of_layers(self, self.read_tokens(tokens))

    def without_head(self, layer: int, head: int) -> Self:
        return eqx.tree_at(
            lambda model: model.attention[layer].output,
            self,
            replace_fn=lambda output: with_zeros(output, axis=1, place=head),
        )


def draw_class_token_transformer(
    spec: ClassTokenSpec, seed: int | None, *, length: int, dim: int, outputs: int
) -> ClassTokenTransformer:
    """Draw weights for sequences of `length` tokens as PyTorch draws its layers: uniform within 1/sqrt(fan-in)."""
    total, hidden, code = spec.total_dim, spec.hidden, spec.position_dim

    linear = functools.partial(draw_linear, seed)

    def inner_net(layer: int) -> InnerNet:
        return InnerNet(
            first=linear("inner in", layer, before=total, after=spec.inner_hidden),
            second=linear("inner out", layer, before=spec.inner_hidden, after=total),
        )

    def attention(layer: int) -> Attention:
        shapes = spec.head_shapes.items()
        return Attention(
            **{name: draw_uniform(seed, "attention", layer, name, shape=shape, fan_in=total) for name, shape in shapes}
        )

    codes = code if spec.positions == "concatenated" else 0
    return ClassTokenTransformer(
        encoder_in=linear("encoder in", before=(spec.vocabulary or dim) + codes, after=hidden, fan_in=dim + codes),
        encoder_out=linear("encoder out", before=hidden, after=total),
        position_table=draw_normal(seed, "positions", shape=(length, code), scale=POSITION_SCALE) if code else None,
        class_token=draw_normal(seed, "class token", shape=(total,), scale=CLASS_TOKEN_SCALE),
        attention=tuple(attention(layer) for layer in range(spec.layers)),
        inner=tuple(inner_net(layer) for layer in range(spec.layers - 1)) if spec.inner_hidden else (),
        readout_in=linear("readout in", before=total, after=hidden),
        readout_out=linear("readout out", before=hidden, after=outputs),
        spec=spec,
    )


def _resized(array: AnyArray, like: AnyArray) -> AnyArray:
    """Return the array cut, or filled up with zeros, to another shape."""
    for axis, size in enumerate(like.shape):
        array = array[(slice(None),) * axis + (slice(size),)]
        missing = (*array.shape[:axis], size - array.shape[axis], *array.shape[axis + 1 :])
        if missing[axis]:
            xp = array.__array_namespace__()
            array = xp.concat([array, xp.zeros(missing, dtype=array.dtype)], axis=axis)
    return array
