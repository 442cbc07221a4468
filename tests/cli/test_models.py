"""Head counts of published models: listed, drawn, and not said to be more than they are."""

import json
import xml.etree.ElementTree as ET

import pytest

from headcount.papers.cli.models import heads_chart, what_the_bounds_say
from headcount.papers.model_heads import published_models

from ..helpers.commands import headcount

MODELS = {each.model: each for each in published_models()}


def test_every_model_of_the_published_table_is_there_once_by_year_and_size():
    assert len(MODELS) == len(published_models()) == 25
    order = [(each.year, each.width) for each in published_models()]
    assert order == sorted(order)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_numbers_of_a_model_are_possible(model):
    assert min(model.layers, model.heads, model.head_dim, model.width) >= 1
    assert model.kv_heads is None or model.heads % model.kv_heads == 0
    shared = model.heads * model.head_dim == model.width
    assert shared or model.model in ("Gemma 7B", "LaMDA", "DeepSeek-V2")


@pytest.mark.parametrize(
    ("name", "kv_heads", "head_dim"),
    [
        ("GPT-3", 96, 128),
        ("LLaMA-65B", 64, 128),
        ("Llama-2-70B", 8, 128),
        ("Gemma 2B", 1, 256),
        ("Gemma 7B", 16, 256),
        ("Yi-6B", 4, 128),
        ("LLaMA 3.1-405B", 8, 128),
        ("DeepSeek-V2", 128, 192),
        ("MT-NLG", None, 160),
    ],
)
def test_key_heads_and_head_dims_are_those_of_the_configurations(name, kv_heads, head_dim):
    assert (MODELS[name].kv_heads, MODELS[name].head_dim) == (kv_heads, head_dim)


def test_the_verb_lists_and_says_the_same_in_text_and_json(tmp_path):
    listed = json.loads(headcount("models", "--json").out)
    assert [row["model"] for row in listed["models"]] == list(MODELS)
    assert listed["models"][3]["kv_heads"] is None
    assert listed["words"] == list(what_the_bounds_say(published_models()))
    picture = tmp_path / "models.svg"
    text = headcount("models", "--figure", str(picture)).out
    assert all(name in text for name in MODELS)
    assert ET.parse(picture).getroot().tag.endswith("svg")


def test_every_model_has_a_marker_of_its_own():
    markers = [(x, y) for series in heads_chart(published_models()).series if not series.thin
               for x, y in zip(series.x, series.y, strict=True) if y == y]  # fmt: skip
    assert len(markers) == len(set(markers)) == len(MODELS)


def test_a_figure_in_no_format_is_refused_before_anything_is_printed():
    ended = headcount("models", "--figure", "models.txt")
    assert (ended.code, ended.out) == (2, "")
    assert "models.txt" in ended.err
