"""The algebra of head weights keeps the function that it says it keeps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.keys import named_generator
from headcount.pretrained.layers.weights import HeadWeights
from tests.helpers.textbook_attention import attend

LENGTH = 4


def random_weights(key_heads=2, share=2, head_dim=3, value_dim=2, width=5, biased=True, seed=0):
    generator = named_generator(seed, "head weights")
    heads, shapes = key_heads * share, {}
    shapes["query"], shapes["key"] = (heads, head_dim, width), (key_heads, head_dim, width)
    shapes["value"], shapes["output"] = (key_heads, value_dim, width), (width, heads, value_dim)
    if biased:
        shapes |= {f"{name}_bias": shapes[name][:2] for name in ("query", "key", "value")}
        shapes["output_bias"] = (width,)
    return HeadWeights(**{name: generator.normal(size=shape) for name, shape in shapes.items()})


def inputs(weights, seed=0):
    return named_generator(seed, "inputs").normal(size=(LENGTH, weights.width))


shapes = st.fixed_dictionaries(
    {
        "key_heads": st.integers(1, 3),
        "share": st.integers(1, 3),
        "head_dim": st.integers(1, 4),
        "value_dim": st.integers(1, 4),
        "width": st.integers(1, 6),
        "biased": st.booleans(),
        "seed": st.integers(0, 2**31),
    }
)


def equal(one, other, x):
    np.testing.assert_allclose(attend(one, x), attend(other, x), atol=1e-10, rtol=1e-10)


@given(shapes)
def test_a_key_head_per_head_computes_the_same(shape):
    weights = random_weights(**shape)
    wide = weights.repeated(weights.heads)
    assert wide.key_heads == wide.heads == weights.heads
    equal(weights, wide, inputs(weights))


@given(shapes, st.data())
def test_kept_heads_compute_what_the_masked_layer_does(shape, data):
    weights = random_weights(**shape)
    share = weights.heads // weights.key_heads
    groups = data.draw(st.lists(st.integers(0, weights.key_heads - 1), min_size=1, unique=True))
    left = data.draw(st.integers(1, share))
    order = data.draw(st.permutations(range(share)))
    heads = [group * share + place for group in groups for place in order[:left]]
    small = weights.kept(heads)
    removed = set(range(weights.heads)) - set(heads)
    assert (small.heads, small.key_heads) == (len(heads), len(groups))
    equal(small, weights.without(removed), inputs(weights))


@given(shapes, st.data())
def test_a_masked_head_adds_nothing_and_the_rest_stays(shape, data):
    """The output is the sum over heads, so what removing takes away is the removed heads' own sum."""
    weights = random_weights(**shape)
    removed = data.draw(st.sets(st.integers(0, weights.heads - 1)))
    x = inputs(weights)
    bias = 0.0 if weights.output_bias is None else weights.output_bias
    rest, gone = (attend(weights.without(heads), x) - bias for heads in (removed, set(range(weights.heads)) - removed))
    np.testing.assert_allclose(rest + gone + bias, attend(weights, x), atol=1e-10)


def test_parameters_are_the_numbers_stored():
    weights = random_weights(key_heads=2, share=2, head_dim=3, value_dim=2, width=5)
    assert weights.parameters == 12 * 5 + 6 * 5 + 4 * 5 + 5 * 8 + 12 + 6 + 4 + 5


def test_another_output_keeps_the_bias_unless_one_is_given():
    weights = random_weights()
    assert weights.with_output(weights.output).output_bias is weights.output_bias
    assert not weights.with_output(weights.output, np.zeros(5)).output_bias.any()
