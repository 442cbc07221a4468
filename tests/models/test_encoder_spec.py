"""The wide encoder: the laws of every model, its spec, and its initial weights."""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._choices import ACTIVATIONS, ANSWERED_AT, ATTENTION_KINDS, NORMS, POSITIONS
from headcount.models import EncoderSpec, from_arrays

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from .encoders import WIDTH, a_spec, options
from .laws import SIZES, ModelLaws

quick = settings(deadline=None, max_examples=40)
SMALL = {"heads": 2, "multiplier": 2, "rank": 3, "width": WIDTH, "hidden": 3}


class TestEncoder(ModelLaws):
    spec_class = EncoderSpec
    options = options
    examples = (
        SMALL,
        SMALL | {"answered_at": "sequence", "masks_padding": True, "query_is_key": True, "dropout": 0.5, "hidden": 0},
        SMALL | {"answered_at": "query", "layers": 2, "positions": "additive", "norm": "none", "attention": "hard"},
        SMALL | {"answered_at": "query", "masks_padding": True, "padding": "nan", "always_maps": True, "vocabulary": 3},
        SMALL
        | {"answered_at": "sequence", "positions": "additive", "masks_padding": True, "padding": "nan"}
        | {"always_maps": True},
        SMALL
        | {"answered_at": "sequence", "masks_padding": True, "padding": "nan", "always_maps": True, "layers": 2}
        | {"kv_heads": 1, "window": 2, "causal": True, "attention": "top-k", "top_k": 1},
    )
    bad = (
        *(
            (name, value)
            for name in ("heads", "rank", "width", "head_dim", "multiplier", "layers")
            for value in (0, 1.5)
        ),
        *(("hidden", value) for value in (-1, 2.0, None, False)),
        *(("dropout", value) for value in (-0.1, 1, float("nan"))),
        *((name, 1) for name in ("bias", "residual", "norm_first", "final_norm", "masks_padding", "always_maps")),
        *((name, word) for name in ("norm", "attention", "positions", "answered_at") for word in ("nonsense", None)),
        *(("vocabulary", value) for value in (-1, 2.5, None)),
        ("padding", "zero"),
        *((name, value) for name in ("kv_heads", "window", "top_k") for value in (0, 1.5, True)),
        ("kv_heads", 3),
        ("causal", 1),
        ("top_k", 2),
        ("rank", WIDTH + 1),
        ("head_dim", WIDTH + 1),
    )


def test_defaults_are_the_second_paper_s_encoder():
    spec = EncoderSpec(heads=4, rank=2, width=8)
    assert (spec.head_dim, spec.multiplier, spec.layers, spec.hidden) == (2, 1, 1, 2048)
    assert (spec.norm, spec.bias, spec.residual, spec.positions) == ("unit", True, True, "none")
    assert (spec.attention, spec.answered_at, spec.activation) == ("soft", "tokens", "relu")
    assert not any((spec.final_norm, spec.query_is_key, spec.masks_padding, spec.dropout, spec.always_maps))


@pytest.mark.parametrize(
    ("name", "given", "meant", "known"),
    [
        ("norm", "units", "unit", NORMS),
        ("attention", "lineer", "linear", ATTENTION_KINDS),
        ("positions", "aditive", "additive", POSITIONS),
        ("answered_at", "token", "tokens", ANSWERED_AT),
        ("activation", "gellu", "gelu", ACTIVATIONS),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(name, given, meant, known):
    with refused(name, f'"{given}"', f'Did you mean "{meant}"?', *known):
        a_spec(**{name: given})


@pytest.mark.parametrize("name", ["rank", "head_dim"])
def test_concatenated_positions_are_projected_too(name):
    assert a_spec(positions="concatenated", **{name: 2 * WIDTH}).stream_dim == 2 * WIDTH
    with refused(name, "8", "9"):
        a_spec(positions="concatenated", **{name: 2 * WIDTH + 1})


@quick
@given(options, st.integers(1, 4))
def test_another_rank_changes_the_rank_and_what_is_tied_to_it(chosen, rank):
    spec = EncoderSpec(**chosen)
    other = spec.with_rank(rank)
    assert other.rank == rank
    assert other.head_dim == (rank if spec.head_dim == spec.rank else spec.head_dim)
    assert dataclasses.replace(other, rank=spec.rank, head_dim=spec.head_dim) == spec


@pytest.mark.parametrize(("total", "heads", "rank"), [(4, 1, 4), (4, 4, 1), (8, 8, 1)])
def test_heads_share_a_total(total, heads, rank):
    spec = EncoderSpec.with_total_dim(total, heads=heads, width=4, norm="layer")
    assert spec == EncoderSpec(heads=heads, rank=rank, width=4, norm="layer")
    assert spec.total_dim == total


@pytest.mark.parametrize(("total", "heads"), [(4, 3), (2, 4), (4, 0)])
def test_heads_that_do_not_divide_the_total_are_refused(total, heads):
    with refused("heads", str(heads)):
        EncoderSpec.with_total_dim(total, heads=heads, width=4)


@quick
@given(options)
def test_activations_hold_at_least_the_attention_weights_and_the_hidden_units(chosen):
    spec = EncoderSpec(**chosen)
    assert spec.activations(length=6, dim=4) >= spec.layers * 6 * (6 * spec.total_heads + spec.hidden)


# Arrays.


def test_names_of_arrays_are_paths():
    names = set(a_spec(positions="additive", answered_at="sequence").init(3, **SIZES).to_arrays())
    heads = {f"layers.0.heads.{part}{bias}" for part in ("query", "key", "value", "output") for bias in ("", "_bias")}
    heads.remove("layers.0.heads.key_bias")
    nets = ("layers.0.feed_in", "layers.0.feed_out", "embed", "read")
    nets = {f"{net}.{part}" for net in nets for part in ("weight", "bias")}
    assert names == heads | nets | {"class_token", "position_table", "layers.0.attention_scale", "layers.0.feed_scale"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heads": 3}, ("layers.0.heads.query", "(4, 3, 4)", "(3, 3, 4)")),
        ({"rank": 2, "head_dim": 3}, ("layers.0.heads.query", "(4, 3, 4)", "(4, 2, 4)")),
        ({"hidden": 5}, ("layers.0.feed_in.weight", "(3, 4)", "(5, 4)")),
        ({"hidden": 0}, ("layers.0.feed_in.bias",)),
        ({"layers": 2}, ("layers.1.attention_scale",)),
        ({"bias": False}, ("embed.bias",)),
        ({"positions": "additive"}, ("position_table",)),
        ({"answered_at": "sequence"}, ("class_token",)),
    ],
    ids=str,
)
def test_arrays_of_another_spec_are_refused(changes, words):
    with refused(*words):
        from_arrays(a_spec(**changes), a_spec().init(3, **SIZES).to_arrays())


@pytest.mark.parametrize("multiplier", [1, 3])
def test_initial_weights_fill_the_bounds_of_pytorch(multiplier):
    """W_Q, W_K, W_V of a block as one matrix of 3 width by width within Glorot's bound, the others 1/sqrt(fan-in)."""
    spec = EncoderSpec(heads=4, rank=5, width=20, hidden=50, multiplier=multiplier)
    model = spec.init(0, length=4, dim=30, outputs=40)
    (layer,) = model.layers
    glorot = (6 / (20 + 3 * 20)) ** 0.5
    bounds = [(getattr(layer.heads, name), glorot) for name in ("query", "key", "value")]
    bounds += [(layer.heads.output, 20**-0.5)]
    affines = [(layer.feed_in, 20), (layer.feed_out, 50), (model.embed, 30), (model.read, 20)]
    bounds += [(array, fan_in**-0.5) for affine, fan_in in affines for array in (affine.weight, affine.bias)]
    for array, bound in bounds:
        # The largest of k uniform numbers is within 10 / k of the bound but for a chance of 5e-5.
        furthest = float(np.max(np.abs(array))) / bound
        assert 1 - 10 / array.size <= furthest <= 1 + 1e-6, (array.shape, furthest)
        assert abs(float(np.mean(array))) / bound < 4 / (3 * array.size) ** 0.5
    for name in ("query_bias", "value_bias", "output_bias"):
        assert not np.any(getattr(layer.heads, name))


@pytest.mark.parametrize("norm", NORMS)
def test_a_last_norm_has_a_scale_only_where_norms_do(norm):
    with_last, without = (a_spec(norm=norm, final_norm=last).init(0, **SIZES) for last in (True, False))
    assert len(jax.tree.leaves(with_last)) - len(jax.tree.leaves(without)) == (norm == "unit")
    assert (with_last.final_scale is not None) == (norm == "unit")


@pytest.mark.parametrize(("dim", "outputs"), [(WIDTH, WIDTH), (3, WIDTH), (WIDTH, 2)])
def test_always_maps_has_both_maps_even_where_sizes_agree(dim, outputs):
    model = a_spec(always_maps=True).init(0, length=4, dim=dim, outputs=outputs)
    assert model.embed.weight.shape == (WIDTH, dim)
    assert model.read.weight.shape == (outputs, WIDTH)
    plain = a_spec().init(0, length=4, dim=dim, outputs=outputs)
    assert (plain.embed is None, plain.read is None) == (dim == WIDTH, outputs == WIDTH)


def test_tokens_of_zeros_that_are_masked_are_not_standardised():
    """They would no longer be zeros, and the stored model would mask what the trained one read."""
    spec = a_spec(always_maps=True, masks_padding=True)
    assert not spec.standardises
    assert dataclasses.replace(spec, padding="nan").standardises
    assert dataclasses.replace(spec, masks_padding=False).standardises
