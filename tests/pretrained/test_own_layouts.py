"""Laws of models outside transformers: the layer read is the layer that runs, and a change leaves no trace."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import headcount as hc
from headcount.pretrained.layers.find import attention_layers, rewritten
from headcount.pretrained.loading.load import fingerprint_of, of_module
from tests.helpers.own_layouts import OWN, TORCH, angles, own_loss, own_model, own_tokens
from tests.helpers.refusals import refused
from tests.helpers.textbook_attention import attend, rotated

LAYOUTS = (*TORCH, *OWN)
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
            layer.output_module(model).register_forward_hook(lambda _, given, out, s=seen: s.update(z=given[0], y=out)),
        ]
        model(tokens)
        for handle in handles:
            handle.remove()
        length = tokens.shape[1]
        for row in range(2):
            real = (tokens[row] > 0).numpy() if "Encoder" in layout else np.ones(length, bool)
            options = OWN.get(layout, ("", {"causal": "causal" in layout}))[1]
            visible = np.broadcast_to(real, (length, length))
            visible = np.tril(np.ones((length, length), bool)) if options.get("causal") else visible
            turn = _turn(layer, options)
            y = attend(
                layer.read_weights(original),
                seen["x"][row].numpy(),
                visible=visible,
                turn_query=turn,
                turn_key=turn,
                scale=options.get("scale"),
            )
            np.testing.assert_allclose(seen["y"][row].numpy(), y, atol=1e-6 if options.get("low") else 1e-10)
        assert seen["z"].shape == (*tokens.shape, layer.heads * layer.head_dim)


def _turn(layer, options):
    """What the module does to queries and keys, by what was read of it."""
    assert layer.normed == options.get("normed", False)
    assert (layer.rotary is None) == ("turns" not in options)

    def turn(x):
        x = x / np.linalg.norm(x, axis=-1, keepdims=True) if layer.normed else x
        if layer.rotary is None:
            return x
        cos, sin = (each.numpy() for each in angles(torch.from_numpy(x)))
        return rotated(x, cos, sin, interleaved=layer.rotary.interleaved)

    return turn


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


INSPECTED = ("nn.TransformerEncoder, batch second", "qkv by head")


@pytest.mark.parametrize("layout", INSPECTED)
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
        model.get_submodule("0")(x, 2 * x, x)


class Linear(torch.nn.Module):
    """Attention without softmax, in modules of the usual names."""

    def __init__(self, gated=False):
        super().__init__()
        self.qkv, self.proj, self.gate, self.gated = *(torch.nn.Linear(8, n) for n in (24, 8, 8)), gated

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if self.gated:
            z = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) * self.gate(x)
        else:
            z = (q.relu() @ (k.relu().transpose(-1, -2) @ v)).transpose(1, 2).flatten(2)
        return self.proj(z)


@pytest.mark.parametrize("gated", [False, True])
def test_what_is_no_softmax_attention_is_refused(gated):
    with refused("weights that sum to 1"):
        attention_layers(torch.nn.Sequential(Linear(gated)))


class Squared(torch.nn.Module):
    """Heads whose scores are not products of queries and keys, and whose shared keys are not of neighbours."""

    def __init__(self, how):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (torch.nn.Linear(8, n) for n in (8, 4, 4, 8))
        self.how = how

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (4, 2)).transpose(1, 2)
        k, v = (part(x).unflatten(-1, (2, 2)).transpose(1, 2) for part in (self.k_proj, self.v_proj))
        k, v = (part.repeat(1, 2, 1, 1) if self.how == "tiled" else part.repeat_interleave(2, 1) for part in (k, v))
        scores = q @ k.transpose(-1, -2)
        shares = (scores if self.how == "tiled" else scores.tanh()).softmax(-1)
        return self.o_proj((shares @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize(("how", "words"), [("tiled", "neighbours"), ("capped", "products")])
def test_other_heads_are_refused(how, words):
    with refused(words):
        attention_layers(torch.nn.Sequential(Squared(how)))


class Renamed(torch.nn.Module):
    """Attention under names that nobody else uses; it takes a second argument where it does not run alone."""

    def __init__(self, alone, packed="abc"):
        super().__init__()
        self.alone, self.packed = alone, packed
        self.add_module(packed, torch.nn.Linear(12, 36))
        self.d = torch.nn.Linear(12, 12)

    def forward(self, x, *more):
        assert self.alone or more
        q, k, v = self.get_submodule(self.packed)(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        return x + self.d(torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Two(torch.nn.Module):
    def __init__(self, *options):
        super().__init__()
        self.layers = torch.nn.ModuleList([Renamed(*options), Renamed(*options)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, 1)
        return x.mean((1, 2))


@pytest.mark.parametrize("alone", [True, False])
def test_a_layout_can_be_stated(alone):
    model = Two(alone).eval().requires_grad_(False)
    with refused("abc 12 -> 36, d 12 -> 12", "layout="):
        attention_layers(model)
    with refused("outputs"):
        of_module(model, layout={"packed": "abc", "outputs": "d"})
    with refused("packed", "output"):
        of_module(model, layout={"output": "d"})
    with refused("heads", "5"):
        of_module(model, layout={"packed": "abc", "output": "d", "heads": 5})
    loaded = of_module(model, layout={"packed": "abc", "output": "d", "heads": 3})
    for each in (model, loaded.model):
        assert [(layer.heads, layer.head_dim) for layer in attention_layers(each)] == [(3, 4)] * 2
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    before, layer = loaded.model(x), attention_layers(model)[0]
    with rewritten(loaded.model, {0: layer.read_weights(model).without([1])}):
        assert not torch.equal(loaded.model(x), before)


def test_projections_that_are_never_called_are_refused():
    class Functional(Renamed):
        def forward(self, x, *more):
            return x + torch.nn.functional.linear(x, self.abc.weight[:12])

    model = torch.nn.Sequential(Functional(True)).eval()
    batches = [torch.ones(2, 5, 12)] * 3
    with refused("without being called"):
        hc.inspect(
            model, (batches, lambda m, x: m(x).mean((1, 2))), layout={"packed": "abc", "output": "d", "heads": 3}
        )


def test_packed_projections_of_a_module_that_does_not_run_alone_are_not_guessed():
    model = torch.nn.Sequential(Renamed(False, "qkv"))
    model[0].proj = model[0].d
    with refused("order", "layout="):
        attention_layers(model)
