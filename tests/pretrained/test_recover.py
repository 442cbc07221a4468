"""Recovery comes nearer to the original, keeps shapes and zeroed heads, and leaves everything else as it was."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from headcount.errors import InputError
from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.storing.recover import recover

from ..helpers.tiny_models import LENGTH, VOCABULARY, tiny_model


def token_batches(count: int) -> list[dict]:
    generator = torch.Generator().manual_seed(0)
    return [{"input_ids": torch.randint(3, VOCABULARY, (4, LENGTH // 2), generator=generator)} for _ in range(count)]


def changed_pair(family: str):
    """A model and a copy in which head 1 of every layer is zeroed."""
    original, changed = tiny_model(family), tiny_model(family)
    for layer in attention_layers(changed):
        layer.write_weights(changed, layer.read_weights(changed).without([1]))
    return original, changed


def states(model) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy().copy() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("what", ["output", "low-rank"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "bert"])
def test_comes_nearer_and_keeps_zeroed_heads(family, what):
    original, changed = changed_pair(family)
    before, untouched = states(changed), states(original)
    recovery = recover(changed, original, token_batches(6), steps=40, what=what)
    assert recovery.chosen > 0
    assert min(recovery.distances) < recovery.distances[0]
    for layer in attention_layers(changed):
        assert not layer.read_weights(changed).output[:, 1].any()
    after = states(changed)
    assert after.keys() == before.keys()
    projections = {id(tensor) for layer in attention_layers(changed) for tensor in layer.stored_parameters(changed)}
    trainable = {name for name, tensor in changed.named_parameters() if id(tensor) in projections}
    assert all(np.array_equal(after[name], before[name]) for name in after if name not in trainable)
    assert all(np.array_equal(array, untouched[name]) for name, array in states(original).items())
    assert not any(parameter.requires_grad for parameter in changed.parameters())


def test_same_seed_same_weights():
    results = []
    for _ in range(2):
        original, changed = changed_pair("llama")
        recover(changed, original, token_batches(4), steps=5, seed=3)
        results.append(states(changed))
    assert all(np.array_equal(results[0][name], results[1][name]) for name in results[0])


def test_an_unchanged_model_stays_as_it_is():
    original, same = tiny_model("llama"), tiny_model("llama")
    before = states(same)
    recovery = recover(same, original, token_batches(3), steps=3)
    assert recovery.chosen == 0
    assert all(np.array_equal(array, before[name]) for name, array in states(same).items())


def test_one_batch_is_too_few():
    original, changed = changed_pair("llama")
    with pytest.raises(InputError, match="got 1"):
        recover(changed, original, token_batches(1), steps=1)
