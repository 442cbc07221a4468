"""The small layer computes what the full-shape low-rank layer computes."""

import numpy as np
import pytest

from headcount._errors import InputError
from headcount.pretrained.layers.rotary import Rotary
from headcount.pretrained.rank.shrink import full_shape, kept_pairs, rotary_config, shrink
from tests.helpers.textbook_attention import attend, rotated
from tests.pretrained.drawn_layers import drawn

LENGTH = 5
FREQUENCIES = np.array([1.0, 0.4, 0.1, 0.02])


def turned_by(frequencies, interleaved):
    angles = np.arange(LENGTH)[:, None] * frequencies
    return lambda rows: rotated(rows, np.cos(angles), np.sin(angles), interleaved=interleaved)


@pytest.mark.parametrize("biased", [False, True])
def test_without_rotary_positions_the_function_is_that_of_the_low_rank_layer(biased):
    weights, x, _, statistics = drawn(head_dim=6, biased=biased)
    (small,), pairs = shrink([weights], [statistics], 3)
    assert pairs is None
    assert (small.head_dim, small.value_dim, small.key_heads) == (3, 3, 2)
    expected = attend(full_shape(weights, statistics, 3), x[:LENGTH])
    np.testing.assert_allclose(attend(small, x[:LENGTH]), expected, atol=1e-10)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_with_rotary_positions_too_at_the_frequencies_that_stay(interleaved, known):
    layers = [drawn(seed, head_dim=8, width=12, biased=True) for seed in range(2)]
    rotary, frequencies = Rotary(dims=8, interleaved=interleaved), FREQUENCIES if known else None
    weights, statistics = [layer[0] for layer in layers], [layer[3] for layer in layers]
    small, pairs = shrink(weights, statistics, 4, rotary, frequencies=frequencies)
    assert pairs == kept_pairs(weights, statistics, 4, rotary, frequencies)
    assert len(pairs) == 2
    for (before, x, _, moments), after in zip(layers, small, strict=True):
        turn, turn_small = (turned_by(speeds, interleaved) for speeds in (FREQUENCIES, FREQUENCIES[list(pairs)]))
        full = full_shape(before, moments, 4, rotary, pairs, frequencies)
        expected = attend(full, x[:LENGTH], turn_query=turn, turn_key=turn)
        actual = attend(after, x[:LENGTH], turn_query=turn_small, turn_key=turn_small)
        np.testing.assert_allclose(actual, expected, atol=1e-10)


def test_the_stored_factors_give_the_frequencies():
    config = rotary_config(FREQUENCIES.tolist(), theta=100.0, max_positions=64)
    default = 100.0 ** (-np.arange(0, 8, 2) / 8)
    np.testing.assert_allclose(default / config["short_factor"], FREQUENCIES)
    assert config["short_factor"] == config["long_factor"]


@pytest.mark.parametrize(
    ("head_dim", "rotary", "normed", "word"),
    [
        (8, None, False, "8"),
        (0, None, False, "0"),
        (3, Rotary(dims=8), False, "3"),
        (4, Rotary(dims=4), False, "4"),
        (4, None, True, "norm"),
    ],
)
def test_what_cannot_be_stored_is_refused(head_dim, rotary, normed, word):
    weights, _, _, statistics = drawn(head_dim=8)
    with pytest.raises(InputError, match=word):
        shrink([weights], [statistics], head_dim, rotary, normed)


@pytest.mark.parametrize("kind", ["Llama", "Mistral", "Qwen2"])
def test_stock_classes_rotate_by_any_frequencies(kind):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=8,
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        head_dim=8,
        max_position_embeddings=32,
        rope_parameters=rotary_config(FREQUENCIES.tolist(), theta=100.0, max_positions=32),
    )
    model = getattr(transformers, f"{kind}Model")(config)
    for length in (4, 40):
        cos, sin = model.rotary_emb(torch.zeros(1, length, 16), torch.arange(length)[None])
        angles = np.arange(length)[:, None] * FREQUENCIES
        np.testing.assert_allclose(cos[0, :, :4].numpy(), np.cos(angles), atol=1e-5)
        np.testing.assert_allclose(sin[0, :, 4:].numpy(), np.sin(angles), atol=1e-5)
