"""What the documents say to type works: Python blocks run, and commands are understood."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headcount as hc
from headcount import cli
from headcount.studies import marco
from headcount.tasks import find

from .datasets.texts import bert_tensors, write, write_bert, write_records
from .helpers.cifar_files import random_cifar, write_cifar_folder
from .tasks.laws import compile_quickly  # noqa: F401

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/tasks.md", "docs/theory.md", "docs/reproduction.md")
QUICK = hc.TrainSpec(steps=20, train_examples=200, validation_examples=50)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder with the files the documents speak of."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(120, 16, 3)), generator.normal(size=120)
    np.savez("mydata.npz", x=x, y=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    Path("mine.py").write_text("import headcount as hc\ntask = hc.max_plus_min(length=8)\n")
    return {"x": x, "y": y}


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    """Images and passages, as many as there must be, where the documents have them."""
    folder = tmp_path_factory.mktemp("data")
    images, labels = random_cifar(25)
    write_cifar_folder(folder / "data" / "cifar10", images, labels)
    for place, image in enumerate(images[:140]):
        path = folder / "photos" / ("cat" if place % 2 else "dog") / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    texts = [f"heron river {place}" for place in range(140)]
    records = [{"query": f"stone {place}", "positive": text} for place, text in enumerate(texts)]
    write_records(folder / "questions.jsonl", records)
    marco = folder / "data" / "msmarco"
    write(marco / "collection.tsv", "".join(f"{place}\t{text}\n" for place, text in enumerate(texts)))
    write(marco / "queries.dev.tsv", "".join(f"{place}\tstone {place}\n" for place in range(140)))
    write(marco / "qrels.dev.tsv", "".join(f"{place}\t0\t{place}\t1\n" for place in range(140)))
    write_bert(folder / "bert", bert_tensors(places=70))
    return folder


@pytest.fixture
def real_data(data_folder, folder, tmp_path, monkeypatch):
    """The same in the user's folder, with embeddings as if they were installed."""
    for entry in data_folder.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.setenv("HEADCOUNT_CACHE", str(data_folder / "cache"))
    for module in (find, marco):
        monkeypatch.setattr(module, "find_embeddings", lambda path: path or data_folder / "bert")


@pytest.mark.parametrize("page", PAGES[:3])
def test_python_blocks_run(page, folder, real_data, monkeypatch):
    measure = hc.measure
    monkeypatch.setattr(hc, "measure", lambda task, **options: measure(task, **options, seeds=2, train=QUICK))
    names = dict(folder, Path=Path)
    for block in blocks(page, "python"):
        exec(block, names)
    assert isinstance(names["task"], hc.ArrayTask | hc.Retrieval)


COMMANDS = [
    line
    for page in PAGES
    for block in blocks(page, "sh")
    for line in map(str.strip, block.splitlines())
    if line.startswith("headcount")
]


UNDERSTOOD = {
    "measure": (["--dry-run"], "cells"),
    "reproduce": (["--dry-run"], "models"),
    "bounds": ([], "Theorem 2"),
    "prove": (["--help"], "claim"),
    "collide": (["--help"], "sequences"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command, real_data, monkeypatch, capsys):
    verb = command.split()[1]
    # Two can be asked for a plan, one is quick, the others are tried elsewhere: here only their options are read.
    more, words = UNDERSTOOD[verb]
    monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True) + more)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 0
    out = capsys.readouterr().out
    assert words in out or "table2" in out or "pieces" in out
