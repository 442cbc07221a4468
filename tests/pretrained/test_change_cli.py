"""prune, group and shrink as they are typed: a check ends what cannot be stored, the rest is written."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.loading.load import load_model
from headcount.pretrained.storing.checking import check_folder
from headcount.pretrained.storing.cost import cached_bytes
from tests.helpers.commands import a_sentence, contents, headcount, strict_json
from tests.helpers.tiny_models import WORDS, tiny_folder, tiny_model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for family in ("bert", "llama", "vit", "qwen3", "gemma2"):
        tiny_folder(root / family, family, heads=6, key_heads=3)
    lines = [
        " ".join(WORDS[(line * 7 + place * (line % 5 + 1)) % len(WORDS)] for place in range(12)) for line in range(60)
    ]
    (root / "text.txt").write_text("\n".join(lines))
    return root


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("prune", "bert", "--keep", 4), ("bert", "--zeroed", "4 heads")),
        (("prune", "llama", "--keep", 5), ("--keep", "5", "3")),
        (("prune", "llama", "--keep", 0), ("--keep", "0")),
        (
            (
                "prune",
                "llama",
            ),
            ("--keep", "--remove"),
        ),
        (("prune", "bert", "--keep", 6, "--zeroed"), ("--keep", "6")),
        (("prune", "llama", "--remove", "half"), ("--remove", "half")),
        (("prune", "llama", "--remove", "1"), ("--remove 1", "--unequal")),
        (("prune", "llama", "--keep", 3, "--inspection", "nowhere"), ("nowhere", "headcount inspect")),
        (("prune", "llama", "--keep", 3, "--recover-what", "all"), ("--recover-what", "all", "low-rank")),
        (("prune", "llama", "--keep", 3, "--device", "nowhere"), ("--device", "nowhere")),
        (("group", "bert", "--key-heads", 2), ("bert", "2 key heads")),
        (("group", "llama", "--key-heads", 2), ("--key-heads", "2", "1")),
        (("shrink", "bert", "--head-dim", 4), ("bert",)),
        (("shrink", "qwen3", "--head-dim", 4), ("qwen3", "4")),
        (("shrink", "llama", "--head-dim", 5), ("llama", "5")),
        (("shrink", "llama", "--head-dim", 8), ("--head-dim", "8")),
        (("prune", "nowhere/at-all/x", "--keep", 2), ("nowhere",)),
    ],
)
def test_what_cannot_be_stored_ends_in_a_sentence(folders, tmp_path, arguments, words):
    verb, model, *rest = arguments
    before = contents(folders)
    result = headcount(verb, folders / model, *rest, "--out", tmp_path / "out")
    a_sentence(result, 2, *words)
    assert not (tmp_path / "out").exists()
    assert contents(folders) == before


def test_a_place_that_is_taken_is_refused_before_anything_is_computed(folders):
    a_sentence(headcount("prune", folders / "llama", "--keep", 3, "--out", folders / "bert"), 2, str(folders / "bert"))
    a_sentence(
        headcount("prune", folders / "llama", "--keep", 3, "--out", folders / "llama"), 2, str(folders / "llama")
    )
    a_sentence(headcount("prune", folders / "llama", "--keep", 3), 2, "--out")


@pytest.mark.parametrize(
    ("arguments", "stored", "host"),
    [
        (("prune", "llama", "--keep", 3), "small", "llama"),
        (("prune", "vit", "--remove", "20%"), "small", "vit"),
        (("prune", "bert", "--remove", "20%", "--zeroed"), "zeroed", "bert"),
        (("group", "gemma2", "--key-heads", 1), "small", "gemma2"),
        (("shrink", "llama", "--head-dim", 4), "small", "llama"),
    ],
)
def test_a_dry_run_says_what_would_be_stored_and_writes_nothing(folders, arguments, stored, host):
    verb, model, *rest = arguments
    before = contents(folders)
    facts = strict_json(headcount(verb, folders / model, *rest, "--dry-run", "--json").out)
    assert (facts["possible"], facts["stored"], facts["host"]) == (True, stored, host)
    parameters = facts["attention_parameters"]
    assert (parameters["stored"] < parameters["original"]) == (stored == "small")
    shown = headcount(verb, folders / model, *rest, "--dry-run")
    assert shown.code == 0
    assert f"{parameters['stored']:,}" in shown.out
    assert contents(folders) == before


def test_a_dry_run_of_unequal_layers_promises_no_more_than_the_best(folders):
    shown = headcount("prune", folders / "llama", "--remove", "7", "--unequal", "--dry-run")
    assert shown.code == 0
    assert "at best" in shown.out
    assert "one layer keeps all" in shown.err
    facts = strict_json(headcount("prune", folders / "llama", "--remove", "1", "--unequal", "--dry-run", "--json").out)
    assert facts["attention_parameters"]["stored"] == facts["attention_parameters"]["original"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("prune", "llama", "--keep", 3),
        ("prune", "llama", "--remove", "25%", "--unequal", "--no-refit"),
        ("prune", "bert", "--keep", 4, "--zeroed"),
        ("group", "llama", "--key-heads", 1),
        ("shrink", "llama", "--head-dim", 4),
        ("prune", "llama", "--keep", 3, "--recover", 4),
        ("group", "llama", "--key-heads", 1, "--recover", 2, "--recover-what", "low-rank"),
    ],
)
def test_what_is_written_says_what_it_cost(folders, tmp_path, arguments):
    verb, model, *rest = arguments
    before = contents(folders)
    out = tmp_path / "out"
    command = (verb, folders / model, *rest, "--data", folders / "text.txt", "--out", out, "--length", 8)
    result = headcount(*command, "--json")
    assert result.code == 0, result.err
    facts = strict_json(result.out)
    loss = facts["measured"]["loss"]
    low, high = loss["increase_interval"]
    assert low <= loss["after"] - loss["before"] <= high
    assert facts["measured"]["seconds_per_1000_tokens"]["stored"] > 0
    assert ("recovery" in facts["measured"]) == ("--recover" in rest)
    if "--keep" in rest:
        assert {len(heads) for heads in facts["kept"]} == {rest[rest.index("--keep") + 1]}
    if verb == "prune":
        assert "order of heads" in facts["measured"]["order"]
    if "--recover" in rest:
        trained = "low-rank" if "low-rank" in rest else "output projections"
        assert trained in facts["measured"]["recovery"]["words"]
    card = (out / "README.md").read_text()
    for words in (f"{loss['after']:.4f}", f"headcount {verb}", "text.txt", f"{facts['parameters']['stored']:,}"):
        assert words in card
    assert json.loads((out / "config.json").read_text())["architectures"] == [facts["architecture"]]
    assert check_folder(out)["agrees"]
    assert headcount("verify", out).code == 0
    assert contents(folders) == before


def test_cached_bytes_are_those_of_the_stored_precision(tmp_path):
    tiny_model("llama").bfloat16().save_pretrained(tmp_path / "half")
    costs = strict_json(headcount("prune", tmp_path / "half", "--keep", 2, "--dry-run", "--json").out)
    loaded = load_model(tmp_path / "half")
    layers = attention_layers(loaded.model)
    assert costs["kv_cache_bytes_per_token"]["original"] == cached_bytes(loaded, layers) == 2 * 2 * 2 * 8 * 2
