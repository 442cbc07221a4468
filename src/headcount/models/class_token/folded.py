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

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray, Target, Tokens
from ...backends.pool import Pooled, PoolWeights, pool, pool_one
from ..attention import share_groups, weights_of_scores
from ..layers import Linear, layer_norm, looked_up
from .model import Attention, ClassTokenTransformer
from .spec import ClassTokenSpec

ClassToken = Float[AnyArray, " total"]
Embedded = Float[AnyArray, "length total"]
Mask = Bool[AnyArray, " length"] | None


def predict(model: ClassTokenTransformer, tokens: Tokens) -> Target:
    """Return the answer for one sequence."""
    return read_out(model, class_output(model, tokens))


def class_output(model: ClassTokenTransformer, tokens: Tokens) -> ClassToken:
    """Return the class token after the last attention layer, which the readout sees as it is, or normed."""
    if len(model.attention) == 1:
        return _attended(model, *_pooled(model, tokens))
    tokens, absent = model.without_absent(tokens)
    class_token, embedded = _entering_layers(model, tokens, absent)[-1]
    unread = model.unread_at_class_token(len(tokens), absent)
    return class_token + _query_once(model.attention[-1], model.spec, class_token, embedded, unread)


def predict_batch(
    model: ClassTokenTransformer, tokens: Float[AnyArray, "examples length dim"]
) -> Float[AnyArray, "examples outputs"]:
    """Return the answers to a batch, pooled by the fused kernels; for a model that pools (`spec.pools`)."""
    pooled = pool(tokens, fold(model), masks=model.spec.masks_padding)
    return jax.vmap(lambda *parts: read_out(model, _attended(model, *parts)))(*pooled)


def fold(model: ClassTokenTransformer) -> PoolWeights:
    """Fold a model of one layer whose scores are products of queries and keys: its directions are the u_i."""
    (layer,) = model.attention
    weight, bias = _first_layer(model)
    direction = jnp.einsum("hn,hne->he", layer.query @ model.class_token, layer.head_keys)
    added, beta = model.added_positions, model.spec.beta
    offset = jnp.zeros((0, len(direction)), direction.dtype) if added is None else beta * (added @ direction.T)
    return PoolWeights(weight, jnp.atleast_2d(bias), beta * (direction @ model.encoder_out.weight), offset)


def _attended(
    model: ClassTokenTransformer,
    pooled: Float[AnyArray, "heads hidden"],
    weights: Float[AnyArray, "length heads"],
) -> ClassToken:
    """Return c0 + W_O concat_i [...] of one sequence from what its tokens were pooled to."""
    (layer,) = model.attention
    values = _pooled_values(layer, model.encoder_out, pooled)
    if model.added_positions is not None:
        added = jnp.einsum("hne,te->thn", layer.head_values, model.added_positions)
        values = values + jnp.einsum("th,thn->hn", weights, added)
    return model.class_token + jnp.tensordot(layer.written, values, axes=2)


def _pooled(model: ClassTokenTransformer, tokens: Tokens) -> Pooled:
    """Pool the hidden features of one sequence by any attention; return them and the weights."""
    if model.spec.pools:
        return pool_one(tokens, fold(model), masks=model.spec.masks_padding)
    tokens, absent = model.without_absent(tokens)
    weight, bias = _first_layer(model)
    content = looked_up(weight, tokens) if model.spec.vocabulary else tokens @ weight.T
    hidden = jax.nn.relu(content + bias)
    weights = _weights_of_hidden(model, hidden, model.unread_at_class_token(len(hidden), absent))
    return weights.T @ hidden, weights


def attention_of_layers(model: ClassTokenTransformer, tokens: Tokens) -> tuple[Float[AnyArray, "heads tokens"], ...]:
    """Return how much of every token each head reads for the class token, layer by layer."""
    if len(model.attention) == 1:
        return (_pooled(model, tokens)[1].T,)
    tokens, absent = model.without_absent(tokens)
    entering = _entering_layers(model, tokens, absent)
    unread = model.unread_at_class_token(len(tokens), absent)
    return tuple(
        _weights_once(layer, model.spec, class_token, embedded, unread).T
        for layer, (class_token, embedded) in zip(model.attention, entering, strict=True)
    )


def _weights_of_hidden(
    model: ClassTokenTransformer, hidden: Float[AnyArray, "length hidden"], unread: Mask
) -> Float[AnyArray, "length heads"]:
    (layer,) = model.attention
    if model.spec.reading.features is not None:
        keys = jnp.einsum("tm,grm->tgr", hidden, layer.key @ model.encoder_out.weight)
        constant = layer.key @ model.encoder_out.bias
        added = model.added_positions
        keys = keys + (constant if added is None else constant + jnp.einsum("te,gre->tgr", added, layer.key))
        return _kernel_weights(model.spec, layer.query @ model.class_token, keys, unread)
    return _weights(model.spec, fold(model).scores(hidden), unread)


def _kernel_weights(
    spec: ClassTokenSpec,
    queries: Float[AnyArray, "heads rank"],
    keys: Float[AnyArray, "length groups rank"],
    unread: Mask,
) -> Float[AnyArray, "length heads"]:
    features = spec.reading.features
    assert features is not None
    of_every_head = share_groups(features(keys).swapaxes(0, 1), len(queries))
    return _weights(spec, jnp.einsum("hr,htr->th", features(queries), of_every_head), unread)


def _weights(
    spec: ClassTokenSpec, scores: Float[AnyArray, "length heads"], unread: Mask
) -> Float[AnyArray, "length heads"]:
    return weights_of_scores(scores, spec, axis=0, unread=None if unread is None else unread[:, None])


def embed(model: ClassTokenTransformer, tokens: Tokens) -> Embedded:
    """Return x^(t) for every token, its place included. No token may be absent."""
    codes = model.position_codes
    if model.spec.vocabulary:
        first = looked_up(model.encoder_in.weight[:, : model.spec.vocabulary], tokens) + model.encoder_in.bias
        if codes is not None:
            first = first + codes @ model.encoder_in.weight[:, model.spec.vocabulary :].T
        embedded = jax.vmap(model.encoder_out)(jax.nn.relu(first))
    else:
        if codes is not None:
            tokens = jnp.concatenate([tokens, codes], axis=1)
        embedded = jax.vmap(lambda token: model.encoder_out(jax.nn.relu(model.encoder_in(token))))(tokens)
    return embedded if model.added_positions is None else embedded + model.added_positions


def read_out(model: ClassTokenTransformer, class_token: ClassToken) -> Target:
    """Apply F, the two-layer GELU net, to the class token or to its layer norm."""
    seen = readout_input(model, class_token)
    return model.readout_out(jax.nn.gelu(model.readout_in(seen), approximate=False))


def readout_input(model: ClassTokenTransformer, class_token: ClassToken) -> ClassToken:
    """Return what the readout net sees of the class token after the last attention layer."""
    return layer_norm(class_token) if model.spec.final_norm else class_token


def _first_layer(
    model: ClassTokenTransformer,
) -> tuple[Float[AnyArray, "hidden dim"], Float[AnyArray, "*length hidden"]]:
    """Return W1 over the token alone, and its bias: a row per place where positions are concatenated."""
    weight, bias, codes = model.encoder_in.weight, model.encoder_in.bias, model.position_codes
    if codes is None:
        return weight, bias
    dim = weight.shape[1] - codes.shape[1]
    return weight[:, :dim], bias + codes @ weight[:, dim:].T


def _pooled_values(
    layer: Attention, encoder_out: Linear, pooled: Float[AnyArray, "heads hidden"]
) -> Float[AnyArray, "heads head_dim"]:
    """W_V,i (W2 pooled_i + b2) for every head; W_V,i W2 is formed once a batch."""
    value_of_hidden = share_groups(layer.value @ encoder_out.weight, len(pooled))
    read = jnp.einsum("hnm,hm->hn", value_of_hidden, pooled)
    return read + share_groups(layer.value @ encoder_out.bias, len(pooled))


def _entering_layers(model: ClassTokenTransformer, tokens: Tokens, absent: Mask) -> list[tuple[ClassToken, Embedded]]:
    """Return the class token and the tokens before every layer."""
    class_token, embedded = model.class_token, embed(model, tokens)
    entering = [(class_token, embedded)]
    at_class_token = model.unread_at_class_token(len(tokens), absent)
    at_tokens = model.unread_at_tokens(len(tokens), absent)
    for place, layer in enumerate(model.attention[:-1]):
        moved = _self_attend(layer, model.spec, embedded, at_tokens)
        read = _query_once(layer, model.spec, class_token, embedded, at_class_token)
        class_token, embedded = class_token + read, embedded + moved
        if model.inner:
            class_token, embedded = model.inner[place](class_token), jax.vmap(model.inner[place])(embedded)
        entering.append((class_token, embedded))
    return entering


def _query_once(
    layer: Attention,
    spec: ClassTokenSpec,
    query_token: ClassToken,
    tokens: Embedded,
    unread: Mask,
) -> ClassToken:
    weights = _weights_once(layer, spec, query_token, tokens, unread)
    values = jnp.einsum("hne,he->hn", layer.head_values, weights.T @ tokens)
    return jnp.tensordot(layer.written, values, axes=2)


def _weights_once(
    layer: Attention,
    spec: ClassTokenSpec,
    query_token: ClassToken,
    tokens: Embedded,
    unread: Mask,
) -> Float[AnyArray, "length heads"]:
    if spec.reading.features is not None:
        keys = jnp.einsum("te,gre->tgr", tokens, layer.key)
        return _kernel_weights(spec, layer.query @ query_token, keys, unread)
    direction = jnp.einsum("hn,hne->he", layer.query @ query_token, layer.head_keys)
    return _weights(spec, spec.beta * (tokens @ direction.T), unread)


def _self_attend(
    layer: Attention,
    spec: ClassTokenSpec,
    tokens: Embedded,
    unread: Bool[AnyArray, "*length length"] | None,
) -> Embedded:
    queries, keys, values = (
        jnp.einsum("hne,te->htn", weight, tokens) for weight in (layer.query, layer.key, layer.value)
    )
    keys, values = (share_groups(part, len(queries)) for part in (keys, values))
    if spec.reading.features is not None:
        queries, keys = spec.reading.features(queries), spec.reading.features(keys)
    scores = spec.beta * jnp.einsum("hqn,hkn->hqk", queries, keys)
    weights = weights_of_scores(scores, spec, axis=-1, unread=unread)
    return jnp.einsum("ehn,hqn->qe", layer.written, weights @ values)
