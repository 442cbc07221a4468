"""The same function, folded: nothing of width E is formed per token, and the cost is linear in T.

The class token is the only query of the last layer, and the encoder's second layer is linear. With r_t = relu(W1 x(t) +
b1),

    <W_Q,i c0, W_K,i x^(t)> = r_t . u_i + const,     u_i = W2^T W_K,i^T W_Q,i c0
    sum_t a_i(t) W_V,i x^(t) = W_V,i W2 (sum_t a_i(t) r_t) + W_V,i b2

so one vector u_i a head is computed once for a whole batch, and r_t is pooled before anything is applied to it. The
constant does not move a softmax. Additive positions p_t enter as a score <u'_i, p_t> and a value W_V,i p_t, both tables
shared by the batch. Heads that share W_K and W_V fold alike: they differ by W_Q,i. A kernel is not linear in the keys,
so linear attention forms them, W_K,g W2 r_t + W_K,g b2 for every group g, and pools r_t as the others do.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..._shapes import AnyArray, Target, Tokens
from ..attention import of_heads, weights_of_scores
from ..attention.linear import features, shares
from ..base import looked_up
from . import textbook
from .model import Attention, ClassTokenTransformer, Linear
from .spec import ClassTokenSpec


def predict(model: ClassTokenTransformer, tokens: Tokens) -> Target:
    """The answer for one sequence; equals `textbook.predict` in value and gradient."""
    return textbook.read_out(model, class_output(model, tokens))


def class_output(model: ClassTokenTransformer, tokens: Tokens) -> Float[AnyArray, " total"]:
    """The class token after the last attention layer, which the readout sees as it is, or normed."""
    if len(model.attention) > 1:
        return _deep_class_output(model, tokens)
    (layer,) = model.attention  # pyright: ignore[reportAssignmentType]
    tokens, absent = model.without_absent(tokens)
    hidden = hidden_features(model, tokens)
    weights = _attention_of_hidden(model, hidden, absent)
    values = _pooled_values(layer, model.encoder_out, weights.T @ hidden)
    added = _added_positions(model)
    if added is not None:
        values = values + jnp.einsum("th,thn->hn", weights, jnp.einsum("hne,te->thn", layer.values, added))
    return model.class_token + jnp.tensordot(layer.written, values, axes=2)


def attention_weights(model: ClassTokenTransformer, tokens: Tokens) -> Float[AnyArray, "length heads"]:
    """a_i(t) of a model of one layer: how much of token t each head reads."""
    tokens, absent = model.without_absent(tokens)
    return _attention_of_hidden(model, hidden_features(model, tokens), absent)


def attention_of_layers(model: ClassTokenTransformer, tokens: Tokens) -> tuple[Float[AnyArray, "heads tokens"], ...]:
    """How much of every token each head reads for the class token, layer after layer."""
    if len(model.attention) == 1:
        return (attention_weights(model, tokens).T,)
    tokens, absent = model.without_absent(tokens)
    entering = _entering_layers(model, tokens, absent)
    unread = model.unread_at_class_token(len(tokens), absent)
    return tuple(
        _weights_once(layer, model.spec, class_token, stream, unread).T
        for layer, (class_token, stream) in zip(model.attention, entering, strict=True)
    )


def _attention_of_hidden(
    model: ClassTokenTransformer, hidden: Float[AnyArray, "length hidden"], absent: Bool[AnyArray, " length"] | None
) -> Float[AnyArray, "length heads"]:
    (layer,) = model.attention
    added, unread = _added_positions(model), model.unread_at_class_token(len(hidden), absent)
    if model.spec.attention == "linear":
        keys = jnp.einsum("tm,grm->tgr", hidden, layer.key @ model.encoder_out.weight)
        constant = layer.key @ model.encoder_out.bias
        keys = keys + (constant if added is None else constant + jnp.einsum("te,gre->tgr", added, layer.key))
        return _kernel_weights(layer.query @ model.class_token, keys, unread)
    direction = jnp.einsum("hn,hne->he", layer.query @ model.class_token, layer.keys)
    scores = hidden @ (direction @ model.encoder_out.weight).T
    if added is not None:
        scores = scores + added @ direction.T
    return weights_of_scores(textbook.masked(model.beta * scores, unread), model.spec, axis=0)


def _kernel_weights(
    queries: Float[AnyArray, "heads rank"],
    keys: Float[AnyArray, "length groups rank"],
    unread: Bool[AnyArray, " length"] | None,
) -> Float[AnyArray, "length heads"]:
    of_every_head = of_heads(features(keys).swapaxes(0, 1), len(queries))
    kernel = jnp.einsum("hr,htr->th", features(queries), of_every_head)
    return shares(kernel, None if unread is None else unread[:, None], axis=0)


def _added_positions(model: ClassTokenTransformer) -> Float[AnyArray, "length total"] | None:
    return None if model.concatenated else model.position_table


def hidden_features(model: ClassTokenTransformer, tokens: Tokens) -> Float[AnyArray, "length hidden"]:
    """r_t for every token. A concatenated position code is a bias of its own for each place."""
    dim = model.spec.vocabulary or tokens.shape[1]
    weight, bias = model.encoder_in.weight, model.encoder_in.bias
    if model.position_table is not None and model.concatenated:
        bias = bias + model.position_table @ weight[:, dim:].T
    content = looked_up(weight[:, :dim], tokens) if model.spec.vocabulary else tokens @ weight[:, :dim].T
    return jax.nn.relu(content + bias)


def _pooled_values(
    layer: Attention, encoder_out: Linear, pooled: Float[AnyArray, "heads hidden"]
) -> Float[AnyArray, "heads head_dim"]:
    """W_V,i (W2 pooled_i + b2) for every head; W_V,i W2 is formed once a batch."""
    value_of_hidden = of_heads(layer.value @ encoder_out.weight, len(pooled))
    read = jnp.einsum("hnm,hm->hn", value_of_hidden, pooled)
    return read + of_heads(layer.value @ encoder_out.bias, len(pooled))


class _Stream(NamedTuple):
    """The tokens between two layers as a linear map of features, map f_t + offset_t, which need not be formed.

    Without a map they are the features themselves. The offset is one vector, or one for every token.
    """

    features: Float[AnyArray, "length features"]
    map: Float[AnyArray, "total features"] | None = None
    offset: Float[AnyArray, "*length total"] | None = None

    def folded(self, weight: Float[AnyArray, "*rows total"]) -> Float[AnyArray, "*rows features"]:
        """What a weight is to the features; formed once per batch."""
        return weight if self.map is None else weight @ self.map

    def times(self, weight: Float[AnyArray, "rows total"]) -> Float[AnyArray, "length rows"]:
        """weight x^(t) for every token."""
        product = self.features @ self.folded(weight).T
        return product if self.offset is None else product + self.offset @ weight.T

    def tokens(self) -> Float[AnyArray, "length total"]:
        formed = self.features if self.map is None else self.features @ self.map.T
        return formed if self.offset is None else formed + self.offset

    def plus(self, read: Float[AnyArray, "length rows"], written: Float[AnyArray, "total rows"]) -> "_Stream":
        """x^(t) + written read_t, whose features are those of both terms."""
        before = jnp.eye(len(written), dtype=written.dtype) if self.map is None else self.map
        features = jnp.concatenate([self.features, read], axis=1)
        return _Stream(features, jnp.concatenate([before, written], axis=1), self.offset)


def _deep_class_output(model: ClassTokenTransformer, tokens: Tokens) -> Float[AnyArray, " total"]:
    """L > 1: every layer but the last moves all tokens; the last has one query and pools before it projects."""
    tokens, absent = model.without_absent(tokens)
    class_token, stream = _entering_layers(model, tokens, absent)[-1]
    unread = model.unread_at_class_token(len(tokens), absent)
    layer = model.attention[-1]
    weights = _weights_once(layer, model.spec, class_token, stream, unread)
    values = jnp.einsum("hnf,hf->hn", stream.folded(layer.values), weights.T @ stream.features)
    if stream.offset is not None:
        of_offset = jnp.einsum("hne,...e->...hn", layer.values, stream.offset)
        values = values + (of_offset if stream.offset.ndim == 1 else jnp.einsum("th,thn->hn", weights, of_offset))
    return class_token + jnp.tensordot(layer.written, values, axes=2)


def _entering_layers(
    model: ClassTokenTransformer, tokens: Tokens, absent: Bool[AnyArray, " length"] | None
) -> list[tuple[Float[AnyArray, " total"], _Stream]]:
    """The class token and the tokens before every layer.

    The encoder's second layer and W_O are linear: neither is applied to a token before the layer that follows, unless
    that one moves all tokens again, which is cheaper from tokens that were formed.
    """
    added = _added_positions(model)
    offset = model.encoder_out.bias if added is None else model.encoder_out.bias + added
    class_token = model.class_token
    stream = _Stream(hidden_features(model, tokens), model.encoder_out.weight, offset)
    entering = [(class_token, stream)]
    unread = _unread_in_layer(model, len(tokens), absent)
    for place, layer in enumerate(model.attention[:-1]):
        stream = _Stream(stream.tokens()) if place > 0 and stream.map is not None else stream
        read = _self_attend(layer, model.spec, class_token, stream, unread)
        written = layer.written.reshape(len(class_token), -1)
        class_token, stream = class_token + written @ read[-1], stream.plus(read[:-1], written)
        if model.inner:
            net = model.inner[place]
            class_token, stream = net(class_token), _Stream(jax.vmap(net)(stream.tokens()))
        entering.append((class_token, stream))
    return entering


def _unread_in_layer(
    model: ClassTokenTransformer, length: int, absent: Bool[AnyArray, " length"] | None
) -> Bool[AnyArray, "*queries length"] | None:
    """Which tokens each token and, after them, the class token does not read; one row where all read the same."""
    at_tokens = model.unread_at_tokens(length, absent)
    if at_tokens is None or at_tokens.ndim == 1:
        return at_tokens
    at_class_token = model.unread_at_class_token(length, absent)
    row = jnp.zeros(length, bool) if at_class_token is None else at_class_token
    return jnp.concatenate([at_tokens, row[None]])


def _weights_once(
    layer: Attention,
    spec: ClassTokenSpec,
    query_token: Float[AnyArray, " total"],
    stream: _Stream,
    unread: Bool[AnyArray, " length"] | None,
) -> Float[AnyArray, "length heads"]:
    if spec.attention == "linear":
        keys = stream.times(layer.key.reshape(-1, len(query_token)))
        return _kernel_weights(layer.query @ query_token, keys.reshape(len(keys), *layer.key.shape[:2]), unread)
    queries = layer.query @ query_token
    scores = stream.features @ jnp.einsum("hr,hrf->hf", queries, stream.folded(layer.keys)).T
    if stream.offset is not None and stream.offset.ndim == 2:  # one for all tokens does not move a softmax
        scores = scores + jnp.einsum("hr,thr->th", queries, jnp.einsum("hre,te->thr", layer.keys, stream.offset))
    return weights_of_scores(textbook.masked(spec.beta * scores, unread), spec, axis=0)


def _self_attend(
    layer: Attention,
    spec: ClassTokenSpec,
    class_token: Float[AnyArray, " total"],
    stream: _Stream,
    unread: Bool[AnyArray, "*queries length"] | None,
) -> Float[AnyArray, "queries total"]:
    """What the heads of a layer read, one beside the other, for every token and, after them, for the class token."""
    maps = (layer.query, layer.key, layer.value)
    # One product for all three: a training step of Table 5 took REPLACE.
    projected = stream.times(jnp.concatenate([weight.reshape(-1, len(class_token)) for weight in maps]))
    ends = np.cumsum([weight.shape[0] * weight.shape[1] for weight in maps])[:-1]
    queries, keys, values = (
        part.reshape(len(part), *weight.shape[:2])
        for part, weight in zip(jnp.split(projected, ends, axis=1), maps, strict=True)
    )
    queries = jnp.concatenate([queries, (layer.query @ class_token)[None]]).swapaxes(0, 1)
    keys, values = (of_heads(part.swapaxes(0, 1), len(queries)) for part in (keys, values))
    if spec.attention == "linear":
        kernel = jnp.einsum("hqn,hkn->hqk", features(queries), features(keys))
        weights = shares(kernel, unread, axis=-1)
    else:
        scores = spec.beta * jnp.einsum("hqn,hkn->hqk", queries, keys)
        weights = weights_of_scores(scores if unread is None else jnp.where(unread, -jnp.inf, scores), spec, axis=-1)
    read = jnp.einsum("hqk,hkn->qhn", weights, values)
    return read.reshape(len(read), -1)
