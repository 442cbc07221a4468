"""Laws of models outside transformers: for every layout the layer read is the layer that runs, and a change leaves no trace."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import headcount as hc
from headcount.pretrained.layers.find import attention_layers, rewritten
from headcount.pretrained.loading.load import fingerprint_of, of_module
from tests.helpers.own_layouts import TORCH, own_loss, own_model, own_tokens
from tests.helpers.refusals import refused
from tests.helpers.textbook_attention import attend

LAYOUTS = tuple(TORCH)
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_textbook_layer_computes_what_the_module_does(layout):
    original = own_model(layout).double()
    model = of_module(original).model.double()
    tokens = own_tokens(batch=2)
    for layer in attention_layers(model):
        seen = {}
        handles = [
            layer.input_module(model).register_forward_pre_hook(lambda _, given, s=seen: s.update(x=given[0])),
            layer.output_module(model).register_forward_hook(
                lambda _, given, out, s=seen: s.update(z=given[0], y=out)
            ),
        ]
        model(tokens)
        for handle in handles:
            handle.remove()
        length = tokens.shape[1]
        for row in range(2):
            real = np.ones(length, bool) if "Attention" in layout or "causal" in layout else (tokens[row] > 0).numpy()
            seen_by = np.broadcast_to(real, (length, length))
            visible = np.tril(np.ones((length, length), bool)) if "causal" in layout else seen_by
            y = attend(layer.read_weights(original), seen["x"][row].numpy(), visible=visible)
            np.testing.assert_allclose(seen["y"][row].numpy(), y, atol=1e-10)
        assert seen["z"].shape == (*tokens.shape, layer.heads * layer.head_dim)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_removed_heads_are_heads_whose_output_is_zero(layout):
    original = own_model(layout).double()
    model, tokens = of_module(original).model.double(), own_tokens()
    before, layer = model(tokens), attention_layers(model)[1]
    torch.testing.assert_close(before, original(tokens), atol=1e-6, rtol=1e-6)

    def mask(_, given):
        heads = given[0].unflatten(-1, (layer.heads, layer.head_dim)).clone()
        heads[..., [1], :] = 0.0
        return heads.flatten(-2)

    with layer.output_module(model).register_forward_pre_hook(mask):
        masked = model(tokens)
    for each in (model, original):
        with rewritten(each, {1: layer.read_weights(each).without([1])}):
            torch.testing.assert_close(each(tokens), masked, atol=1e-6, rtol=1e-6)
    assert (masked - before).abs().max() > 1e-3
    assert torch.equal(model(tokens), before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_model_is_inspected_and_untouched(layout):
    model = own_model(layout)
    before, forwards = copy.deepcopy(model.state_dict()), [type(module) for module in model.modules()]
    batches = [own_tokens(seed=seed) for seed in range(6)]
    inspection = hc.inspect(model, (batches, own_loss), effort="quick")
    assert inspection.importance.shape == (2, attention_layers(model)[0].heads)
    assert np.abs(inspection.importance).max() > 0
    smaller = inspection.plan(keep=1).apply(model)
    assert not torch.equal(smaller(batches[0]), model(batches[0]))
    assert [type(module) for module in model.modules()] == forwards
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    loaded = of_module(model)
    assert loaded.fingerprint == fingerprint_of(model)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"kdim": 4}, "kdim"), ({"add_bias_kv": True}, "add_bias_kv"), ({"add_zero_attn": True}, "add_zero_attn")],
)
def test_attention_of_torch_that_reads_something_else_is_refused(options, words):
    with refused(words):
        attention_layers(torch.nn.Sequential(torch.nn.MultiheadAttention(8, 2, **options)))


def test_cross_attention_of_torch_is_refused():
    with refused("nn.TransformerDecoderLayer"):
        attention_layers(torch.nn.TransformerDecoderLayer(8, 2))
    model = of_module(torch.nn.ModuleList([torch.nn.MultiheadAttention(8, 2)])).model
    x = torch.ones(3, 2, 8)
    with refused("cross-attention"):
        model[0](x, 2 * x, x)
