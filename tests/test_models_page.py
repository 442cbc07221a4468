"""Head counts of published models: possible numbers, all of them drawn, and the page as the script writes it."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
found = importlib.util.spec_from_file_location("models_page", DOCS / "scripts" / "models_page.py")
page = importlib.util.module_from_spec(found)
found.loader.exec_module(page)
MODELS = {each.model: each for each in page.published_models()}


def test_every_model_of_the_published_table_is_there_once_by_year_and_size():
    assert len(MODELS) == len(page.published_models()) == 25
    order = [(each.year, each.width) for each in page.published_models()]
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


def test_the_page_has_the_table():
    assert page.table(page.published_models()) in (DOCS / "models.md").read_text()


def test_every_model_has_a_marker_of_its_own():
    markers = [(x, y) for series in page.heads_chart(page.published_models()).series if not series.thin
               for x, y in zip(series.x, series.y, strict=True) if y == y]  # fmt: skip
    assert len(markers) == len(set(markers)) == len(MODELS)
