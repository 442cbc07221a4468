"""The model as the paper writes it: every token embedded, every head projected. The reference tests compare with."""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..._shapes import AnyArray, Target, Tokens
from .model import Attention, ClassTokenTransformer


def predict(model: ClassTokenTransformer, tokens: Tokens) -> Target:
    """The answer for one sequence."""
    embedded = embed(model, tokens)
    class_token = model.class_token
    for layer in model.attention[:-1]:
        attended = jax.vmap(lambda query, layer=layer, keys=embedded: attend(layer, query, keys, model.beta))
        class_token, embedded = (
            class_token + attend(layer, class_token, embedded, model.beta),
            embedded + attended(embedded),
        )
    class_token = class_token + attend(model.attention[-1], class_token, embedded, model.beta)
    return read_out(model, class_token)


def embed(model: ClassTokenTransformer, tokens: Tokens) -> Float[AnyArray, "length total"]:
    """x^(t) for every token, its place included."""
    if model.position_table is not None and model.concatenated:
        tokens = jnp.concatenate([tokens, model.position_table], axis=1)
    embedded = jax.vmap(lambda token: model.encoder_out(jax.nn.relu(model.encoder_in(token))))(tokens)
    if model.position_table is not None and not model.concatenated:
        embedded = embedded + model.position_table
    return embedded


def attend(
    layer: Attention, query_token: Float[AnyArray, " total"], tokens: Float[AnyArray, "length total"], beta: float
) -> Float[AnyArray, " total"]:
    """W_O concat_i [sum_t softmax_t(beta <W_Q,i q, W_K,i x^(t)>) W_V,i x^(t)]."""
    queries = jnp.einsum("hne,e->hn", layer.query, query_token)
    keys = jnp.einsum("hne,te->thn", layer.key, tokens)
    values = jnp.einsum("hne,te->thn", layer.value, tokens)
    weights = jax.nn.softmax(beta * jnp.einsum("hn,thn->th", queries, keys), axis=0)
    return jnp.einsum("ehn,th,thn->e", layer.output, weights, values)


def read_out(model: ClassTokenTransformer, class_token: Float[AnyArray, " total"]) -> Target:
    """F: the two-layer GELU net over the class token."""
    return model.readout_out(jax.nn.gelu(model.readout_in(class_token), approximate=False))
