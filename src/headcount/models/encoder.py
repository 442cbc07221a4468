"""The wide encoder's weights, how they are drawn, and what they compute.

    a_h(t, s) = softmax_s((W_Q,h x_t + b_Q,h) . (W_K,h x_s) / sqrt(r))                every head of every block at once
    x_t <- norm(x_t + (1/m) sum_h W_O,h sum_s a_h(t, s) (W_V,h x_s + b_V,h) + b_O)
    x_t <- norm(x_t + W2 relu(W1 x_t + b1) + b2)                        or, norm first, x + f(norm(x)) in place of both

The m blocks that a layer averages are one block of m times the heads, so a layer is a handful of large products and no
loop. Written for one sequence. Source: arXiv 2407.16153 and the encoder layer of PyTorch, whose initial weights are
taken over; `norm` "unit" scales vectors to one length, which is learned, and "layer" is layer norm without gain and
shift: the maps that follow a norm that comes first can learn both.

Weights and tokens of half precision are multiplied as they are; norms and softmax are computed in float32.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float
from jaxtyping import Key as KeyOf

from .._keys import named_generator
from .._shapes import AnyArray, Key, Target, Tokens, TokenTargets
from .encoder_spec import EncoderSpec

WEIGHTS_AT_ONCE = 2**20
"""Attention weights of one sequence that are formed at a time; beyond, heads take turns and are computed again for the
gradient. A batch of 256 then holds 1 GiB of them."""
THIN = 2
ALIGNED = 8
LAYER_NORM_FLOOR = 1e-5
UNIT_NORM_FLOOR = 1e-12
ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu}

Stream = Float[AnyArray, "length stream"]
Drops = KeyOf[Array, " drops"]


class Heads(eqx.Module):
    """Every head of a layer. Biases are None where the spec has none; keys never have one, no softmax would see it."""

    query: Float[AnyArray, "total_heads rank stream"]
    key: Float[AnyArray, "total_heads rank stream"]
    value: Float[AnyArray, "total_heads head_dim stream"]
    output: Float[AnyArray, "total_heads head_dim stream"]
    query_bias: Float[AnyArray, "total_heads rank"] | None
    value_bias: Float[AnyArray, "total_heads head_dim"] | None
    output_bias: Float[AnyArray, " stream"] | None


class Affine(eqx.Module):
    """x -> W x + b, or W x."""

    weight: Float[AnyArray, "after before"]
    bias: Float[AnyArray, " after"] | None

    def __call__(self, x: Float[AnyArray, " before"]) -> Float[AnyArray, " after"]:
        return self.weight @ x if self.bias is None else self.weight @ x + self.bias


class EncoderLayer(eqx.Module):
    heads: Heads
    feed_in: Affine | None
    feed_out: Affine | None
    attention_scale: Float[AnyArray, ""] | None
    feed_scale: Float[AnyArray, ""] | None


class Encoder(eqx.Module):
    """The weights of one model; `answer` is what it computes. Maps to and from `width` exist where the spec says."""

    layers: tuple[EncoderLayer, ...]
    embed: Affine | None
    class_token: Float[AnyArray, " stream"] | None
    position_table: Float[AnyArray, "length width"] | None
    read: Affine | None
    final_scale: Float[AnyArray, ""] | None
    spec: EncoderSpec = eqx.field(static=True)


def init_encoder(spec: EncoderSpec, seed: int, *, length: int, dim: int, outputs: int) -> Encoder:
    """Weights for sequences of `length` tokens, drawn as PyTorch draws its encoder layers."""
    stream, total, rank, head_dim = spec.stream_dim, spec.total_heads, spec.rank, spec.head_dim

    def uniform(*names: str | int, shape: tuple[int, ...], bound: float) -> Any:
        drawn = named_generator(seed, "initial weights", *names).uniform(-bound, bound, shape)
        return drawn.astype(np.float32)

    def zeros(*shape: int) -> Any:
        return np.zeros(shape, np.float32) if spec.bias else None

    def affine(*names: str | int, before: int, after: int) -> Affine:
        bound = before**-0.5
        return Affine(
            uniform(*names, "weight", shape=(after, before), bound=bound),
            uniform(*names, "bias", shape=(after,), bound=bound) if spec.bias else None,
        )

    # PyTorch draws W_Q, W_K, W_V of one block as one matrix, with Glorot's bound for that.
    inwards = (6 / (stream + spec.heads * (2 * rank + head_dim))) ** 0.5
    outwards = (spec.heads * head_dim) ** -0.5

    def one() -> Any:
        return np.ones((), np.float32) if spec.norm == "unit" else None

    def layer(place: int) -> EncoderLayer:
        return EncoderLayer(
            heads=Heads(
                query=uniform("layer", place, "query", shape=(total, rank, stream), bound=inwards),
                key=uniform("layer", place, "key", shape=(total, rank, stream), bound=inwards),
                value=uniform("layer", place, "value", shape=(total, head_dim, stream), bound=inwards),
                output=uniform("layer", place, "output", shape=(total, head_dim, stream), bound=outwards),
                query_bias=zeros(total, rank),
                value_bias=zeros(total, head_dim),
                output_bias=zeros(stream),
            ),
            feed_in=affine("layer", place, "feed in", before=stream, after=spec.hidden) if spec.hidden else None,
            feed_out=affine("layer", place, "feed out", before=spec.hidden, after=stream) if spec.hidden else None,
            attention_scale=one(),
            feed_scale=one() if spec.hidden else None,
        )

    return Encoder(
        layers=tuple(layer(place) for place in range(spec.layers)),
        embed=affine("embed", before=dim, after=spec.width) if spec.embeds(dim) else None,
        class_token=uniform("class token", shape=(stream,), bound=1.0) if spec.answered_at == "sequence" else None,
        position_table=None
        if spec.positions == "none"
        else uniform("positions", shape=(length, spec.width), bound=1.0),
        read=affine("read", before=spec.width, after=outputs) if spec.reads(outputs) else None,
        final_scale=one() if spec.final_norm else None,
        spec=spec,
    )


def answer(model: Encoder, tokens: Tokens, key: Key | None = None) -> Target | TokenTargets:
    """The answer for one sequence: one for every token, or one in all, as the spec says.

    A key is given in training, where it draws what is dropped; without one, nothing is.
    """
    spec = model.spec
    drops = None if key is None or spec.dropout == 0 else jr.split(key, 2 * spec.layers + 1)
    stream = _dropped(_stream(model, tokens), spec, drops, 0)
    asks_once = spec.answered_at != "tokens"
    absent = _absent(model, tokens) if spec.padded else None
    stream, absent, filled = _aligned(stream, absent)
    seen = slice(None) if spec.query_is_key or not asks_once else slice(-1)
    for place, layer in enumerate(model.layers):
        keys = stream[seen]
        # Only the query is read in the end, so the last layer answers no other token.
        stream = stream[-1:] if asks_once and place == spec.layers - 1 else stream
        own = None if drops is None else drops[2 * place + 1 : 2 * place + 3]
        stream = _apply(layer, spec, stream, keys, None if absent is None else absent[seen], own)
    if spec.final_norm:
        stream = _norm(stream, spec, model.final_scale)
    read = (stream if asks_once else stream[filled:])[:, : spec.width]
    if model.read is not None:
        read = jax.vmap(model.read)(read)
    return read[0] if asks_once else read


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


def _stream(model: Encoder, tokens: Tokens) -> Float[AnyArray, "places stream"]:
    stream = tokens if model.embed is None else jax.vmap(model.embed)(tokens)
    table = model.position_table
    if table is not None:
        stream = stream + table if model.spec.positions == "additive" else jnp.concatenate([stream, table], axis=1)
    if model.class_token is not None:
        stream = jnp.concatenate([stream, model.class_token[None]])
    return stream


def _absent(model: Encoder, tokens: Tokens) -> Bool[AnyArray, " places"]:
    """Which places of the stream hold nothing."""
    absent = jnp.all(tokens == 0, axis=-1)
    return absent if model.class_token is None else jnp.concatenate([absent, jnp.zeros(1, bool)])


def _aligned(
    stream: Stream, absent: Bool[AnyArray, " length"] | None
) -> tuple[Float[AnyArray, "places stream"], Bool[AnyArray, " places"] | None, int]:
    """The stream filled up in front to a multiple of eight places, which of them are absent, and how many were added.

    Only in half precision: a GPU multiplies matrices of other lengths there at less than half the speed. A training
    step of a vision transformer with 65 tokens took 2.74 ms on an H200, filled up to 72 it took 2.35.
    """
    filled = -len(stream) % ALIGNED if stream.dtype == jnp.bfloat16 else 0
    if not filled:
        return stream, absent, 0
    absent = jnp.zeros(len(stream), bool) if absent is None else absent
    front = jnp.zeros((filled, stream.shape[1]), stream.dtype)
    return jnp.concatenate([front, stream]), jnp.concatenate([jnp.ones(filled, bool), absent]), filled


def _dropped(stream: Stream, spec: EncoderSpec, keys: Drops | None, place: int) -> Stream:
    """The stream with a share of its numbers set to zero and the others raised to keep the mean; whole without keys.

    Four numbers share one 32-bit draw, so the share is a multiple of 1/256.
    """
    if keys is None:
        return stream
    drawn = jr.bits(keys[place], (-(-stream.size // 4),), jnp.uint32)
    bytes_of = jax.lax.bitcast_convert_type(drawn, jnp.uint8).reshape(-1)[: stream.size].reshape(stream.shape)
    least = min(max(1, round(256 * spec.dropout)), 255)
    return jnp.where(bytes_of >= least, stream * (256 / (256 - least)), jnp.zeros_like(stream))


def _apply(
    layer: EncoderLayer,
    spec: EncoderSpec,
    stream: Stream,
    keys: Float[AnyArray, "keys stream"],
    absent: Bool[AnyArray, " keys"] | None,
    drops: Drops | None,
) -> Stream:
    def sublayer(
        stream: Stream, scale: Float[AnyArray, ""] | None, change: Callable[[Stream], Stream], place: int
    ) -> Stream:
        if spec.norm_first:
            changed = _dropped(change(_norm(stream, spec, scale)), spec, drops, place)
            return stream + changed if spec.residual else changed
        changed = _dropped(change(stream), spec, drops, place)
        return _norm(stream + changed if spec.residual else changed, spec, scale)

    def attend(stream: Stream) -> Stream:
        seen = _norm(keys, spec, layer.attention_scale) if spec.norm_first else keys
        return _attend(layer.heads, spec, stream, seen, absent)

    def feed(stream: Stream) -> Stream:
        assert layer.feed_in is not None
        assert layer.feed_out is not None
        return jax.vmap(layer.feed_out)(ACTIVATIONS[spec.activation](jax.vmap(layer.feed_in)(stream)))

    stream = sublayer(stream, layer.attention_scale, attend, 0)
    return stream if layer.feed_in is None else sublayer(stream, layer.feed_scale, feed, 1)


def _attend(
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


def _norm(stream: Stream, spec: EncoderSpec, scale: Float[AnyArray, ""] | None) -> Stream:
    if spec.norm == "none":
        return stream
    exact = stream.astype(jnp.promote_types(stream.dtype, jnp.float32))
    if scale is not None:
        normed = exact * jax.lax.rsqrt(jnp.sum(exact**2, axis=-1, keepdims=True) + UNIT_NORM_FLOOR) * scale
    else:
        centred = exact - jnp.mean(exact, axis=-1, keepdims=True)
        normed = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + LAYER_NORM_FLOOR)
    return normed.astype(stream.dtype)


def encoder_parameters(spec: EncoderSpec, *, length: int, dim: int, outputs: int) -> int:
    """Every trained number."""
    stream, one = spec.stream_dim, int(spec.bias)
    attention = 2 * spec.total_heads * (spec.rank + spec.head_dim) * stream
    scales = (2 if spec.hidden else 1) if spec.norm == "unit" else 0
    last = int(spec.final_norm and spec.norm == "unit")
    biases = one * (spec.total_heads * (spec.rank + spec.head_dim) + stream)
    feed = 2 * stream * spec.hidden + one * (spec.hidden + stream) if spec.hidden else 0
    ends = ((dim, spec.width, spec.embeds(dim)), (spec.width, outputs, spec.reads(outputs)))
    maps = sum((before + one) * after for before, after, there in ends if there)
    places = 0 if spec.positions == "none" else length * spec.width
    question = stream if spec.answered_at == "sequence" else 0
    return spec.layers * (attention + biases + feed + scales) + maps + places + question + last


def encoder_flops(spec: EncoderSpec, *, length: int, dim: int, outputs: int) -> int:
    """Multiplications and additions of the forward pass on one sequence, matrix products only."""
    stream, compared, carried = spec.stream_dim, spec.total_heads * spec.rank, spec.total_heads * spec.head_dim
    projections = 4 * length * stream * (compared + carried)
    mixing = 2 * length * length * (compared + carried)
    feed = 4 * length * stream * spec.hidden
    ends = 2 * length * (dim * spec.width * spec.embeds(dim) + spec.width * outputs * spec.reads(outputs))
    return spec.layers * (projections + mixing + feed) + ends
