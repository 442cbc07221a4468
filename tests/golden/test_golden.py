"""Photographs of what headcount says: taken before a redesign, compared after it.

`make golden` compares everything; `make test` what takes seconds. After a change that is meant, `make photographs`
takes them again, and the commit says why they differ.
"""

import json
import os
import re
from pathlib import Path

import pytest

from headcount import __version__
from headcount.report.reading import documents_of
from headcount.report.render.html import page, summary

from ..helpers.commands import headcount
from ..helpers.documents import printed
from ..report.laws import check_page
from . import cells, measured
from .commands import COMMANDS
from .folders import write_folders

RENDERED = ("sharp", "ranks", "descent", "keys", "failed", "inspected", "studies/table2")
PHOTOGRAPHS = Path(__file__).parent / "photographs"
TAKE = "HEADCOUNT_TAKE_PHOTOGRAPHS" in os.environ
SECONDS = {"expected_seconds", "compile_seconds", "compiled_seconds", "longest_bucket_seconds"}
OF_THE_MACHINE = {"changed", "started", "device", "backend", "cpu", "versions", "programs", "buckets", "expected_bytes"}
OF_THE_MACHINE |= SECONDS
ROUNDING = 1e-14
"""Linear algebra on another processor differs by this much of numbers near 1."""


def compare(name: str, seen: object) -> None:
    """Compare with the photograph of this name, or take it."""
    file = PHOTOGRAPHS / f"{name}.json"
    text = json.dumps(seen, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if TAKE:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.read_text() == text, f"{file.name} differs; take it again with `make photographs` if that is meant"


def without_the_machine(said: object) -> object:
    """What is said, less what another machine says differently: floats to nine digits, 0 if they are rounding."""
    if isinstance(said, dict):
        return {key: without_the_machine(value) for key, value in said.items() if key not in OF_THE_MACHINE}
    if isinstance(said, list):
        return [without_the_machine(each) for each in said]
    if isinstance(said, float):
        return float(f"{said:.9g}") if abs(said) > ROUNDING else 0.0
    return said


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("golden")
    write_folders(root)
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(name, root):
    typed = re.sub(r"\{(.*?)\}", lambda found: str(root / found[1]), COMMANDS[name])
    code, out, err = headcount(*typed.split(), "--json")
    try:
        said: object = without_the_machine(json.loads(out))
    except ValueError:
        said = out
    problem = [line for line in err.splitlines() if line.startswith("headcount: ")]
    seen = json.loads(json.dumps([code, said, problem]).replace(str(root), "ROOT"))
    compare(f"commands/{name.replace('/', ' ')}", seen)


@pytest.mark.parametrize("name", RENDERED)
def test_documents_are_shown_as_they_were(name, root, monkeypatch):
    """On terminals of two widths, on a page and in a notebook; the JSON is among the commands."""
    monkeypatch.chdir(root)  # no path of this machine in a command
    documents, _ = documents_of(Path(name))
    said = check_page(page(documents, folder=name)).said.replace(__version__, "VERSION")
    said = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", "TIME", said)
    seen = {
        "terminal of 80 columns": [printed(document, width=80).splitlines() for document in documents],
        "terminal of 40 columns": [printed(document, width=40).splitlines() for document in documents],
        "page": [words for line in said.splitlines() if (words := " ".join(line.split()))],
        "notebook": [summary(document).splitlines() for document in documents],
    }
    compare(f"documents/{name.replace('/', ' ')}", seen)


def test_cells_have_the_keys_that_they_had():
    keys = cells.keys()
    assert sum(map(len, keys.values())) >= 200
    compare("keys", keys)


def test_the_ledger_says_what_it_said():
    """Claims, programs and controls; `make golden` runs them."""
    compare("ledger", measured.statements())


@pytest.mark.golden
def test_the_claims_are_judged_as_they_were():
    compare("verdicts", measured.verdicts())


@pytest.mark.golden
def test_the_demo_has_its_numbers_to_the_last_bit(tmp_path):
    """On the machines of the photographs; another back end or processor rounds differently, and is left out.

    Two generations of processors can have one name: a photograph with the version goes before one without.
    """
    machine, numbers = measured.demo(tmp_path)
    versioned = f"{machine}, {measured.processor_version()}"
    named = next((name for name in (versioned, machine) if (PHOTOGRAPHS / f"{name}.json").exists()), None)
    if not TAKE and named is None:
        pytest.skip(f"no photograph of {versioned}")
    compare(versioned if TAKE else named, numbers)


@pytest.mark.golden
def test_the_gallery_has_its_answers(tmp_path):
    compare("gallery", measured.gallery(tmp_path))


@pytest.mark.golden
def test_calibration_tasks_have_their_answers(tmp_path):
    compare("calibration", measured.calibration(tmp_path))
