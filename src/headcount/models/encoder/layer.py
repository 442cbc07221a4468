"""One layer of the wide encoder: attention and a feed-forward net, each with its norm, residual and dropout."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float
from jaxtyping import Key as KeyOf

from ..._shapes import AnyArray
from ..layers import Linear, layer_norm, unit_norm
from .attention import Heads, Keys, Stream, Unread, attend, attention_weights
from .spec import EncoderSpec

ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu}

Drops = KeyOf[Array, " drops"]


class EncoderLayer(eqx.Module):
    heads: Heads
    feed_in: Linear | None
    feed_out: Linear | None
    attention_scale: Float[AnyArray, ""] | None
    feed_scale: Float[AnyArray, ""] | None


def apply_layer(
    layer: EncoderLayer,
    spec: EncoderSpec,
    stream: Stream,
    keys: Keys,
    unread: Unread,
    drops: Drops | None,
) -> Stream:
    """Return the stream after one layer, for the queries in `stream`; `drops` are the keys of its two sublayers."""

    def sublayer(
        stream: Stream, scale: Float[AnyArray, ""] | None, change: Callable[[Stream], Stream], place: int
    ) -> Stream:
        if spec.norm_first:
            changed = dropped(change(norm(stream, spec, scale)), spec, drops, place)
            return stream + changed if spec.residual else changed
        changed = dropped(change(stream), spec, drops, place)
        return norm(stream + changed if spec.residual else changed, spec, scale)

    def attention(stream: Stream) -> Stream:
        seen = norm(keys, spec, layer.attention_scale) if spec.norm_first else keys
        return attend(layer.heads, spec, stream, seen, unread)

    def feed_forward(stream: Stream) -> Stream:
        assert layer.feed_in is not None
        assert layer.feed_out is not None
        return jax.vmap(layer.feed_out)(ACTIVATIONS[spec.activation](jax.vmap(layer.feed_in)(stream)))

    stream = sublayer(stream, layer.attention_scale, attention, 0)
    return stream if layer.feed_in is None else sublayer(stream, layer.feed_scale, feed_forward, 1)


def weights_in_layer(
    layer: EncoderLayer,
    spec: EncoderSpec,
    queries: Float[AnyArray, "queries stream"],
    keys: Keys,
    unread: Unread,
) -> Float[AnyArray, "some_heads queries keys"]:
    """Return how much of every key each head of the layer reads for queries that enter it."""
    if spec.norm_first:
        queries, keys = (norm(part, spec, layer.attention_scale) for part in (queries, keys))
    return attention_weights(layer.heads, spec, queries, keys, unread)


def norm(stream: Stream, spec: EncoderSpec, scale: Float[AnyArray, ""] | None) -> Stream:
    if spec.norm == "none":
        return stream
    exact = stream.astype(jnp.promote_types(stream.dtype, jnp.float32))
    normed = layer_norm(exact) if scale is None else unit_norm(exact) * scale
    return normed.astype(stream.dtype)


def dropped(stream: Stream, spec: EncoderSpec, keys: Drops | None, place: int) -> Stream:
    """Set a share of the numbers to zero and raise the others to keep the mean; nothing without keys.

    Four numbers share one 32-bit draw, so the share is a multiple of 1/256.
    """
    if keys is None:
        return stream
    drawn = jr.bits(keys[place], (-(-stream.size // 4),), jnp.uint32)
    bytes_of = jax.lax.bitcast_convert_type(drawn, jnp.uint8).reshape(-1)[: stream.size].reshape(stream.shape)
    least = min(max(1, round(256 * spec.dropout)), 255)
    return jnp.where(bytes_of >= least, stream * (256 / (256 - least)), jnp.zeros_like(stream))
