"""A user's own images and passages on the command line: measured, or refused with what is wrong."""

import json
import shutil
from pathlib import Path

import pytest

import headcount as hc

from ..data.written import TABLE_KINDS, write_text_table
from ..helpers.commands import a_sentence, headcount, strict_json
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.real_data import METRICS, lines, records_in, said_on
from ..papers.data.texts import write, write_records

SHORT = ("--heads", 1, "--steps", 4, "--batch", 4, "--layers", 1, "--head-dim", 2, "--seeds", 1)
SHORT += ("--validation-examples", 20)


@pytest.mark.slow
def test_a_users_images_are_measured(images, tmp_path):
    out = tmp_path / "results"
    command = ("measure", images, *SHORT, "--out", out, "--json")
    result = headcount(*command)
    assert result.code == 0, result.err
    assert strict_json(result.out)["trained"] == {"finished": 1}
    (record,) = records_in(out)
    assert (record.cell.task["task"], record.cell.length) == ("colours", 4)
    assert (record.cell.model["layers"], record.cell.model["head_dim"]) == (1, 2)
    again = strict_json(headcount(*command).out)
    assert (again["already_done"], again["trained"]) == (1, {})
    verified = headcount("verify", out, "--task", images, "--json")
    assert [row["agreement"] for row in strict_json(verified.out)] == ["same"]
    assert headcount("report", out, "-o", tmp_path / "page.html").code == 0
    assert "wrong answers" in said_on(tmp_path / "page.html")[0]


@pytest.mark.slow
def test_a_users_passages_are_measured(mine, bert, tmp_path):
    out = tmp_path / "results"
    command = ("measure", mine, "--embeddings", bert, *SHORT, "--lengths", "3", "--out", out, "--json")
    result = headcount(*command)
    assert result.code == 0, result.err
    (record,) = records_in(out)
    assert (record.cell.task["task"], record.cell.task["layout"], record.cell.length) == ("mine", "candidates", 3)
    assert record.metrics.keys() >= METRICS | {"mrr", "fitted_mrr"}
    assert strict_json(headcount(*command, "--layout", "pairs", "--dry-run").out)["already_done"] == 0


IMAGE_OPTIONS = {"--windows": "0:0.5,0.5:1", "--hidden": "8", "--beta": "2", "--total-dim": "8", "--multiplier": "2"}
IMAGE_OPTIONS |= {"--layout": "pairs", "--intrinsic-dim": "2", "--lengths": "5", "--patch": "3"}


@pytest.mark.parametrize("option", IMAGE_OPTIONS)
def test_an_option_that_images_do_not_take_is_refused(images, tmp_path, no_training, option):
    result = headcount("measure", images, option, IMAGE_OPTIONS[option], "--out", tmp_path / "results")
    a_sentence(result, 2, option)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--patch", "4"),
        ("--dim", "4"),
        ("--hidden", "4"),
        ("--layout", "rows"),
        ("--split", "dev"),
        ("--lengths", "3,5"),
    ],
)
def test_an_option_that_passages_do_not_take_is_refused(mine, bert, tmp_path, no_training, option, value):
    result = headcount("measure", mine, "--embeddings", bert, option, value, "--out", tmp_path / "results")
    a_sentence(result, 2, option)
    assert not (tmp_path / "results").exists()


def test_images_of_cifar_are_not_resized(cifar, tmp_path):
    a_sentence(headcount("measure", cifar, "--side", 64, "--out", tmp_path / "results"), 2, "--side", "32", "64")


def spoiled(kind: str, folder: Path, images: Path) -> tuple[Path, str]:
    """Data with a fault, and what names it; tests/data has every fault there is."""
    if kind == "a line":
        rows = [json.dumps(row) for row in lines()]
        return write(folder / "mine.jsonl", "\n".join([*rows[:2], '{"query": "heron"', *rows[3:]]) + "\n"), "line 3"
    if kind == "no answers":
        return write_records(folder / "mine.jsonl", [row | {"positive": []} for row in lines(30)]), "mine.jsonl"
    copied = shutil.copytree(images, folder / "colours")
    first, *others = sorted((copied / "blue").iterdir())
    if kind == "an image":
        first.write_text("mine")
        return copied, first.name
    for path in others[4:]:
        path.unlink()
    return copied, "55"


@pytest.mark.parametrize("kind", ["a line", "no answers", "an image", "too few images"])
def test_data_that_cannot_be_used_is_named(images, bert, tmp_path, no_training, kind):
    data, words = spoiled(kind, tmp_path, images)
    options = ("--embeddings", bert) if data.is_file() else ()
    result = headcount("measure", data, *options, *SHORT, "--out", tmp_path / "results")
    assert (result.code, result.out) == (2, ""), result.err
    last = result.err.splitlines()[-1]
    assert last.startswith("headcount: ")
    assert words in last
    assert not list(tmp_path.glob("results/weights/*"))


TEXTS = ["red tea is good", "No tea today!", "blue sky, red sky"] * 40
TINY = ("--heads", 1, "--seeds", 1, "--steps", 4, "--hidden", 4)


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_texts_in_a_table_are_measured_and_verified(tmp_path, kind):
    table = TABLE_KINDS[kind](tmp_path / f"mine{kind}", {"text": TEXTS, "label": ["a", "b", "c"] * 40})
    out = tmp_path / "results"
    result = headcount("measure", table, *TINY, "--tokens", "bytes", "--out", out)
    assert result.code == 0, result.err
    assert "--tokens words" in result.err
    (record,) = records_in(out)
    assert (record.cell.task["vocabulary"], record.cell.task["labels"]) == (256, 3)
    verified = headcount("verify", out, "--task", table, "--tokens", "bytes", "--json")
    assert [row["agreement"] for row in strict_json(verified.out)] == ["same"]
    a_sentence(headcount("verify", out, "--task", table), 2, "fingerprint", "vocabulary")
    words = headcount("measure", table, *TINY, "--dry-run")
    assert "most frequent in all examples" in " ".join(words.err.split())


def test_tokens_are_of_texts(tmp_path):
    table = write_text_table(
        tmp_path / "mine.csv", {"a": list(range(0, 360, 3)), "b": [1, 2, 5] * 40, "y": [0.5, 1, 2] * 40}
    )
    a_sentence(headcount("measure", table, "--tokens", "words"), 2, "--tokens", "leave it out")


@pytest.mark.parametrize("rows", [1, 39])
def test_too_few_examples_are_counted(tmp_path, rows):
    columns = {"a": [place**2 % 7 for place in range(rows)], "b": [place**3 % 5 for place in range(rows)]}
    table = write_text_table(tmp_path / "mine.csv", columns | {"y": [place % 3 + 0.5 for place in range(rows)]})
    counted = "39 examples are" if rows > 1 else "1 example is"
    a_sentence(headcount("measure", table), 2, counted, "at least 40")


def test_a_width_that_not_all_head_counts_divide(tmp_path):
    columns = {
        name: [(place * step) % 11 / 7 for place in range(120)] for name, step in zip("abcy", (3, 5, 7, 2), strict=True)
    }
    table = write_text_table(tmp_path / "mine.csv", columns)
    for answered_at in ("sequence", "query"):
        options = ("--answered-at", answered_at, "--total-dim", 48, "--dry-run")
        result = headcount("measure", table, *options)
        assert result.code == 0, result.err
        assert "5, 7, 9, 10 and 11 heads" in " ".join(result.err.split())


def test_a_table_in_python_continues_what_its_file_began(tmp_path):
    names = dict(zip("abcy", (3, 5, 7, 2), strict=True))
    columns = {name: [(place * step) % 11 / 7 for place in range(120)] for name, step in names.items()}
    table, out = write_text_table(tmp_path / "mine.csv", columns), tmp_path / "results"
    assert headcount("measure", table, *TINY, "--out", out).code == 0
    options = {"heads": [1], "seeds": 1, "steps": 4, "hidden": 4, "out": out, "progress": False}
    assert hc.measure(columns, name="mine", **options).run.already_done == 1
    other = hc.measure(columns | {"a": columns["b"]}, name="mine", **options)
    assert other.run.already_done == 0
