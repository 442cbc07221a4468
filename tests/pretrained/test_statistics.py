"""Laws of layer statistics: equal to what naively stacked tokens give, and to finite differences."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from headcount.pretrained.layers.find import rewritten
from tests.pretrained.judging import changed_heads, evaluation_of

FAMILIES = ("llama", "gpt2", "bert", "vit")


def stacked_tokens(evaluation, layer, changes):
    """Head outputs, inputs and the layer's outputs of all real calibration tokens, each example run alone."""
    model = evaluation.model
    taken = {"features": [], "inputs": []}
    hooks = [
        layer.output_module(model).register_forward_pre_hook(lambda _, given: taken["features"].append(given[0][0])),
        layer.input_module(model).register_forward_pre_hook(lambda _, given: taken["inputs"].append(given[0][0])),
    ]
    with rewritten(model, changes), torch.no_grad():
        for batch in evaluation.examples.calibration:
            for row in range(batch.examples):
                if batch.counted is None:
                    model(pixel_values=batch.inputs["pixel_values"][row : row + 1])
                else:
                    model(input_ids=batch.inputs["input_ids"][row][batch.counted[row]][None])
    for hook in hooks:
        hook.remove()
    return {name: torch.cat(values).double().numpy() for name, values in taken.items()}


def with_one(values):
    return np.concatenate([values, np.ones((len(values), 1))], axis=1)


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_moments_are_those_of_stacked_tokens(family, settled):
    evaluation = evaluation_of(family)
    changes = {0: changed_heads(evaluation.original[0])} if settled else {}
    evaluation.settle(changes)
    everywhere = evaluation.statistics()
    for layer in evaluation.layers:
        now, before = (stacked_tokens(evaluation, layer, held) for held in (changes, {}))
        output = evaluation.original[layer.index].output
        target = before["features"] @ output.reshape(len(output), -1).T
        features, inputs = with_one(now["features"]), with_one(now["inputs"])
        for measured in (everywhere[layer.index], evaluation.layer_statistics(layer.index)):
            assert measured.tokens == len(features)
            count = measured.tokens
            np.testing.assert_allclose(measured.moments, features.T @ features / count, atol=1e-5, rtol=1e-4)
            np.testing.assert_allclose(measured.inputs, inputs.T @ inputs / count, atol=1e-5, rtol=1e-4)
            np.testing.assert_allclose(measured.cross, target.T @ features / count, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_finite_differences_of_a_heads_factor(family):
    evaluation = evaluation_of(family)
    evaluation.model.double()
    statistics = evaluation.statistics()
    loss, batches, step = evaluation.examples.loss, evaluation.examples.calibration, 1e-3

    def probes(index, head, factor):
        weights = evaluation.original[index]
        output = weights.output.copy()
        output[:, head] *= factor
        with rewritten(evaluation.model, {index: weights.with_output(output)}), torch.no_grad():
            return np.concatenate([loss.probes(evaluation.model, batch).numpy() for batch in batches])

    for index in (0, 2):
        for head in (0, 3):
            slope = (probes(index, head, 1 + step) - probes(index, head, 1 - step)) / (2 * step)
            np.testing.assert_allclose(statistics[index].gradients[:, head], slope, atol=5e-4, rtol=2e-3)


def test_fisher_is_the_mean_of_outer_products():
    evaluation = evaluation_of("llama")
    statistics, layer, model = evaluation.statistics(), evaluation.layers[1], evaluation.model
    total, tokens = 0.0, 0
    for batch in evaluation.examples.calibration:
        for row in batch.inputs["input_ids"]:
            held = []

            def take(module, given, output, held=held):
                held.append(output.detach().requires_grad_())
                return held[0]

            hook = layer.output_module(model).register_forward_hook(take)
            model(input_ids=row[None], labels=row[None]).loss.backward()
            hook.remove()
            slopes = held[0].grad[0].double().numpy()
            total, tokens = total + slopes.T @ slopes, tokens + len(slopes)
    fisher = statistics[1].fisher
    np.testing.assert_allclose(fisher, total / tokens, atol=1e-6 * np.abs(total).max(), rtol=1e-4)
    np.testing.assert_allclose(fisher, fisher.T, atol=1e-12)
    assert np.linalg.eigvalsh(fisher).min() > -1e-12


def test_a_probe_predicts_its_loss_to_second_order():
    """Half the squared change of a probe, over many draws, is the distance that it stands for."""
    evaluation = evaluation_of("bert", limit=60)
    loss, model, batches = evaluation.examples.loss, evaluation.model, evaluation.examples.held_out
    weights = evaluation.original[1]
    small = weights.with_output(weights.output + 1e-2 * np.random.default_rng(0).normal(size=weights.output.shape))
    predicted, measured = [], evaluation.losses({1: small})
    for batch in batches:
        with torch.no_grad():
            before = loss.embed(model, batch)
            with rewritten(model, {1: small}):
                change = loss.embed(model, batch) - before
        directions = torch.from_numpy(np.random.default_rng(1).normal(size=(4000, change.shape[1]))).float()
        predicted.append(0.5 * ((change @ directions.T) ** 2).mean(1).numpy())
    np.testing.assert_allclose(np.concatenate(predicted), measured, rtol=0.2)
