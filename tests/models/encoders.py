"""Encoders for tests: options of every kind, weights at random, and what an encoder computes, slowly.

Sizes are 4 and below, the same few throughout: operations that run once cost their compilation.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from headcount._choices import ACTIVATIONS, ANSWERED_AT, ATTENTION_KINDS, NORMS, PADDINGS, POSITIONS
from headcount.models import Encoder, EncoderSpec
from headcount.models.encoder.attention import attention_weights
from headcount.models.layers import LAYER_NORM_FLOOR, UNIT_NORM_FLOOR

LENGTH, WIDTH, HIDDEN = 4, 4, 3

_chosen = st.fixed_dictionaries(
    {
        "heads": st.integers(1, 3),
        "rank": st.integers(1, WIDTH),
        "width": st.just(WIDTH),
        "multiplier": st.integers(1, 3),
        "layers": st.integers(1, 2),
        "hidden": st.sampled_from([0, HIDDEN]),
        "norm": st.sampled_from(NORMS),
        "norm_first": st.booleans(),
        "bias": st.booleans(),
        "residual": st.booleans(),
        "positions": st.sampled_from(POSITIONS),
        "attention": st.sampled_from(ATTENTION_KINDS),
        "answered_at": st.sampled_from(ANSWERED_AT),
        "activation": st.sampled_from(ACTIVATIONS),
        "final_norm": st.booleans(),
        "query_is_key": st.booleans(),
        "masks_padding": st.booleans(),
        "dropout": st.sampled_from([0.0, 0.25]),
        "always_maps": st.booleans(),
    },
    optional={
        "head_dim": st.integers(1, WIDTH),
        "padding": st.sampled_from(PADDINGS),
        "vocabulary": st.sampled_from([0, 3]),
        "kv_heads": st.just(1),
        "window": st.just(1),
        "causal": st.booleans(),
    },
)
options = _chosen.map(lambda chosen: chosen | ({"top_k": 1} if chosen["attention"] == "top-k" else {}))
"""What an EncoderSpec is made of. The spec is made in the test: its types are checked at random entries."""


def a_spec(**changes) -> EncoderSpec:
    return EncoderSpec(**({"heads": 4, "rank": 3, "width": WIDTH, "hidden": HIDDEN} | changes))


def scrambled(spec: EncoderSpec, seed: int = 0, *, dim: int = WIDTH, outputs: int = WIDTH) -> Encoder:
    """An encoder with numbers of both signs and of size 0.3 to 1.2 everywhere, in float64."""
    generator = np.random.default_rng(seed)

    def draw(leaf):
        shape = np.shape(leaf)
        return np.asarray(generator.uniform(0.3, 1.2, shape) * generator.choice([-1, 1], shape))

    return jax.tree.map(draw, spec.init(0, length=length_for(spec), dim=dim, outputs=outputs))


def length_for(spec: EncoderSpec) -> int:
    """One token less where the class token joins, so that all have one size inside."""
    return LENGTH - (spec.answered_at == "sequence")


def some_tokens(seed: int = 0, *, length: int = LENGTH, dim: int = WIDTH):
    return np.random.default_rng([seed, 1]).normal(size=(length, dim))


def tokens_for(spec: EncoderSpec, seed: int = 0, *, length: int, dim: int = WIDTH):
    """Tokens that the spec's encoders read; the second is padding, where the spec says so."""
    tokens = some_tokens(seed, length=length, dim=dim)
    if spec.vocabulary:
        tokens = np.random.default_rng(seed).integers(0, spec.vocabulary, (length, 1)).astype(float)
    tokens[1] = np.nan if spec.masks_nan else 0
    return tokens


def value_and_gradient(model: Encoder, tokens):
    """The answer, and the derivative of a combination of its numbers by every weight and token."""

    def combined(model, tokens):
        answered = model(tokens)
        return jnp.sum(answered * jnp.reshape(jnp.arange(1.0, answered.size + 1), answered.shape)), answered

    # A new function each time, so that nothing that a test replaces in the model stays as it was.
    (_, answered), gradient = jax.jit(jax.value_and_grad(combined, argnums=(0, 1), has_aux=True))(model, tokens)
    return answered, gradient


def slowly(model: Encoder, tokens) -> np.ndarray:
    """What the encoder answers, one block, head, query and key at a time."""
    spec = model.spec
    missing = [spec.masks_padding and bool(np.all(np.isnan(x) if spec.masks_nan else x == 0)) for x in tokens]
    tokens = [np.zeros_like(token) if gone else token for token, gone in zip(tokens, missing, strict=True)]
    if spec.vocabulary:
        tokens = [np.eye(spec.vocabulary)[int(token[0])] for token in tokens]
    stream = [np.asarray(token) if model.embed is None else _affine(model.embed, token) for token in tokens]
    if spec.positions == "additive":
        stream = [x + place for x, place in zip(stream, model.position_table, strict=True)]
    if spec.positions == "concatenated":
        stream = [np.concatenate([x, place]) for x, place in zip(stream, model.position_table, strict=True)]
    if spec.answered_at == "sequence":
        stream = [*stream, model.class_token]
    absent = missing + [False] * (spec.answered_at == "sequence")
    there = [place for place, gone in enumerate(absent) if not gone]
    key_places = there if spec.answered_at == "tokens" or spec.query_is_key else there[:-1]
    for layer in model.layers:
        moved = []
        for place, x in enumerate(stream):
            keys = [stream[other] for other in key_places if _sees(spec, place, other, there, key_places)]
            before, after = (_normed, _as_it_is) if spec.norm_first else (_as_it_is, _normed)
            seen = [before(key, spec, layer.attention_scale) for key in keys]
            attended = _attended(layer.heads, spec, before(x, spec, layer.attention_scale), seen)
            x = after(x + attended if spec.residual else attended, spec, layer.attention_scale)
            if spec.hidden:
                entering = before(x, spec, layer.feed_scale)
                fed = _affine(layer.feed_out, _active(_affine(layer.feed_in, entering), spec.activation))
                x = after(x + fed if spec.residual else fed, spec, layer.feed_scale)
            moved.append(x)
        stream = moved
    if spec.final_norm:
        stream = [_normed(x, spec, model.final_scale) for x in stream]
    answers = [x[: spec.width] for x in stream]
    answers = answers if model.read is None else [_affine(model.read, x) for x in answers]
    return np.array(answers) if spec.answered_at == "tokens" else np.array(answers[-1])


def _sees(spec: EncoderSpec, query: int, key: int, there: list[int], keys: list[int]) -> bool:
    """Whether a place reads another, by how many tokens that are there lie between them."""
    last = max(there)
    comes_after = query == last and (spec.answered_at == "sequence" or last not in keys)
    own = max([place for place in there if place <= query], default=there[0])
    apart = there.index(own) - there.index(key)
    if spec.causal and apart < 0:
        return False
    return spec.window is None or -spec.window < apart < spec.window + comes_after


def _affine(affine, x):
    return _projected(affine.weight, affine.bias, x)


def _projected(weight, bias, x):
    return np.array([row @ x for row in weight]) + (0 if bias is None else bias)


def _attended(heads, spec: EncoderSpec, query, keys):
    """The mean over blocks of the sum of their heads."""
    biases = {
        name: getattr(heads, f"{name}_bias") if spec.bias else [None] * spec.total_heads for name in ("query", "value")
    }
    groups = spec.kv_heads or spec.heads
    blocks = []
    for block in range(spec.multiplier):
        total = np.zeros(spec.stream_dim)
        for h in range(block * spec.heads, (block + 1) * spec.heads):
            group = block * groups + (h - block * spec.heads) % groups
            asked = _projected(heads.query[h], biases["query"][h], query)
            weights = _weights(asked, [_projected(heads.key[group], None, key) for key in keys], spec)
            read = sum(
                weight * _projected(heads.value[group], biases["value"][group], key)
                for weight, key in zip(weights, keys, strict=True)
            )
            total += heads.output[h].T @ read
        blocks.append(total)
    return sum(blocks) / len(blocks) + (heads.output_bias if spec.bias else 0)


def _weights(asked, keys, spec: EncoderSpec):
    if spec.attention == "linear":
        kernel = [sum(_feature(a) * _feature(b) for a, b in zip(asked, key, strict=True)) for key in keys]
        return np.array(kernel) / sum(kernel)
    scores = np.array([asked @ key / spec.rank**0.5 for key in keys])
    if spec.attention == "hard":
        return [float(i == np.argmax(scores)) for i in range(len(scores))]
    raised = np.exp(scores - max(scores))
    if spec.attention == "top-k":
        first = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[: spec.top_k]
        raised = np.array([raised[i] if i in first else 0.0 for i in range(len(scores))])
    return raised / sum(raised)


def _feature(x: float) -> float:
    return x + 1 if x > 0 else math.exp(x)


def _active(x, activation: str):
    """The gelu is the one of BERT's first code, with a tanh for the normal distribution."""
    if activation == "relu":
        return np.maximum(x, 0)
    return np.array([0.5 * u * (1 + math.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3))) for u in x])


def _as_it_is(x, _spec, _scale):
    return x


def _normed(x, spec: EncoderSpec, scale):
    if spec.norm == "unit":
        return scale * x / (x @ x + UNIT_NORM_FLOOR) ** 0.5
    if spec.norm == "layer":
        return (x - np.mean(x)) / (np.var(x) + LAYER_NORM_FLOOR) ** 0.5
    return x


def respond(model, tokens, key=None):
    return model(tokens, key=key)


answer = jax.jit(respond)
weights_of = jax.jit(attention_weights, static_argnums=1)


def gap(one, other) -> float:
    return float(np.max(np.abs(np.asarray(one) - np.asarray(other))))


@pytest.fixture(autouse=True)
def double():
    """In double precision, in every module that imports this."""
    with jax.enable_x64(True):
        yield
