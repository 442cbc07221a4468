"""The small layer computes what the full-shape low-rank layer computes."""

import numpy as np
import pytest

from headcount.errors import InputError
from headcount.pretrained.layers.weights import Rotary
from headcount.pretrained.rank.shrink import kept_pairs, shrink_layer
from headcount.pretrained.sharing.moments import LayerMoments
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
    layer = shrink_layer(LayerMoments(weights, statistics), 3)
    assert (layer.small.head_dim, layer.small.value_dim, layer.small.key_heads) == (3, 3, 2)
    for each in (layer, layer.refitted(statistics, weights.output_bias)):
        expected = attend(each.masked, x[:LENGTH])
        np.testing.assert_allclose(attend(each.small, x[:LENGTH]), expected, atol=1e-10)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_with_rotary_positions_too_at_the_frequencies_that_stay(interleaved, known):
    rotary, frequencies = Rotary(dims=8, interleaved=interleaved), FREQUENCIES if known else None
    draws = [drawn(seed, head_dim=8, width=12, biased=True) for seed in range(2)]
    layers = [LayerMoments(weights, statistics, rotary, frequencies=frequencies) for weights, _, _, statistics in draws]
    pairs = kept_pairs(layers, 4)
    assert len(pairs) == 2
    for layer, (_, x, _, _) in zip(layers, draws, strict=True):
        after = shrink_layer(layer, 4, pairs)
        turn, turn_small = (turned_by(speeds, interleaved) for speeds in (FREQUENCIES, FREQUENCIES[list(pairs)]))
        expected = attend(after.masked, x[:LENGTH], turn_query=turn, turn_key=turn)
        actual = attend(after.small, x[:LENGTH], turn_query=turn_small, turn_key=turn_small)
        np.testing.assert_allclose(actual, expected, atol=1e-10)


@pytest.mark.parametrize(("head_dim", "rotary"), [(3, Rotary(dims=8)), (4, Rotary(dims=4))])
def test_pairs_that_cannot_be_stored_are_refused(head_dim, rotary):
    weights, _, _, statistics = drawn(head_dim=8)
    with pytest.raises(InputError, match=str(head_dim)):
        kept_pairs([LayerMoments(weights, statistics, rotary)], head_dim)


@pytest.mark.parametrize("kind", ["Llama", "Mistral", "Qwen2"])
def test_stock_classes_rotate_by_the_frequencies_that_stay(kind):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from headcount.pretrained.storing.hosts import rope_of_pairs

    def model(**fields):
        config = getattr(transformers, f"{kind}Config")(
            vocab_size=8,
            hidden_size=16,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=32,
            **fields,
        )
        return getattr(transformers, f"{kind}Model")(config)

    original, pairs = model(head_dim=16), [0, 2, 3, 7]
    small = model(head_dim=8, rope_parameters=rope_of_pairs(original, pairs, 8))
    frequencies = original.rotary_emb.inv_freq[pairs].numpy()
    for length in (4, 40):
        cos, sin = small.rotary_emb(torch.zeros(1, length, 16), torch.arange(length)[None])
        angles = np.arange(length)[:, None] * frequencies
        np.testing.assert_allclose(cos[0, :, :4].numpy(), np.cos(angles), atol=1e-5)
        np.testing.assert_allclose(sin[0, :, 4:].numpy(), np.sin(angles), atol=1e-5)
