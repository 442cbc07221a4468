"""The class-token model as the paper writes it: every token embedded, every head projected."""

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from headcount._shapes import AnyArray, Target, Tokens
from headcount.models import ClassTokenSpec, ClassTokenTransformer
from headcount.models.attention import weights_of_scores
from headcount.models.class_token import Attention
from headcount.models.class_token.folded import embed, read_out


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
    keys = jnp.einsum("hne,te->thn", layer.head_keys, tokens)
    values = jnp.einsum("hne,te->thn", layer.head_values, tokens)
    if spec.reading.features is not None:
        queries, keys = spec.reading.features(queries), spec.reading.features(keys)
    scores = spec.beta * jnp.einsum("hn,thn->th", queries, keys)
    weights = weights_of_scores(scores, spec, axis=0, unread=None if unread is None else unread[:, None])
    return jnp.einsum("ehn,th,thn->e", layer.written, weights, values)
