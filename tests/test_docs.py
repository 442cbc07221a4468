"""What the documents say to type works: Python blocks run, and commands are understood."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headcount as hc

from .cli.pretended import Pretended
from .datasets.texts import bert_tensors, write, write_bert, write_records
from .datasets.written import write_dataset, write_text_table
from .helpers.cifar_files import random_cifar, write_cifar_folder
from .helpers.commands import headcount
from .helpers.compiling import compile_quickly  # noqa: F401

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
QUICK = hc.TrainSpec(steps=2, batch=8, train_examples=100, validation_examples=20)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


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
def folder(data_folder, tmp_path, monkeypatch):
    """A user's folder with the files the documents speak of, and embeddings as if they were installed."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(120, 16, 3)), generator.normal(size=120)
    np.savez("mydata.npz", x=x, y=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    write_text_table(Path("prices.csv"), {f"day_{day}": x[:, day, 0] for day in range(16)} | {"price": y})
    rows = [(patient, *token, y[patient] > 0) for patient in range(120) for token in x[patient, : 2 + patient % 3]]
    names = ("patient", "pulse", "pressure", "heat", "ill")
    write_text_table(Path("visits.csv"), dict(zip(names, zip(*rows, strict=True), strict=True)))
    write_dataset(Path("reviews"), {"input_ids": generator.integers(0, 9, (120, 4)).tolist(), "label": y.tolist()})
    Path("mine.py").write_text("import headcount as hc\ntask = hc.find_task('max-plus-min', length=8)\n")
    for entry in data_folder.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.setenv("HEADCOUNT_CACHE", str(data_folder / "cache"))
    for module in ("tasks.find", "datasets.embeddings"):
        monkeypatch.setattr(f"headcount.{module}.find_embeddings", lambda path=None: path or data_folder / "bert")
    return {"x": x, "y": y}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page == "docs/theory.md" else page  # it searches and certifies
        for page in PAGES
        if blocks(page, "python")
    ],
)
def test_python_blocks_run(page, folder, monkeypatch):
    measure = hc.measure
    monkeypatch.setattr(
        hc, "measure", lambda *task, **options: measure(*task, **({"seeds": 2, "train": QUICK} | options))
    )
    if page == "docs/reproduction.md":  # hours of training
        monkeypatch.setattr(hc, "run_sweep", Pretended().run_sweep)
    names = dict(folder, Path=Path)
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)
    assert names["hc"] is hc


COMMANDS = [
    line
    for page in PAGES
    for block in blocks(page, "sh")
    for line in map(str.strip, block.splitlines())
    if line.startswith("headcount")
]
UNDERSTOOD = {"measure": ["--dry-run"], "reproduce": ["--dry-run"], "bounds": []}
"""Verbs that can be asked for a plan, or are quick; of the others only the options are read."""


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command, folder):
    _, verb, *arguments = shlex.split(command, comments=True)
    result = headcount(verb, *arguments, *UNDERSTOOD.get(verb, ["--help"]))
    assert result.code == 0, result.err
    assert result.out


@pytest.mark.parametrize("page", PAGES)
def test_every_linked_file_is_there(page):
    """Links to files of this repository, and public names that the text calls hc.something."""
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    missing = [link for link in links if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()]
    assert not missing
    unknown = {name for name in re.findall(r"\bhc\.(\w+)", text) if name not in hc.__all__}
    assert not unknown
