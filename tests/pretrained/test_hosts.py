"""A changed model in the class that stores it computes what the changed original does."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from headcount.pretrained.layers.architectures import FAMILIES as KNOWN
from headcount.pretrained.layers.find import rewritten
from headcount.pretrained.loading.load import fingerprint_of
from headcount.pretrained.storing.checking import first_output
from headcount.pretrained.storing.hosts import host_class, host_config
from headcount.pretrained.storing.plan import compact
from headcount.pretrained.storing.preflight import CHECKED_FACTORS, AttentionShape, original_shape, preflight
from tests.helpers.refusals import refused
from tests.helpers.tiny_models import FAMILIES, tiny_config, tiny_input, tiny_model

from .changed_models import grouped, plan_that_keeps, pruned, shrunk, weights_of

SMALL = [family for family in FAMILIES if KNOWN[family].head_dim != "none"]
KEYED = [family for family in FAMILIES if KNOWN[family].key_heads]
NARROWED = [family for family in SMALL if not KNOWN[family].normed and family not in CHECKED_FACTORS]


def agrees(model, plan, inputs, *, zeroed=False):
    """The plan's model computes what the original does with the masked weights, and not what it does without."""
    before = fingerprint_of(model)
    with rewritten(model, dict(enumerate(plan.masked))):
        wanted = first_output(model, inputs)
    host = plan.apply(model, zeroed=zeroed)
    np.testing.assert_allclose(first_output(host, inputs), wanted, atol=1e-5)
    assert np.abs(first_output(model, inputs) - wanted).max() > 1e-3
    assert fingerprint_of(model) == before
    return host


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_are_removed_from_every_family(family):
    model = tiny_model(family, heads=6, key_heads=3)
    plan = pruned(model)
    check = plan.preflight(model.config)
    host = agrees(model, plan, tiny_input(family), zeroed=check.stored == "zeroed")
    fewer = sum(parameter.numel() for parameter in host.parameters()) < sum(p.numel() for p in model.parameters())
    assert fewer == (family in SMALL)


@pytest.mark.parametrize("family", KEYED)
def test_keys_are_shared_in_every_family_that_has_key_heads(family):
    model = tiny_model(family)
    host = agrees(model, grouped(model), tiny_input(family))
    assert original_shape(host.config).key_heads == 1


@pytest.mark.parametrize("family", NARROWED)
def test_heads_are_narrowed_in_every_family_that_stores_head_dim(family):
    model = tiny_model(family)
    host = agrees(model, shrunk(model), tiny_input(family))
    assert original_shape(host.config).head_dim == 4


def test_a_llama_whose_heads_do_not_divide_its_width_is_a_mistral():
    model = tiny_model("llama", heads=6, key_heads=6)
    host = agrees(model, pruned(model), tiny_input("llama"))
    assert type(host) is transformers.MistralForCausalLM
    assert (host.config.num_attention_heads, host.config.sliding_window) == (5, None)


def test_layers_that_keep_different_numbers_of_heads_are_padded():
    model = tiny_model("mistral", heads=6, key_heads=3, layers=3)
    plan = plan_that_keeps(model, [(0, 1, 2), (3,), ()])
    assert [each.heads for each in plan.layers] == [4, 1, 2]
    host = agrees(model, plan, tiny_input("mistral"))
    assert (host.config.num_attention_heads, host.config.num_key_value_heads) == (4, 2)


def test_a_module_around_a_model_is_kept():
    class Around(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.head = inner, torch.nn.Linear(32, 2).requires_grad_(False)

        def forward(self, pixel_values):
            return self.head(self.inner(pixel_values=pixel_values).last_hidden_state)

    around = Around(tiny_model("vit").vit)
    host = agrees(around, pruned(around), tiny_input("vit"))
    assert torch.equal(host.head.weight, around.head.weight)
    assert host.head.weight is not around.head.weight


def test_a_plan_for_another_model_is_refused():
    plan = pruned(tiny_model("mistral", layers=2))
    with refused("2", "1"):
        plan.apply(tiny_model("mistral", layers=1))
    with refused("bert"):
        pruned(tiny_model("bert")).apply(tiny_model("bert"))


SHAPES = [
    AttentionShape(4, 2, 8),
    AttentionShape(2, 2, 8),
    AttentionShape(3, 3, 8),
    AttentionShape(4, 1, 8),
    AttentionShape(4, 2, 4),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_preflight_is_what_the_class_does_on_the_meta_device(family):
    model = tiny_model(family)
    for shape in SHAPES:
        if not KNOWN[family].key_heads:
            shape = replace(shape, key_heads=shape.heads if shape.key_heads != 1 else 1)
        check = preflight(model.config, [shape] * 2)
        if check.possible:
            kind = host_class(type(model), check)
            config = host_config(model, kind, check, None)
            with torch.device("meta"):
                host = kind(config)
            assert stored(host, check.host) == shape.heads * shape.head_dim, shape
        elif shape.key_heads == shape.heads and not KNOWN[family].normed:
            changed = {"hidden_size": 32, "num_attention_heads": shape.heads, "head_dim": shape.head_dim}
            try:
                with torch.device("meta"):
                    host = type(model)(tiny_config(family, **changed))
            except Exception:
                continue  # the class refuses, as the pre-flight does
            assert stored(host, family) != shape.heads * shape.head_dim, shape


def stored(model, family: str) -> int:
    """How many numbers the output projection of the first layer reads."""
    path = KNOWN[family].layout.output
    weight = next(module for name, module in model.named_modules() if name.endswith(path)).weight
    return weight.shape[0] if family == "gpt2" else weight.shape[1]


def test_no_head_of_a_layer_is_one_zero_head():
    original = weights_of(tiny_model("vit"))[0]
    assert not compact(original.without(range(original.heads)), ()).output.any()
