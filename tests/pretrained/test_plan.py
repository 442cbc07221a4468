"""Plans and the pre-flight: numpy and tables, no torch."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer.bootstrap import COVERAGE
from headcount.errors import InputError
from headcount.pretrained.inspection.facts import Facts
from headcount.pretrained.inspection.recommended import read_configurations
from headcount.pretrained.layers.architectures import FAMILIES
from headcount.pretrained.layers.weights import HeadWeights
from headcount.pretrained.storing.cost import BYTES, cache_bytes_per_token, stored_dtype
from headcount.pretrained.storing.plan import Plan, compact, fitted, loss_facts, pruned_plan
from headcount.pretrained.storing.preflight import CHECKED_FACTORS, AttentionShape, common_shape, preflight, requested
from headcount.pretrained.storing.request import kept_count
from tests.helpers.refusals import refused


def layer(key_heads: int, share: int, seed: int = 0, dim: int = 2, width: int = 5) -> HeadWeights:
    draw = np.random.default_rng(seed).normal
    heads = key_heads * share
    return HeadWeights(
        query=draw(size=(heads, dim, width)),
        key=draw(size=(key_heads, dim, width)),
        value=draw(size=(key_heads, dim, width)),
        output=draw(size=(width, heads, dim)),
        query_bias=draw(size=(heads, dim)),
        key_bias=draw(size=(key_heads, dim)),
        value_bias=draw(size=(key_heads, dim)),
        output_bias=draw(size=width),
    )


def evaluation_of(layers):
    return SimpleNamespace(original=layers, loaded=SimpleNamespace(source="here", fingerprint="abc"))


def attend(weights: HeadWeights, tokens: np.ndarray) -> np.ndarray:
    """The layer's equations, on tokens [length, width]."""
    output = np.zeros_like(tokens) + weights.output_bias
    for head in range(weights.heads):
        group = weights.key_head_of(head)
        query = tokens @ weights.query[head].T + weights.query_bias[head]
        key = tokens @ weights.key[group].T + weights.key_bias[group]
        scores = np.exp(query @ key.T)
        value = tokens @ weights.value[group].T + weights.value_bias[group]
        output += scores / scores.sum(axis=1, keepdims=True) @ value @ weights.output[:, head].T
    return output


TOKENS = 0.5 * np.random.default_rng(1).normal(size=(4, 5))


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_the_small_and_the_fitted_form_compute_what_the_masked_one_does(key_heads, share, data):
    weights = layer(key_heads, share)
    kept = data.draw(st.sets(st.integers(0, weights.heads - 1)))
    masked = weights.without(set(range(weights.heads)) - kept)
    small = compact(masked, sorted(kept))
    shape = AttentionShape(2 * key_heads * share * 2, 2 * key_heads, small.head_dim)
    for form in (small, fitted(small, shape)):
        np.testing.assert_allclose(attend(form, TOKENS), attend(masked, TOKENS), atol=1e-12)
    assert small.heads <= weights.heads
    assert (fitted(small, shape).heads, fitted(small, shape).key_heads) == (shape.heads, shape.key_heads)


def test_a_saved_plan_is_the_plan(tmp_path):
    pytest.importorskip("safetensors")
    layers = [layer(2, 2, seed) for seed in range(2)]
    facts = {"loss": {"before": 1.0}}
    plan = replace(pruned_plan(evaluation_of(layers), {}, [(0, 2), (1, 2)]), measured=facts)
    plan.save(tmp_path / "plan")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.safetensors"]
    again = Plan.load(tmp_path / "plan.safetensors")
    for name in ("kind", "source_fingerprint", "source", "words", "measured", "kept", "pairs"):
        assert getattr(again, name) == getattr(plan, name), name
    for before, after in zip((*plan.layers, *plan.masked), (*again.layers, *again.masked), strict=True):
        for name, array in vars(before).items():
            np.testing.assert_array_equal(vars(after)[name], array)
    (tmp_path / "plan.safetensors").write_bytes(b"cut")
    with refused(str(tmp_path / "plan")):
        Plan.load(tmp_path / "plan")


def config(family: str, **changed) -> dict:
    known = FAMILIES[family]
    heads, width = {"gpt2": ("n_head", "n_embd"), "distilbert": ("n_heads", "dim")}.get(
        family, ("num_attention_heads", "hidden_size")
    )
    fields = {"model_type": family, heads: 8, width: 64}
    if known.key_heads:
        fields |= {"num_key_value_heads": 4, "head_dim": 8}
    return fields | changed


@pytest.mark.parametrize("family", FAMILIES)
def test_the_verdict_on_every_family(family):
    known = FAMILIES[family]
    key_heads = 4 if known.key_heads else 8
    same = preflight(config(family), [AttentionShape(8, key_heads, 8)] * 2)
    assert (same.possible, same.stored, same.host, same.config) == (True, "small", family, {})
    six = AttentionShape(6, 6, 8)  # does not divide the width
    check = preflight(config(family), [six] * 2)
    assert check.possible == (known.head_dim != "none" and (not known.needs_divisor or known.other_host is not None))
    assert preflight(config(family), [six] * 2, zeroed=True).stored == "zeroed"
    grouped = preflight(config(family), [AttentionShape(8, 2, 8)] * 2)
    assert grouped.possible == known.key_heads
    narrow = preflight(config(family), [AttentionShape(8, key_heads, 6)] * 2)
    assert narrow.possible == (known.head_dim != "none" and not known.normed and family not in CHECKED_FACTORS)
    for each in (check, grouped, narrow):
        assert all(sentence.endswith(".") and "\n" not in sentence for sentence in each.sentences)
        assert each.possible or family in each.sentences[0]


def test_a_llama_without_biases_goes_to_mistral_and_one_with_does_not():
    six = [AttentionShape(6, 6, 8)] * 2
    check = preflight(config("llama"), six)
    assert (check.host, check.config["model_type"], check.config["sliding_window"]) == ("mistral", "mistral", None)
    biased = preflight(config("llama", attention_bias=True), six)
    assert not biased.possible
    assert "that it stores: 4;" in biased.sentences[0]


def test_unequal_counts_are_padded_and_the_cost_is_said():
    shapes = [AttentionShape(2, 2, 8), AttentionShape(6, 3, 8), AttentionShape(4, 4, 8)]
    assert common_shape(shapes) == AttentionShape(8, 4, 8)
    check = preflight(config("mistral"), shapes)
    assert (check.stored, check.shape) == ("padded", AttentionShape(8, 4, 8))
    assert "12 of the 24" in " ".join(check.sentences)


def test_warnings_name_the_sizes_that_do_not_fit():
    warned = " ".join(preflight(config("mistral"), [AttentionShape(6, 2, 12)] * 2).sentences)
    assert "over 4 devices" in warned
    assert "not 12" in warned
    odd = preflight(
        config("mistral", num_attention_heads=7, num_key_value_heads=7, head_dim=9), [AttentionShape(5, 5, 9)]
    )
    assert len(odd.sentences) == 1  # the original could not be split either, nor run by that kernel


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"heads": 8}, ("keep", "8")),
        ({"heads": 5}, ("keep", "5", "4")),
        ({"key_heads": 3}, ("key_heads", "3", "1, 2")),
        ({"key_heads": 4}, ("key_heads", "4", "1, 2")),
        ({"head_dim": 8}, ("head_dim", "8")),
    ],
)
def test_a_shape_that_cannot_be_asked_for_is_refused_with_those_that_can(wanted, words):
    with refused(*words):
        requested(AttentionShape(8, 4, 8), **wanted)


@pytest.mark.parametrize(("remove", "kept"), [("20%", 10), ("1%", 12), ("99%", 1), ("12", 10), ("50%", 6)])
def test_a_share_of_all_heads_is_one_count_per_layer(remove, kept):
    assert kept_count(AttentionShape(12, 12, 32), 6, keep=None, remove=remove) == kept


@pytest.mark.parametrize("remove", ["0%", "100%", "72", "many", "-3"])
def test_a_share_that_is_none_is_refused(remove):
    with refused(remove):
        kept_count(AttentionShape(12, 12, 32), 6, keep=None, remove=remove)
    with pytest.raises(InputError):
        kept_count(AttentionShape(12, 12, 32), 6, keep=3, remove="20%")


@pytest.mark.parametrize("keep", [0, 12, 99])
def test_a_count_that_no_layer_can_keep_is_refused(keep):
    with refused("keep", str(keep)):
        kept_count(AttentionShape(12, 12, 32), 6, keep=keep, remove=None)


def test_a_plan_is_shown_in_a_line():
    plan = pruned_plan(evaluation_of([layer(2, 2)] * 2), {}, [(0, 2), (1, 2)])
    assert repr(plan) == "Plan(prune here: 4 of 8 heads kept (2 per layer))"


def test_the_interval_of_an_increase_is_paired():
    before = np.random.default_rng(0).normal(10, 5, 200)
    facts = loss_facts("loss", before, before + 0.5)
    assert facts["increase_interval"] == pytest.approx([0.5, 0.5])
    low, high = loss_facts("loss", before, before + np.random.default_rng(1).normal(0.5, 0.1, 200))["increase_interval"]
    assert 0.45 < low < 0.5 < high < 0.55
    assert facts["coverage"] == COVERAGE


@pytest.mark.parametrize("examples", [4, 8, 16])
def test_the_interval_of_few_examples_covers_what_it_says(examples):
    """Of 2,000 means of normal losses 90 % lie inside, within four standard errors of that share."""
    drawn = np.random.default_rng(examples).normal(0.5, 1.0, (2000, examples))
    bounds = np.array([loss_facts("loss", np.zeros(examples), row)["increase_interval"] for row in drawn])
    inside = np.mean((bounds[:, 0] <= 0.5) & (bounds[:, 1] >= 0.5))
    assert inside == pytest.approx(COVERAGE, abs=4 * (COVERAGE * (1 - COVERAGE) / 2000) ** 0.5)


@pytest.mark.parametrize("examples", [2, 8, 200])
def test_a_model_card_and_an_inspection_give_one_interval(examples):
    before, after = np.random.default_rng(0).normal(3.0, 1.0, (2, examples))
    base = {"losses": before.tolist()}
    inspected = Facts({"base": base, "configurations": [{"name": "small", "losses": after.tolist()}]})
    (configuration,) = read_configurations(inspected)
    assert loss_facts("loss", before, after)["increase_interval"] == [configuration.low, configuration.high]


def test_the_cache_is_two_numbers_per_key_head_dimension(tmp_path):
    assert cache_bytes_per_token("BertModel", None, []) is None
    for stored, size in (({"dtype": "bfloat16"}, 2), ({"torch_dtype": "torch.float16"}, 2), ({}, 4)):
        (tmp_path / "config.json").write_text(json.dumps(stored))
        assert BYTES[stored_dtype(tmp_path)] == size
        layers = [AttentionShape(8, 2, 16), AttentionShape(8, 4, 16)]
        assert cache_bytes_per_token("LlamaForCausalLM", tmp_path, layers) == 2 * (2 + 4) * 16 * size
    assert BYTES[stored_dtype(None)] == 4
