"""The class-token transformer: its spec, its initial weights, its heads and its scales."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._choices import ATTENTION_KINDS, POSITIONS
from headcount.models import ClassTokenSpec, folded, from_arrays

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_trees_close, assert_trees_equal
from .laws import ModelLaws, products_performed, some_tokens

quick = settings(deadline=None, max_examples=40)


def with_inner_nets(fields: dict) -> st.SearchStrategy[dict]:
    """Nets between layers, where there are several."""
    return st.integers(0, 4 if fields["layers"] > 1 else 0).map(lambda units: fields | {"inner_hidden": units})


def with_attention(chosen):
    """The same fields with any way of reading that fits them."""
    heads, kinds = chosen["heads"], [kind for kind in ATTENTION_KINDS if kind != "linear" or chosen["beta"] == 1]
    divisors = [None, *(count for count in range(1, heads + 1) if heads % count == 0)]
    ways = st.fixed_dictionaries(
        {},
        optional={
            "kv_heads": st.sampled_from(divisors),
            "window": st.just(1),
            "causal": st.booleans(),
            "attention": st.sampled_from(kinds),
        },
    )
    return ways.map(lambda way: chosen | way | ({"top_k": 1} if way.get("attention") == "top-k" else {}))


class TestClassToken(ModelLaws):
    spec_class = ClassTokenSpec
    options = (
        st.fixed_dictionaries(
            {
                "heads": st.integers(1, 9),
                "head_dim": st.integers(4, 40),
                "hidden": st.integers(1, 5),
                "layers": st.integers(1, 3),
                "positions": st.sampled_from(POSITIONS),
                "beta": st.floats(0.1, 50) | st.just(1.0),
            },
            optional={
                "rank": st.integers(1, 4),
                "masks_padding": st.booleans(),
                "vocabulary": st.integers(0, 3),
                "final_norm": st.booleans(),
            },
        )
        .flatmap(with_inner_nets)
        .flatmap(with_attention)
    )
    examples = (
        {"heads": 2, "head_dim": 3, "rank": 4, "hidden": 5},
        {"heads": 2, "head_dim": 3, "rank": 4, "hidden": 5, "positions": "concatenated", "beta": 4.0},
        {"heads": 2, "head_dim": 3, "rank": 4, "hidden": 5, "positions": "additive", "layers": 2},
        {"heads": 2, "head_dim": 3, "hidden": 5, "positions": "additive", "masks_padding": True},
        {"heads": 2, "head_dim": 3, "hidden": 5, "positions": "concatenated", "vocabulary": 3},
        {"heads": 2, "head_dim": 3, "hidden": 5, "layers": 2, "masks_padding": True, "vocabulary": 3},
        {"heads": 2, "head_dim": 3, "hidden": 5, "layers": 2, "inner_hidden": 4},
        {"heads": 2, "head_dim": 3, "hidden": 5, "final_norm": True},
        {
            "heads": 2,
            "head_dim": 3,
            "hidden": 5,
            "masks_padding": True,
            "kv_heads": 1,
            "attention": "top-k",
            "top_k": 1,
        },
        {"heads": 2, "head_dim": 3, "hidden": 5, "layers": 2, "masks_padding": True, "causal": True, "window": 2}
        | {"kv_heads": 1, "attention": "linear"},
    )
    bad = (
        *((name, value) for name in ("heads", "head_dim", "rank", "hidden", "layers") for value in (0, 1.5, True, "3")),
        ("rank", 7),
        *(("vocabulary", value) for value in (-1, 2.5, None)),
        ("masks_padding", 1),
        ("final_norm", 1),
        *(("inner_hidden", value) for value in (-1, 2.5, 3)),
        ("positions", "aditive"),
        ("positions", None),
        *(("beta", value) for value in (0.0, -1.0, float("inf"), float("nan"))),
        *((name, value) for name in ("kv_heads", "window", "top_k") for value in (0, 1.5, True)),
        ("kv_heads", 3),
        ("causal", 1),
        ("attention", "lineer"),
        ("top_k", 2),
    )


def make(seed=0, *, length=4, outputs=2, **changes):
    spec = ClassTokenSpec(**({"heads": 2, "head_dim": 3, "hidden": 5} | changes))
    return spec.init(seed, length=length, dim=3, outputs=outputs)


# The spec.


def test_defaults_are_the_published_model():
    spec = ClassTokenSpec(heads=4)
    assert (spec.head_dim, spec.rank, spec.hidden, spec.layers, spec.positions, spec.beta) == (8, 8, 32, 1, "none", 1.0)
    assert spec.total_dim == 32
    w1, w2, w3, w4 = 32 * 4 + 32, 32 * 32 + 32, 32 * 32 + 32, 32 + 1
    assert w1 + w2 + w3 + w4 == 2305  # M as the first paper counts it
    assert spec.parameters(length=128, dim=4, outputs=1) == 2305 + 4 * 32 * 32 + 32


def test_unknown_positions_are_answered_with_the_nearest():
    with refused('Did you mean "additive"?', *POSITIONS):
        ClassTokenSpec(heads=2, positions="aditive")


@pytest.mark.parametrize(("total", "heads", "head_dim"), [(24, 1, 24), (24, 3, 8), (32, 3, 11), (32, 31, 2), (7, 2, 4)])
def test_heads_share_a_total_evenly_or_rounded_up(total, heads, head_dim):
    spec = ClassTokenSpec.with_total_dim(total, heads=heads, round_up=True, hidden=16)
    assert spec == ClassTokenSpec(heads=heads, head_dim=head_dim, hidden=16)
    if total % heads:
        with refused(f"{heads} heads", f"total_dim {total}"):
            ClassTokenSpec.with_total_dim(total, heads=heads)
    else:
        assert ClassTokenSpec.with_total_dim(total, heads=heads, hidden=16) == spec


def test_bad_totals_are_refused():
    with refused("5 heads", "total_dim 4"):
        ClassTokenSpec.with_total_dim(4, heads=5, round_up=True)
    with refused("heads", "0"):
        ClassTokenSpec.with_total_dim(32, heads=0)


@quick
@given(st.integers(1, 1000), st.integers(1, 64), st.integers(1, 3))
def test_padding_adds_little(heads, head_dim, layers):
    added = ClassTokenSpec(heads=heads, head_dim=head_dim, layers=layers).padded().heads - heads
    assert 0 <= added < 4
    assert added * head_dim < 32
    assert layers == 1 or added == 0


def test_narrow_heads_of_one_layer_share_a_program():
    assert {ClassTokenSpec(heads=heads).padded().heads for heads in (1, 2, 3, 4)} == {4}


def test_folding_saves_what_it_says():
    """Per sample at h = 4, T = 128: 3.5 million operations for the textbook layers, 0.10 million folded."""
    spec, sizes = ClassTokenSpec(heads=4), {"length": 128, "dim": 4, "outputs": 1}
    assert spec.flops(**sizes) / 1e6 == pytest.approx(0.10, abs=0.01)
    every_token = ClassTokenSpec(heads=4, layers=2)
    saved = every_token.flops(**sizes) - products_performed(folded.predict, spec, **sizes)
    assert saved / 1e6 == pytest.approx(3.5, abs=0.1)


@pytest.mark.parametrize("positions", POSITIONS)
def test_one_layer_is_linear_in_length_and_more_are_not(positions):
    def curvature(layers):
        spec = ClassTokenSpec(heads=4, positions=positions, layers=layers)
        costs = [spec.flops(length=length, dim=4, outputs=1) for length in (32, 64, 96)]
        return costs[2] - 2 * costs[1] + costs[0]

    assert curvature(1) == 0
    assert curvature(2) > 0


# The weights.


def test_names_of_arrays_are_paths():
    names = set(make(positions="additive", layers=2).to_arrays())
    nets = ("encoder_in", "encoder_out", "readout_in", "readout_out")
    attention = {f"attention.{layer}.{part}" for layer in (0, 1) for part in ("query", "key", "value", "output")}
    assert names == {f"{net}.{part}" for net in nets for part in ("weight", "bias")} | attention | {
        "class_token",
        "position_table",
    }


@pytest.mark.parametrize(
    ("held", "asked", "name"),
    [
        ({"positions": "additive"}, {"positions": "none"}, "position_table"),
        ({"positions": "none"}, {"positions": "additive"}, "position_table"),
        ({"positions": "none"}, {"positions": "concatenated"}, "position_table"),
        ({"layers": 2}, {"layers": 1}, "attention.1"),
        ({"layers": 1}, {"layers": 2}, "attention.1"),
        ({"heads": 2}, {"heads": 3}, "(6, 5)"),
        ({"rank": 3}, {"rank": 2}, "attention.0.query"),
    ],
    ids=str,
)
def test_arrays_of_another_spec_are_refused(held, asked, name):
    with refused(name):
        from_arrays(make(**asked).spec, make(**held).to_arrays())


def test_initial_weights_fill_their_bounds():
    model = make(heads=6, head_dim=8, hidden=50, positions="concatenated", outputs=40)
    fan_in = {3 + 8: model.encoder_in, 50: model.encoder_out, 48: model.readout_in}
    arrays = [(fan, array) for fan, linear in fan_in.items() for array in (linear.weight, linear.bias)]
    arrays += [(50, model.readout_out.weight), (50, model.readout_out.bias)]
    arrays += [(48, leaf) for leaf in jax.tree.leaves(model.attention)]
    for fan, array in arrays:
        furthest = float(np.max(np.abs(array))) * fan**0.5
        # The largest of k uniform numbers is within 10 / k of the bound but for a chance of 5e-5.
        assert 1 - 10 / array.size <= furthest <= 1 + 1e-6, (array.shape, fan, furthest)
        assert abs(float(np.mean(array))) * fan**0.5 < 4 / (3 * array.size) ** 0.5


def test_class_token_and_positions_are_small_normals():
    model = make(heads=8, head_dim=8, positions="additive", length=50)
    assert model.position_table.shape == (50, 64)
    assert float(np.std(model.position_table)) == pytest.approx(0.1, rel=0.1)
    assert float(np.std(model.class_token)) == pytest.approx(0.1, rel=0.4)


def test_cutting_keeps_the_first_heads():
    model = make(heads=3)
    cut = model.with_heads(1)
    assert_trees_equal(cut.attention[0].query, model.attention[0].query[:1, :, :3])
    assert_trees_equal(cut.attention[0].output, model.attention[0].output[:3, :1])
    assert_trees_equal(cut.class_token, model.class_token[:3])


@pytest.mark.parametrize("padded", [2, 4])
def test_what_reaches_the_readout_varies_by_one(padded):
    @jax.jit
    def reached(model, tokens):
        return jax.vmap(folded.class_output, in_axes=(None, 0))(model.calibrated(tokens), tokens)

    tokens = np.asarray(some_tokens(examples=64), np.float32)
    variance = np.var(np.asarray(reached(make().with_heads(padded), tokens)), axis=0)
    assert np.mean(variance[:6]) == pytest.approx(1, rel=1e-4)
    assert np.all(variance[6:] == 0)


def test_raw_units_of_jax_weights_are_those_of_numpy_weights():
    model = make(positions="concatenated")
    units = [np.array(unit, np.float32) for unit in ([5, -2, 0], [3, 0.5, 10], [100, -1], [0.01, 7])]
    from_jax = jax.tree.map(jax.numpy.asarray, model).in_raw_units(*map(jax.numpy.asarray, units))
    assert_trees_close(from_jax, model.in_raw_units(*units))
