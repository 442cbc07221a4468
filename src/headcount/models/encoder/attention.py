"""Multi-head attention of the wide encoder: every head of a layer at once, or in turns where memory is short.

    a_h(t, s) = softmax_s((W_Q,h x_t + b_Q,h) . (W_K,h x_s) / sqrt(r))

Softmax is computed in float32, products in the precision of weights and tokens.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray
from .spec import EncoderSpec

WEIGHTS_AT_ONCE = 2**20
"""Attention weights of one sequence that are formed at a time; beyond, heads take turns and are computed again for the
gradient. A batch of 256 then holds 1 GiB of them."""
THIN = 2
"""Largest inner width whose products are sums on a GPU."""

Stream = Float[AnyArray, "length stream"]


class Heads(eqx.Module):
    """Every head of a layer. Biases are None where the spec has none; keys never have one, no softmax would see it."""

    query: Float[AnyArray, "total_heads rank stream"]
    key: Float[AnyArray, "total_heads rank stream"]
    value: Float[AnyArray, "total_heads head_dim stream"]
    output: Float[AnyArray, "total_heads head_dim stream"]
    query_bias: Float[AnyArray, "total_heads rank"] | None
    value_bias: Float[AnyArray, "total_heads head_dim"] | None
    output_bias: Float[AnyArray, " stream"] | None


def attention_weights(
    layer: Heads,
    spec: EncoderSpec,
    queries: Float[AnyArray, "queries stream"],
    keys: Float[AnyArray, "keys stream"],
    absent: Bool[AnyArray, " keys"] | None = None,
) -> Float[AnyArray, "some_heads queries keys"]:
    """How much of every key that is there each head reads for every query; soft, or one-hot."""
    asked = _project(layer.query, layer.query_bias, queries)
    held = _project(layer.key, None, keys)
    scores = _product_of_heads(asked, held.swapaxes(1, 2))
    if absent is not None:
        scores = jnp.where(absent, -jnp.inf, scores)
    if spec.attention == "hard":
        return jax.nn.one_hot(jnp.argmax(scores, axis=-1), len(keys), dtype=keys.dtype)
    exact = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    return jax.nn.softmax(exact * spec.rank**-0.5, axis=-1).astype(keys.dtype)


def attend(
    heads: Heads,
    spec: EncoderSpec,
    stream: Stream,
    keys: Float[AnyArray, "keys stream"],
    absent: Bool[AnyArray, " keys"] | None,
) -> Stream:
    """The mean over blocks of what their heads read."""
    per_head = max(1, len(stream) * len(keys))
    at_once = max(1, min(spec.total_heads, WEIGHTS_AT_ONCE // per_head))
    at_once = next(count for count in range(at_once, 0, -1) if spec.total_heads % count == 0)
    parts = eqx.tree_at(lambda h: h.output_bias, heads, None, is_leaf=lambda leaf: leaf is None)
    if at_once == spec.total_heads:
        total = _read(parts, spec, stream, keys, absent)
    else:
        turns = jax.tree.map(lambda weight: weight.reshape(-1, at_once, *weight.shape[1:]), parts)
        take_turn = jax.checkpoint(
            lambda sum_so_far, part: (sum_so_far + _read(part, spec, stream, keys, absent), None)
        )
        total, _ = jax.lax.scan(take_turn, jnp.zeros_like(stream), turns)
    total = total / spec.multiplier
    return total if heads.output_bias is None else total + heads.output_bias


def _read(
    heads: Heads,
    spec: EncoderSpec,
    stream: Stream,
    keys: Float[AnyArray, "keys stream"],
    absent: Bool[AnyArray, " keys"] | None,
) -> Stream:
    weights = attention_weights(heads, spec, stream, keys, absent)
    carried = _project(heads.value, heads.value_bias, keys)
    return jnp.einsum("hqv,hvw->qw", _product_of_heads(weights, carried), heads.output)


def _product_of_heads(
    left: Float[AnyArray, "some_heads rows inner"], right: Float[AnyArray, "some_heads inner columns"]
) -> Float[AnyArray, "some_heads rows columns"]:
    """left @ right, head by head.

    On a GPU thin ones are a sum of products: thousands of bare heads of rank 1 took a seventh of the time so, of rank 2
    two thirds. From rank 4 on, and on a CPU always, the matrix product is faster.
    """
    if jax.default_backend() == "gpu" and min(right.shape[1:]) <= THIN:
        return jnp.sum(left[..., None] * right[:, None], axis=2)
    return left @ right


def _project(
    weight: Float[AnyArray, "some_heads numbers stream"],
    bias: Float[AnyArray, "some_heads numbers"] | None,
    tokens: Float[AnyArray, "some_tokens stream"],
) -> Float[AnyArray, "some_heads some_tokens numbers"]:
    projected = jnp.einsum("hnw,tw->htn", weight, tokens)
    return projected if bias is None else projected + bias[:, None]
