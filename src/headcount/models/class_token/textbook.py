"""The model as the paper writes it: every token embedded, every head projected. The reference tests compare with."""

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray, Target, Tokens
from ..attention import weights_of_scores
from ..attention.linear import features, shares
from ..base import looked_up
from ..norms import layer_norm
from .model import Attention, ClassTokenTransformer
from .spec import ClassTokenSpec


def predict(model: ClassTokenTransformer, tokens: Tokens) -> Target:
    """The answer for one sequence."""
    tokens, absent = model.without_absent(tokens)
    embedded = embed(model, tokens)
    class_token = model.class_token
    at_class_token = model.unread_at_class_token(len(tokens), absent)
    at_tokens = model.unread_at_tokens(len(tokens), absent)
    at_tokens = None if at_tokens is None else jnp.broadcast_to(at_tokens, (len(tokens), len(tokens)))
    for place, layer in enumerate(model.attention[:-1]):
        attended = jax.vmap(
            lambda query, unread, layer=layer, keys=embedded: attend(model.spec, layer, query, keys, unread),
            in_axes=(0, None if at_tokens is None else 0),
        )
        class_token, embedded = (
            class_token + attend(model.spec, layer, class_token, embedded, at_class_token),
            embedded + attended(embedded, at_tokens),
        )
        if model.inner:
            class_token, embedded = model.inner[place](class_token), jax.vmap(model.inner[place])(embedded)
    class_token = class_token + attend(model.spec, model.attention[-1], class_token, embedded, at_class_token)
    return read_out(model, class_token)


def embed(model: ClassTokenTransformer, tokens: Tokens) -> Float[AnyArray, "length total"]:
    """x^(t) for every token, its place included. No token may be absent."""
    if model.spec.vocabulary:
        first = looked_up(model.encoder_in.weight[:, : model.spec.vocabulary], tokens) + model.encoder_in.bias
        if model.position_table is not None and model.concatenated:
            first = first + model.position_table @ model.encoder_in.weight[:, model.spec.vocabulary :].T
        embedded = jax.vmap(model.encoder_out)(jax.nn.relu(first))
    else:
        if model.position_table is not None and model.concatenated:
            tokens = jnp.concatenate([tokens, model.position_table], axis=1)
        embedded = jax.vmap(lambda token: model.encoder_out(jax.nn.relu(model.encoder_in(token))))(tokens)
    if model.position_table is not None and not model.concatenated:
        embedded = embedded + model.position_table
    return embedded


def attend(
    spec: ClassTokenSpec,
    layer: Attention,
    query_token: Float[AnyArray, " total"],
    tokens: Float[AnyArray, "length total"],
    unread: Bool[AnyArray, " length"] | None = None,
) -> Float[AnyArray, " total"]:
    """W_O concat_i [sum_t a_i(t) W_V,i x^(t)], over the tokens that are read, where W_K,i and W_V,i may be shared.

    a_i(t) = softmax_t(beta <W_Q,i q, W_K,i x^(t)>), or what another kind of attention makes of queries and keys.
    """
    queries = jnp.einsum("hne,e->hn", layer.query, query_token)
    keys = jnp.einsum("hne,te->thn", layer.keys, tokens)
    values = jnp.einsum("hne,te->thn", layer.values, tokens)
    if spec.attention == "linear":
        kernel = jnp.einsum("hn,thn->th", features(queries), features(keys))
        weights = shares(kernel, None if unread is None else unread[:, None], axis=0)
    else:
        scores = spec.beta * jnp.einsum("hn,thn->th", queries, keys)
        weights = weights_of_scores(masked(scores, unread), spec, axis=0)
    return jnp.einsum("ehn,th,thn->e", layer.written, weights, values)


def masked(
    scores: Float[AnyArray, "length heads"], unread: Bool[AnyArray, " length"] | None
) -> Float[AnyArray, "length heads"]:
    """The scores with those of tokens that are not read at minus infinity, whose softmax is exactly 0."""
    return scores if unread is None else jnp.where(unread[:, None], -jnp.inf, scores)


def read_out(model: ClassTokenTransformer, class_token: Float[AnyArray, " total"]) -> Target:
    """F: the two-layer GELU net over the class token, or over its layer norm."""
    seen = readout_input(model, class_token)
    return model.readout_out(jax.nn.gelu(model.readout_in(seen), approximate=False))


def readout_input(model: ClassTokenTransformer, class_token: Float[AnyArray, " total"]) -> Float[AnyArray, " total"]:
    """What the readout net sees of the class token after the last attention layer."""
    return layer_norm(class_token) if model.spec.final_norm else class_token
