"""Multi-head attention of the wide encoder: every head of a layer at once, or in turns where memory is short.

    a_h(t, s) = softmax_s((W_Q,h x_t + b_Q,h) . (W_K,h x_s) / sqrt(r))

Softmax is computed in float32, products in the precision of weights and tokens. What a query does not read has a score
of minus infinity; `unread` says so for every key, or for every query and key.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray
from ..attention import HeadMatrices, hide_unread, share_groups, weights_of_scores
from . import thin
from .spec import EncoderSpec

WEIGHTS_AT_ONCE = 2**20
"""Attention weights of one sequence that are formed at a time; beyond, heads take turns and are computed again for the
gradient. A batch of 256 then holds 1 GiB of them."""
THIN = 2
"""Largest inner width whose products are sums on a GPU."""
LANES = 32
"""Threads of a GPU that work in step."""

Stream = Float[AnyArray, "length stream"]
Keys = Float[AnyArray, "keys stream"]
Unread = Bool[AnyArray, "*queries keys"] | None


class Heads(HeadMatrices):
    """Every head of a layer, of all its blocks.

    Biases are None where the spec has none; keys never have one, no softmax would see it.
    """

    query_bias: Float[AnyArray, "total_heads rank"] | None = None
    value_bias: Float[AnyArray, "total_groups head_dim"] | None = None
    output_bias: Float[AnyArray, " stream"] | None = None


def attention_weights(
    layer: Heads,
    spec: EncoderSpec,
    queries: Float[AnyArray, "queries stream"],
    keys: Keys,
    unread: Unread = None,
) -> Float[AnyArray, "some_heads queries keys"]:
    """Return how much of every key each head reads for every query."""
    asked = _project(layer.query, layer.query_bias, queries)
    held = share_groups(_project(layer.key, None, keys), len(asked), blocks=spec.multiplier)
    if spec.reading.features is not None:
        asked, held = spec.reading.features(asked), spec.reading.features(held)
    scores = hide_unread(_product_of_heads(asked, held.swapaxes(1, 2)), spec, unread)
    if spec.reading.is_scaled:
        scores = scores.astype(_exact(scores)) * spec.rank**-0.5
    return weights_of_scores(scores, spec, axis=-1).astype(keys.dtype)


def attend(heads: Heads, spec: EncoderSpec, stream: Stream, keys: Keys, unread: Unread) -> Stream:
    """Return the mean over blocks of what their heads read."""
    per_head = max(1, len(stream) * len(keys))
    at_once = max(1, min(spec.total_heads, WEIGHTS_AT_ONCE // per_head))
    at_once = next(count for count in range(at_once, 0, -1) if spec.total_heads % count == 0)
    parts = eqx.tree_at(lambda h: h.output_bias, heads, None, is_leaf=lambda leaf: leaf is None)
    read = _read_thin if _are_thin(spec, len(stream)) else _read
    if at_once == spec.total_heads:
        total = read(parts, spec, stream, keys, unread)
    else:
        parts = _ungrouped(parts, spec)
        turns = jax.tree.map(lambda weight: weight.reshape(-1, at_once, *weight.shape[1:]), parts)
        take_turn = jax.checkpoint(lambda sum_so_far, part: (sum_so_far + read(part, spec, stream, keys, unread), None))
        total, _ = jax.lax.scan(take_turn, jnp.zeros_like(stream), turns)
    total = total / spec.multiplier
    return total if heads.output_bias is None else total + heads.output_bias


def _ungrouped(heads: Heads, spec: EncoderSpec) -> Heads:
    """Return the same heads, each with a copy of the keys and values that it shares."""

    def copied(part: Any) -> Any:
        return part if part is None else share_groups(part, spec.total_heads, blocks=spec.multiplier)

    shared = (heads.key, heads.value, heads.value_bias)
    return eqx.tree_at(
        lambda h: (h.key, h.value, h.value_bias), heads, tuple(map(copied, shared)), is_leaf=lambda leaf: leaf is None
    )


def _read(heads: Heads, spec: EncoderSpec, stream: Stream, keys: Keys, unread: Unread) -> Stream:
    weights = attention_weights(heads, spec, stream, keys, unread)
    carried = share_groups(_project(heads.value, heads.value_bias, keys), len(weights), blocks=spec.multiplier)
    return jnp.einsum("hqv,hvw->qw", _product_of_heads(weights, carried), heads.written)


def _are_thin(spec: EncoderSpec, queries: int) -> bool:
    """Return whether `thin` is faster: on a GPU, with heads of few numbers that fill its threads."""
    thin_heads = max(spec.rank, spec.head_dim) <= thin.WIDEST and spec.total_heads >= LANES and spec.kv_heads is None
    return jax.default_backend() == "gpu" and spec.reads_by_softmax and thin_heads and queries > 1


def _read_thin(heads: Heads, spec: EncoderSpec, stream: Stream, keys: Keys, unread: Unread) -> Stream:
    """Do as `_read` does, with heads as the last axis; what is multiplied there is float32 at least."""

    def projected(weight, bias, tokens):
        flat = weight.transpose(2, 1, 0).reshape(weight.shape[2], -1)
        numbers = (tokens @ flat).reshape(len(tokens), *weight.shape[1::-1])
        numbers = numbers if bias is None else numbers + bias.T
        return numbers.astype(_exact(numbers))

    queries = projected(heads.query, heads.query_bias, stream) * spec.rank**-0.5
    carried = projected(heads.value, heads.value_bias, keys)
    read = thin.mix(queries, projected(heads.key, None, keys), carried, unread).astype(stream.dtype)
    return read.reshape(len(stream), -1) @ heads.written.swapaxes(0, 1).reshape(-1, heads.output.shape[2])


def _product_of_heads(
    left: Float[AnyArray, "some_heads rows inner"], right: Float[AnyArray, "some_heads inner columns"]
) -> Float[AnyArray, "some_heads rows columns"]:
    """Multiply head by head.

    On a GPU thin ones are a sum of products: thousands of bare heads of rank 1 took a seventh of the time so, of rank 2
    two thirds. From rank 4 on, and on a CPU always, the matrix product is faster.
    """
    if jax.default_backend() == "gpu" and min(right.shape[1:]) <= THIN:
        return jnp.sum(left[..., None] * right[:, None], axis=2)
    return left @ right


def _exact(array: Float[AnyArray, "..."]) -> Any:
    """Return the dtype, but at least single precision."""
    return jnp.promote_types(array.dtype, jnp.float32)


def _project(
    weight: Float[AnyArray, "some_heads numbers stream"],
    bias: Float[AnyArray, "some_heads numbers"] | None,
    tokens: Float[AnyArray, "some_tokens stream"],
) -> Float[AnyArray, "some_heads some_tokens numbers"]:
    projected = jnp.einsum("hnw,tw->htn", weight, tokens)
    return projected if bias is None else projected + bias[:, None]
