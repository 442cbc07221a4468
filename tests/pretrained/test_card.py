"""A model card is YAML and Markdown whatever the original, its card, the data and the command are called."""

import re
from pathlib import Path

import pytest

from headcount.pretrained.storing.card import model_card

yaml = pytest.importorskip("yaml")

HOSTILE = [
    'a "quoted" name',
    "it's: a # name",
    "a\n---\nlicense: mit",
    "<script>alert(1)</script>",
    "[link](javascript:x)",
    "`code`",
    "a|b",
    "*_~$&\\",
    "bytes \udcff",
]


def a_card(name: str = "bert", source: Path | None = None, **changed: object) -> str:
    sizes = {"heads": 2, "key_heads": 2, "head_dim": 8}
    record = {
        "source": f"/models/{name}",
        "kind": "prune",
        "words": "4 of 8 heads kept",
        "fingerprint": "abc",
        "stored_words": "It loads with transformers.",
        "architecture": "BertModel",
        "shape": {"original": sizes, "stored": sizes},
        "parameters": {"original": 200, "stored": 100},
        "difference": 1e-7,
        "measured": {},
    }
    return model_card(record | changed, source)


def front_of(card: str) -> dict:
    head = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    assert head is not None
    return yaml.safe_load(head[1])


def test_a_plain_card():
    assert front_of(a_card()) == {"library_name": "transformers", "tags": ["headcount", "prune"]}
    assert "# bert, 4 of 8 heads kept\n" in a_card()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_have_no_meaning_in_markdown(name):
    card = a_card(name, measured={"data": f"texts of {name}", "order": f"as in {name}", "cannot": [name]})
    card.encode()
    assert front_of(card).keys() == {"library_name", "tags"}
    assert card.count("\n---\n") == 1
    prose = re.sub(r"\\[\\`*_\[\]<>|&~$]", "", card.split("\n## Check")[0].split("```")[0])
    assert not re.search(r"[<\[\]|*~$]", prose.split("\n# ")[1])
    for line in card.splitlines():
        assert not line.startswith("license")


@pytest.mark.parametrize("value", HOSTILE[:-1])
def test_a_licence_is_carried_over_as_it_is(tmp_path, value):
    front = yaml.safe_dump({"license": "other", "license_name": value, "tags": ["a"]})
    (tmp_path / "README.md").write_text(f"---\n{front}---\n# A model\n")
    taken = front_of(a_card(source=tmp_path))
    assert {key: taken[key] for key in taken if key.startswith("license")} == {
        "license": "other",
        "license_name": value,
    }


@pytest.mark.parametrize(
    "line", ['license: "mit', "license: [mit", "license: !!timestamp x", "license: {a: b}", "- a", "a"]
)
def test_a_licence_that_cannot_be_read_is_left_out(tmp_path, line):
    (tmp_path / "README.md").write_text(f"---\n{line}\n---\n# A model\n")
    assert front_of(a_card(source=tmp_path)).keys() == {"library_name", "tags"}


def test_a_command_stays_in_its_block():
    card = a_card(command="headcount prune 'a\n```\n# b' --out c")
    assert "\n````\nheadcount prune 'a\n```\n# b' --out c\n````\n" in card
