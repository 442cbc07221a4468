"""Laws of evaluations: a change is measured as a full run with swapped weights would, and nothing is left behind."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from headcount.pretrained.layers.find import rewritten
from headcount.pretrained.loading.load import fingerprint_of
from tests.helpers.tiny_models import DECODERS, ENCODERS, VISION
from tests.pretrained.judging import (
    changed_heads,
    evaluation_of,
    naive_answers,
    naive_embeddings,
    naive_next_token,
)

CHANGED = ((0,), (2,), (1, 2), (0, 1, 2))


def changes_of(evaluation, layers, seed=0):
    return {layer: changed_heads(evaluation.original[layer], seed + layer) for layer in layers}


@pytest.mark.parametrize("family", [*DECODERS, *ENCODERS, *VISION])
def test_changes_are_measured_as_a_full_run_measures_them(family):
    evaluation = evaluation_of(family)
    model, batches, loss = evaluation.model, evaluation.examples.held_out, evaluation.examples.loss

    def naive(changes):
        with rewritten(model, changes), torch.no_grad():
            if family in DECODERS:
                return naive_next_token(model, batches)
            if family in ENCODERS:
                return (1 - (naive_embeddings(model, batches) * original).sum(1)).numpy()
            answers = naive_answers(model, batches)
            return (original.exp() * (original - answers)).sum(1).numpy()

    with torch.no_grad():
        answer = naive_embeddings if family in ENCODERS else naive_answers
        original = None if family in DECODERS else answer(model, batches)
    np.testing.assert_allclose(evaluation.losses(), naive({}), atol=2e-6)
    for layers in CHANGED:
        changes = changes_of(evaluation, layers)
        np.testing.assert_allclose(evaluation.losses(changes), naive(changes), atol=1e-5, rtol=1e-5)
    settled = changes_of(evaluation, (1,), seed=7)
    evaluation.settle(settled)
    np.testing.assert_allclose(evaluation.losses(), naive(settled), atol=1e-5, rtol=1e-5)
    later = changes_of(evaluation, (2,))
    np.testing.assert_allclose(evaluation.losses(later), naive({**settled, **later}), atol=1e-5, rtol=1e-5)
    evaluation.settle({})
    np.testing.assert_allclose(evaluation.losses(), naive({}), atol=2e-6)
    assert loss.scale_of(evaluation.losses()) > 0


def test_unchanged_blocks_are_not_run_again():
    evaluation = evaluation_of("llama", layers=4)
    evaluation.losses()
    ran = []
    hooks = [
        evaluation.model.get_submodule(f"{layer.name}.q_proj").register_forward_hook(
            lambda *_, index=layer.index: ran.append(index)
        )
        for layer in evaluation.layers
    ]
    evaluation.losses(changes_of(evaluation, (2,)))
    assert set(ran) == {2, 3}
    evaluation.settle(changes_of(evaluation, (1,)))
    ran.clear()
    evaluation.losses(changes_of(evaluation, (3,)))
    assert set(ran) == {1, 2, 3}
    ran.clear()
    evaluation.losses(changes_of(evaluation, (3,)))
    assert set(ran) == {3}
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize("cache_bytes", [0, 6e3, 2e4])
def test_less_memory_gives_the_same_losses(cache_bytes):
    plain, bounded = evaluation_of("llama", layers=4), evaluation_of("llama", layers=4, cache_bytes=cache_bytes)
    for layers in ((), (3,), (2, 3), (1,)):
        changes = changes_of(plain, layers)
        np.testing.assert_allclose(bounded.losses(changes), plain.losses(changes), atol=1e-6)
        assert sum(outputs.bytes for outputs in bounded._outputs.values()) <= cache_bytes


@pytest.mark.parametrize("family", ["llama", "bert", "vit"])
def test_the_original_is_untouched(family):
    evaluation = evaluation_of(family)
    before = fingerprint_of(evaluation.model)
    forwards = [vars(module).get("forward") for module in evaluation.model.modules()]
    evaluation.losses(changes_of(evaluation, (1,)))
    evaluation.settle(changes_of(evaluation, (0,)))
    evaluation.statistics()
    evaluation.layer_statistics(2)

    def fail(module, given):
        raise MemoryError

    hook = evaluation.layers[2].output_module(evaluation.model).register_forward_pre_hook(fail)
    with pytest.raises(MemoryError):
        evaluation.losses(changes_of(evaluation, (1, 2)))
    evaluation.settle(changes_of(evaluation, (1,)))
    with pytest.raises(MemoryError):
        evaluation.statistics()
    with pytest.raises(MemoryError):
        evaluation.layer_statistics(2)
    hook.remove()
    assert fingerprint_of(evaluation.model) == before
    assert [vars(module).get("forward") for module in evaluation.model.modules()] == forwards
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in evaluation.model.modules())


def test_heads_read_alike_as_their_attention_on_real_tokens_says():
    evaluation = evaluation_of("bert")
    reading = evaluation.same_reading(3)
    model = evaluation.model
    rows = [
        row[counted][None]
        for batch in evaluation.examples.calibration
        for row, counted in zip(batch.inputs["input_ids"], batch.counted, strict=True)
    ][:3]
    model.set_attn_implementation("eager")
    attentions = [model(input_ids=row, output_attentions=True).attentions for row in rows]
    for layer, alike in enumerate(reading):
        distances = [(each[layer][0, 0] - each[layer][0, 2]).abs().sum(-1) / 2 for each in attentions]
        assert alike[0, 2] == pytest.approx(1 - torch.cat(distances).mean().item(), abs=1e-5)
        np.testing.assert_allclose(np.diagonal(alike), 1)
