"""The encoder is the slow obvious one, in value and in gradient, whichever way it is computed."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headcount._precision import in_double
from headcount.models import EncoderSpec
from headcount.models.encoder import attention
from headcount.models.encoder import model as encoder_model

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_close
from .encoders import (
    LENGTH,
    WIDTH,
    a_spec,
    answer,
    double,  # noqa: F401
    gap,
    length_for,
    options,
    respond,
    scrambled,
    slowly,
    some_tokens,
    tokens_for,
    value_and_gradient,
    weights_of,
)

STEP = 1e-6


def assert_same_function(
    spec: EncoderSpec, *, seed: int = 0, dim: int = WIDTH, outputs: int = WIDTH, padding: tuple[int, ...] = ()
) -> None:
    """The answer is the slow one's, and so is its slope along a random direction of all weights and tokens.

    Tokens at the places `padding` are zeros, and stay so.
    """
    length = length_for(spec)
    model, tokens = scrambled(spec, seed, dim=dim, outputs=outputs), some_tokens(seed, length=length, dim=dim)
    tokens[list(padding)] = 0
    got, gradient = value_and_gradient(in_double(model), tokens)
    want = slowly(model, tokens)
    assert got.dtype == np.float64
    assert want.shape == ((LENGTH, outputs) if spec.answered_at == "tokens" else (outputs,))
    assert_close(got, want)
    direction = (scrambled(spec, seed + 1, dim=dim, outputs=outputs), some_tokens(seed + 1, length=length, dim=dim))
    direction[1][list(padding)] = 0
    slope = sum(
        float(np.sum(np.asarray(leaf) * change))
        for leaf, change in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    )
    ahead, behind = (
        slowly(*jax.tree.map(lambda at, change, step=step: at + step * change, (model, tokens), direction))
        for step in (STEP, -STEP)
    )
    rise = np.sum((ahead - behind).ravel() * np.arange(1, want.size + 1)) / (2 * STEP)
    size = max(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(gradient))
    assert np.isfinite(size)
    assert size > 0
    assert slope == pytest.approx(rise, rel=1e-6, abs=1e-6 * size)


SIZES = {"heads": 2, "multiplier": 2, "rank": 3, "head_dim": 3}
"""Four heads in two blocks, the sizes of most tests here."""
AS_PUBLISHED = {
    "plain": {},
    "as in vision transformers": {"layers": 2, "final_norm": True, "norm": "layer", "norm_first": True}
    | {"activation": "gelu", "answered_at": "sequence", "query_is_key": True, "positions": "additive"},
    "norm first": {"norm_first": True, "final_norm": True, "layers": 2, "answered_at": "query"},
    "bare": {"hidden": 0, "norm": "none", "residual": False, "bias": False},
    "hard": {"attention": "hard", "residual": False, "answered_at": "sequence"},
    "wide values": {"rank": 1, "head_dim": 3, "positions": "concatenated"},
    "mapped": {"always_maps": True, "norm": "layer"},
    "causal groups": {"heads": 4, "kv_heads": 2, "causal": True, "attention": "top-k", "top_k": 2},
    "a window for the query": {"window": 2, "answered_at": "query", "attention": "linear", "kv_heads": 1},
}
ONE_BY_ONE = [
    {"norm": "none"},
    {"norm": "layer"},
    {"norm_first": True},
    {"bias": False},
    {"residual": False},
    {"hidden": 0},
    {"attention": "hard"},
    {"rank": 1, "head_dim": 1},
    {"rank": 3, "head_dim": 1},
    {"multiplier": 1, "heads": 4},
    {"layers": 2},
    {"activation": "gelu"},
    {"final_norm": True},
    *({"answered_at": where, **more} for where in ("query", "sequence") for more in ({}, {"query_is_key": True})),
    *({"positions": positions} for positions in ("additive", "concatenated")),
    *({"answered_at": where, "window": 2, "layers": 2} for where in ("tokens", "query", "sequence")),
    *({"answered_at": where, "causal": True, "layers": 2} for where in ("tokens", "query", "sequence")),
    *({"kv_heads": 1, "attention": kind} for kind in ("soft", "hard", "linear")),
]


@pytest.mark.parametrize("changes", AS_PUBLISHED.values(), ids=AS_PUBLISHED.keys())
def test_value_and_gradient(changes):
    assert_same_function(a_spec(**(SIZES | changes)))


@pytest.mark.slow
@pytest.mark.parametrize("changes", ONE_BY_ONE, ids=str)
def test_value_and_gradient_of_every_option_alone(changes):
    assert_same_function(a_spec(**(SIZES | changes)))


@pytest.mark.parametrize("bias", [True, False])
def test_maps_to_and_from_the_width(bias):
    assert_same_function(a_spec(bias=bias, **SIZES), dim=3, outputs=2)


@settings(deadline=None, max_examples=6)
@given(chosen=options, seed=st.integers(0, 2**16))
def test_any_option_with_any_weights(chosen, seed):
    spec = EncoderSpec(**(chosen | SIZES))
    model = scrambled(spec, seed, dim=1 if spec.vocabulary else WIDTH)
    tokens = tokens_for(spec, seed, length=length_for(spec))
    assert_close(answer(in_double(model), tokens), slowly(model, tokens))


# Other ways to the same numbers.


@pytest.mark.parametrize("bias", [True, False])
def test_blocks_are_averaged(bias):
    """m blocks are m encoders of one block each, and what they read is averaged."""
    bare = {"hidden": 0, "norm": "none", "residual": False, "bias": bias}
    model, tokens = scrambled(a_spec(heads=2, multiplier=2, **bare)), some_tokens()
    answers = []
    for block in range(2):
        alone = scrambled(a_spec(heads=2, **bare))
        heads, shared = model.layers[0].heads, alone.layers[0].heads
        for name in vars(shared):
            if bias or not name.endswith("bias"):
                every = getattr(heads, name)
                if every is None:
                    continue
                of_block = every if name == "output_bias" else every[2 * block : 2 * block + 2]
                getattr(shared, name)[...] = of_block
        answers.append(answer(in_double(alone), tokens))
    assert_close(answer(in_double(model), tokens), sum(answers) / 2)


def turns_taken(model, tokens) -> list[int]:
    """The lengths of the program's loops."""
    jaxpr = jax.make_jaxpr(lambda *arguments: respond(*arguments))(model, tokens)  # a new function: traces are kept
    return [equation.params["length"] for equation in jaxpr.eqns if equation.primitive.name == "scan"]


@pytest.mark.parametrize(
    ("allowed", "turns", "bias", "kv_heads"),
    [
        (1, 4, False, None),
        pytest.param(3 * LENGTH**2, 2, True, None, marks=pytest.mark.slow),
        pytest.param(1, 4, True, 1, marks=pytest.mark.slow),
    ],
)
def test_heads_that_take_turns_give_the_same(monkeypatch, allowed, turns, bias, kv_heads):
    spec = a_spec(heads=2, multiplier=2, bias=bias, kv_heads=kv_heads)
    model, tokens = in_double(scrambled(spec)), some_tokens()
    want, want_gradient = value_and_gradient(model, tokens)
    assert turns_taken(model, tokens) == []
    monkeypatch.setattr(attention, "WEIGHTS_AT_ONCE", allowed)
    assert turns_taken(model, tokens) == [turns]
    got, got_gradient = value_and_gradient(model, tokens)
    assert_close(got, want)
    assert_trees_close(got_gradient, want_gradient)


def products(model, tokens) -> int:
    jaxpr = jax.make_jaxpr(lambda *arguments: respond(*arguments))(model, tokens)
    return sum(equation.primitive.name == "dot_general" for equation in jaxpr.eqns)


@pytest.mark.parametrize(("rank", "head_dim"), [(1, 3), pytest.param(3, 1, marks=pytest.mark.slow)])
def test_thin_products_are_matrix_products(monkeypatch, rank, head_dim):
    model, tokens = in_double(scrambled(a_spec(rank=rank, head_dim=head_dim))), some_tokens()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")  # where thin products are sums
    got, got_gradient = value_and_gradient(model, tokens)
    thin = products(model, tokens)
    monkeypatch.setattr(attention, "THIN", 0)
    want, want_gradient = value_and_gradient(model, tokens)
    assert products(model, tokens) - thin == (rank <= 2) + (head_dim <= 2)
    assert_close(got, want)
    assert_trees_close(got_gradient, want_gradient)


# Padding.


@settings(deadline=None, max_examples=5)
@given(
    chosen=st.fixed_dictionaries(
        {
            "answered_at": st.sampled_from(["tokens", "query", "sequence"]),
            "attention": st.sampled_from(["soft", "hard"]),
            "query_is_key": st.booleans(),
            "norm_first": st.booleans(),
        }
    ),
    there=st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH).filter(any),
    seed=st.integers(0, 2**16),
)
@pytest.mark.slow
def test_tokens_of_zeros_change_nothing(chosen, there, seed):
    """Tokens are embedded, with a bias, so that one of zeros is none inside."""
    spec = a_spec(layers=2, masks_padding=True, **chosen)
    model = in_double(scrambled(spec, seed, dim=3))
    there = np.array(there[: length_for(spec)])
    if spec.answered_at == "query":
        there[-1] = True
        there[0] |= not any(there[:-1])  # a query that is nobody's key needs someone to ask
    tokens = some_tokens(seed, length=len(there), dim=3) * there[:, None]
    assume(any(there))
    got, want = answer(model, tokens), slowly(model, tokens[there])
    assert_close(got[there] if spec.answered_at == "tokens" else got, want)


@pytest.mark.parametrize("answered_at", ["query", pytest.param("sequence", marks=pytest.mark.slow)])
def test_padding_changes_no_gradient(answered_at):
    spec = a_spec(layers=2, masks_padding=True, answered_at=answered_at, query_is_key=True)
    assert_same_function(spec, padding=(0,))
    tokens = some_tokens(length=length_for(spec))
    tokens[0] = 0
    _, (_, of_tokens) = value_and_gradient(in_double(scrambled(spec)), tokens)
    assert np.all(np.any(np.asarray(of_tokens) != 0, axis=1) == np.any(tokens != 0, axis=1))


def test_a_token_of_zeros_is_a_token_unless_it_is_said_to_be_padding():
    tokens = some_tokens()
    tokens[1] = 0
    read, unread = (
        np.asarray(answer(in_double(scrambled(a_spec(answered_at="query", masks_padding=padded))), tokens))
        for padded in (False, True)
    )
    assert gap(read, unread) > 1e-3


def test_nobody_attends_to_padding():
    spec, tokens = a_spec(), some_tokens()
    absent = np.array([False, True, False, True])
    heads = scrambled(spec).layers[0].heads
    weights = np.asarray(weights_of(heads, spec, tokens, tokens, absent))
    assert not np.any(weights[:, :, absent])
    assert_close(weights[:, :, ~absent], weights_of(heads, spec, tokens, tokens[~absent]))


# Half precision.


@pytest.mark.parametrize(
    "changes",
    [
        {"answered_at": "tokens"},
        pytest.param(
            {"answered_at": "sequence", "norm": "layer", "norm_first": True, "final_norm": True, "activation": "gelu"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_half_precision_gives_nearly_the_same(changes, monkeypatch):
    """Filled up to eight places, or as it is."""
    spec = a_spec(layers=2, masks_padding=True, query_is_key=True, dropout=0.1, **changes)
    whole = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), scrambled(spec))
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), whole)
    tokens = np.asarray(some_tokens(length=length_for(spec)), np.float32)
    want, got = answer(whole, tokens), answer(half, tokens.astype(jnp.bfloat16))
    assert (want.dtype, got.dtype) == (jnp.float32, jnp.bfloat16)
    assert jax.eval_shape(answer, half, tokens.astype(jnp.bfloat16), jr.key(0)).dtype == jnp.bfloat16
    # Numbers of 8 bits, through two layers.
    assert gap(np.asarray(got, np.float32), want) < 0.08 * float(np.max(np.abs(want)))
    monkeypatch.setattr(encoder_model, "ALIGNED", 1)
    plain = jax.jit(lambda *arguments: respond(*arguments))(half, tokens.astype(jnp.bfloat16))
    assert gap(np.asarray(got, np.float32), np.asarray(plain, np.float32)) < 0.02 * float(np.max(np.abs(want)))
