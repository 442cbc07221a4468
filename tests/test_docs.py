"""What the documents say to type works: blocks and notebooks run, commands are understood, links lead somewhere."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headcount as hc
from headcount.cli.app import command
from headcount.cli.verbs import VERBS

from .data.written import write_dataset, write_text_table
from .helpers import fabricated
from .helpers.cifar_files import random_cifar, write_cifar_folder
from .helpers.commands import headcount
from .helpers.compiling import compile_quickly  # noqa: F401
from .papers.data.texts import bert_tensors, write, write_bert, write_records

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted(path.name for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"))
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
    np.savez("labelled.npz", x=x, y=y > 0)
    monkeypatch.setenv("HEADCOUNT_CACHE", str(data_folder / "cache"))
    for module in ("tasks.find", "data.embeddings"):
        monkeypatch.setattr(
            f"headcount.papers.{module}.find_embeddings", lambda path=None: path or data_folder / "bert"
        )
    return {"x": x, "y": y}


@pytest.fixture
def quick_measure(monkeypatch):
    """`hc.measure`, with a few steps of a few models in place of an effort."""
    measure = hc.measure

    def quick(*task, effort=None, steps=None, **options):
        return measure(*task, **({"seeds": 2, "heads": [1, 2], "train": QUICK} | options))

    monkeypatch.setattr(hc, "measure", quick)


@pytest.fixture
def script(monkeypatch):
    """A module of docs/scripts by its name."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "scripts")
    return importlib.import_module


@pytest.mark.parametrize(
    "page",
    [
        page if page == "README.md" else pytest.param(page, marks=pytest.mark.slow)
        for page in PAGES  # others train, search and certify
        if blocks(page, "python")
    ],
)
def test_python_blocks_run(page, folder, quick_measure):
    if page == "docs/clusters.md":
        pytest.importorskip("submitit", reason="nothing else needs it")
    names = dict(folder, Path=Path)
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)
    assert names.get("hc", hc) is hc


@pytest.mark.parametrize("name", NOTEBOOKS[:1])  # the slow tier runs all of them whole
def test_the_code_of_a_notebook_runs(name, folder, quick_measure, script):
    notebooks, names = script("notebooks"), {}
    for cell in notebooks.cells(ROOT / "docs" / "notebooks" / name):
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], name, "exec"), names)
        if notebooks.PARAMETERS in cell["tags"]:
            assert {"SETTINGS", "FOLDER"} <= names.keys()
    assert names["again"].records


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name, tmp_path):
    """As a reader runs it, in a kernel of its own and with its own settings."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "docs" / "notebooks" / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "stored outputs go stale"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    plots = [cell for cell in notebook.cells if cell.cell_type == "code" and ".plot(" in cell.source]
    assert len(images(notebook)) == len(plots)


def test_a_plot_is_the_picture_of_its_cell(tmp_path):
    """In a kernel that has not imported pyplot, without which IPython shows no figure of matplotlib's."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    sweep = fabricated.sweep()
    folder = fabricated.write(tmp_path / "results", fabricated.finished(sweep), {"headcount measure own": sweep})
    source = f"import headcount as hc\nhc.load({str(folder)!r})[0].plot()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert images(notebook) == ["image/svg+xml"]


def images(notebook) -> list[str]:
    """The kinds of all pictures among the outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [kind for output in outputs for kind in output.get("data", {}) if kind.startswith("image/")]


def typed(line: str) -> str | None:
    """The headcount command of a line of a shell script, without what the shell makes of it."""
    line = re.sub(r"^((exec|[A-Z_]+=\S*) )*", "", line.strip()).removesuffix(" &")
    return line if line.startswith("headcount ") else None


COMMANDS = dict.fromkeys(
    " ".join(shlex.split(command, comments=True))
    for page in PAGES
    for language in ("sh", "bash")
    for block in blocks(page, language)
    for command in map(typed, block.splitlines())
    if command is not None
)
UNDERSTOOD = {"measure": ["--dry-run"], "reproduce": ["--dry-run"], "bounds": []}
"""Verbs that can be asked for a plan, or are quick; of the others only the options are read."""


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=[pytest.mark.slow] * (" reproduce " in f"{each} ")) for each in COMMANDS]
)
def test_commands_are_understood(command, folder, monkeypatch):
    monkeypatch.setenv("task", "max-plus-min")  # the variable of the Slurm script
    _, verb, *arguments = shlex.split(os.path.expandvars(command))
    further = ["--help"] if "--on" in arguments else UNDERSTOOD.get(verb, ["--help"])  # no cluster here
    result = headcount(verb, *arguments, *further)
    assert result.code == 0, result.err
    assert result.out


def anchors(path: Path) -> set[str]:
    """The ids of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The folder of pages that the site's build writes."""
    folder = tmp_path_factory.mktemp("site") / "docs" / "generated"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "scripts")
        importlib.import_module("build_site").write_pages(folder)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page, generated):
    """Links to files of this repository and their headings, and public names that the text calls hc.something."""
    text = (ROOT / page).read_text()
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        target = (ROOT / page).parent.joinpath(link) if link else ROOT / page
        if target.parent == ROOT / "docs" / "generated":
            target = generated / target.name
        if "://" not in link:
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), f"{link}#{anchor}"
    unknown = {name for name in re.findall(r"\bhc\.(\w+)", text) if name not in hc.__all__}
    assert not unknown


def test_every_page_is_in_the_navigation(generated):
    listed = set(re.findall(r"^ .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE))
    written = {path.removeprefix("docs/") for path in PAGES if path.startswith("docs/")}
    assert listed == written | {f"generated/{path.name}" for path in generated.iterdir()}


@pytest.mark.parametrize("verb", VERBS)
def test_the_reference_has_every_option_of_every_verb(verb, generated):
    text = (generated / "commands.md").read_text()
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (own,) = (part for part in section if part.startswith(f"{verb}\n"))
    flags = {flag for option in command(verb).params for flag in (*option.opts, *option.secondary_opts)}
    missing = {flag for flag in flags if flag.startswith("-") and not re.search(rf"(`|<code>){flag}[`< ]", own)}
    assert not missing


def test_a_pipe_in_code_is_shown_without_a_backslash(generated):
    """In a table's cell, Markdown shows code as it is, the backslash that keeps a pipe from ending the cell too."""
    text = (generated / "commands.md").read_text()
    assert "<code>--targets COLUMN&#124;FILE</code>" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert not [row for row in rows if re.search(r"`[^`]*\\\|[^`]*`", row)]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "api.md").read_text()
    missing = {name for name in hc.__all__ if f"headcount.{name}" not in text}
    assert not missing


def test_the_gallery_shows_the_code_that_it_runs(script):
    gallery, page = script("gallery"), (ROOT / "docs" / "gallery.md").read_text()
    entries = [entry for group in gallery.GROUPS.values() for entry in group]
    stale = [entry.title for entry in entries if f"```python\n{gallery.code_of(entry)}\n```" not in page]
    assert not stale, "run make gallery"


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_the_web(tmp_path):
    pytest.importorskip("zensical", reason="an extra, which the default tests do without")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("generated"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    build = [sys.executable, "docs/scripts/build_site.py"]
    ended = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "measurement" in (tmp_path / "site" / "api.html").read_text()
    (command,) = re.findall(r"http\.server (\d+) --directory (\S+)", ended.stdout)
    assert command == ("8000", str(tmp_path / "site"))  # pages opened as files cannot be searched
    assert "http://localhost:8000" in ended.stdout
