"""A layer's weights mean what they say: for every architecture the textbook computes what the module does."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from headcount.pretrained.layers.find import attention_layers, rewritten
from headcount.pretrained.layers.weights import HeadWeights
from tests.helpers.refusals import refused
from tests.helpers.textbook_attention import attend, rotated
from tests.helpers.tiny_models import DECODERS, FAMILIES, tiny_input, tiny_model

UNLISTED = ("cohere", "glm", "opt", "phi")
"""Decoders that are not in the table: recognised by their modules, their rotation by their own function."""
CASES = [(family, 2) for family in (*FAMILIES, *UNLISTED)] + [("llama", 4)]


def captured(model, layer, inputs):
    """One run: the attention's input and output, the heads' outputs, and what the core was given by name."""
    seen = {}
    handles = [
        layer.input_module(model).register_forward_pre_hook(lambda _, given: seen.update(x=given[0])),
        layer.output_module(model).register_forward_hook(lambda _, given, out: seen.update(heads=given[0], y=out)),
        model.get_submodule(layer.name).register_forward_pre_hook(
            lambda _, given, named: seen.update(named=named), with_kwargs=True
        ),
    ]
    out = model(**inputs)[0]
    for handle in handles:
        handle.remove()
    return seen, out


@pytest.mark.parametrize(("family", "key_heads"), CASES)
@pytest.mark.parametrize("index", [0, 1])
def test_the_textbook_layer_computes_what_the_module_does(family, key_heads, index):
    model = tiny_model(family, key_heads=key_heads)
    model.set_attn_implementation("eager")  # the only one that caps the scores of Gemma 2
    layer = attention_layers(model)[index]
    seen, _ = captured(model, layer, tiny_input(family, batch=1))
    core = model.get_submodule(layer.name)
    x = seen["x"][0].double().numpy()
    turns = {name: _turn(core, layer, name, seen["named"], family) for name in ("query", "key")}
    y = attend(
        layer.read_weights(model),
        x,
        scale=getattr(core, "scaling", None),
        visible=_visible(core, len(x), causal=family in (*DECODERS, *UNLISTED)),
        turn_query=turns["query"],
        turn_key=turns["key"],
        cap=getattr(core, "attn_logit_softcapping", None),
    )
    np.testing.assert_allclose(seen["y"][0], y, atol=1e-5, rtol=1e-5)
    assert seen["heads"].shape[-1] == layer.heads * layer.head_dim
    assert x.shape[-1] == layer.width
    assert layer.name.startswith(f"{layer.block}.")
    assert layer.block.endswith(f".{index}")


def _visible(core, length, *, causal):
    """Which keys a query sees: those before it where the model is causal, within the window where the layer has one."""
    behind = np.arange(length)[:, None] - np.arange(length)[None]
    near = np.abs(behind) < (getattr(core, "sliding_window", None) or length)
    return near & (behind >= 0) if causal else near


def _turn(core, layer, name, named, family):
    norm = getattr(core, f"{name[0]}_norm", None)
    assert layer.normed == (norm is not None)

    def turn(x):
        if norm is not None:
            gain = norm.weight.double().numpy() + (1.0 if "gemma" in family else 0.0)
            eps = getattr(norm, "variance_epsilon", None) or norm.eps
            x = gain * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)
        if layer.rotary is None:
            return x
        pairs = slice(0, layer.rotary.dims, 2) if family == "cohere" else slice(layer.rotary.dims // 2)
        cos, sin = (part[0, :, pairs].double().numpy() for part in named["position_embeddings"])
        return rotated(x, cos, sin, interleaved=layer.rotary.interleaved)

    return turn


@pytest.mark.parametrize("family", FAMILIES)
def test_writing_what_was_read_changes_no_bit(family):
    model = tiny_model(family)
    before = copy.deepcopy(model.state_dict())
    for layer in attention_layers(model):
        layer.write_weights(model, layer.read_weights(model))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_half_precision_is_read_exactly():
    model = tiny_model("llama").to(torch.bfloat16)
    before = copy.deepcopy(model.state_dict())
    layer = attention_layers(model)[0]
    layer.write_weights(model, layer.read_weights(model))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_removed_heads_are_heads_whose_output_is_zero(family):
    model, inputs = tiny_model(family), tiny_input(family)
    layer = attention_layers(model)[1]
    before = model(**inputs)[0]

    def mask(_, given):
        heads = given[0].unflatten(-1, (layer.heads, layer.head_dim)).clone()
        heads[..., [0, 3], :] = 0.0
        return heads.flatten(-2)

    handle = layer.output_module(model).register_forward_pre_hook(mask)
    masked = model(**inputs)[0]
    handle.remove()
    with rewritten(model, {1: layer.read_weights(model).without([0, 3])}):
        removed = model(**inputs)[0]
    torch.testing.assert_close(removed, masked, atol=1e-6, rtol=1e-6)
    assert (removed - before).abs().max() > 1e-3
    assert torch.equal(model(**inputs)[0], before)


def test_the_model_is_put_back_after_an_error():
    model = tiny_model("bert")
    before = copy.deepcopy(model.state_dict())
    weights = [layer.read_weights(model) for layer in attention_layers(model)]
    with pytest.raises(ZeroDivisionError), rewritten(model, {0: weights[1], 1: weights[0].without([1])}):
        1 / (1 - np.array_equal(attention_layers(model)[0].read_weights(model).query, weights[1].query))
    # A change that cannot be written, behind one that can.
    with refused("(24, 32)"), rewritten(model, {0: weights[1], 1: weights[1].kept([0, 1, 2])}):
        pass
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_bias_needs_a_place():
    model = tiny_model("llama")
    layer = attention_layers(model)[0]
    weights = layer.read_weights(model)
    layer.write_weights(model, weights.with_output(weights.output, np.zeros(layer.width)))
    with refused(layer.name):
        layer.write_weights(model, weights.with_output(weights.output, np.ones(layer.width)))


def test_a_bias_that_is_none_is_written_as_zero():
    model = tiny_model("gpt2")
    layer = attention_layers(model)[0]
    weights = layer.read_weights(model)
    layer.write_weights(model, HeadWeights(weights.query, weights.key, weights.value, weights.output))
    assert not model.transformer.h[0].attn.c_attn.bias.any()
    assert not layer.read_weights(model).output_bias.any()


def test_a_model_without_weights_has_layers_but_nothing_to_read():
    model = tiny_model("llama").to("meta")
    layer = attention_layers(model)[0]
    with refused("meta"):
        layer.read_weights(model)


class Plain(torch.nn.Module):
    """Attention as many write it, outside transformers."""

    def __init__(self, heads=4, key_heads=2, head_dim=3, width=8, output="out_proj"):
        super().__init__()
        self.num_heads = heads
        self.q_proj = torch.nn.Linear(width, heads * head_dim)
        self.k_proj = torch.nn.Linear(width, key_heads * head_dim)
        self.v_proj = torch.nn.Linear(width, key_heads * head_dim)
        self.add_module(output, torch.nn.Linear(heads * head_dim, width))


@pytest.mark.parametrize("output", ["out_proj", "o_proj"])
def test_a_plain_module_is_read(output):
    model = torch.nn.Sequential(Plain(output=output), torch.nn.ReLU(), Plain(output=output))
    layers = attention_layers(model)
    assert [(layer.name, layer.heads, layer.key_heads, layer.head_dim) for layer in layers] == [
        ("0", 4, 2, 3),
        ("2", 4, 2, 3),
    ]
    assert layers[0].rotary is None


def test_a_model_inside_a_module_is_read():
    inner = tiny_model("bert")
    outer = torch.nn.ModuleDict({"encoder": inner, "head": torch.nn.Linear(32, 2)})
    layers = attention_layers(outer)
    assert [layer.block for layer in layers] == ["encoder.encoder.layer.0", "encoder.encoder.layer.1"]
    np.testing.assert_array_equal(
        layers[1].read_weights(outer).query, attention_layers(inner)[1].read_weights(inner).query
    )
