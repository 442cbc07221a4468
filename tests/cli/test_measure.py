"""The command line as a person meets it: what is said where, exit codes, bad requests, kills and interrupts."""

import contextlib
import csv
import io
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from headcount import cli
from headcount._errors import StoreError
from headcount._version import __version__
from headcount.engine import run
from headcount.store import Store

from .commands import contents, headcount, start, strict_json, unchecked

SIZES = {"--train-examples": 300, "--validation-examples": 100, "--lengths": 8}
TINY = [str(part) for pair in (SIZES | {"--steps": 30, "--seeds": 2, "--heads": "1:2"}).items() for part in pair]
LONG = [str(part) for pair in (SIZES | {"--steps": 600, "--seeds": 6, "--heads": "1:4"}).items() for part in pair]
"""One program and three buckets of eight cells, each of them a second of work."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory, worker_id):
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str((base if worker_id == "master" else base.parent) / "cache"))
        yield


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder of four finished cells, and what was said while it was made."""
    folder = tmp_path_factory.mktemp("measured") / "results"
    return folder, headcount("measure", "max-plus-min", *TINY, "--out", folder)


@pytest.fixture
def folder(measured, tmp_path):
    """A copy of the measured folder."""
    return Path(shutil.copytree(measured[0], tmp_path / "results"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Data of all kinds, most of them bad, and a Python file of tasks."""
    where, generator = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    x, y = generator.normal(size=(120, 8, 2)), generator.normal(size=120)
    with_nan = np.where(np.arange(120) == 7, np.nan, y)
    ragged = np.array([np.zeros((1 + i % 3, 2)) for i in range(120)], dtype=object)
    kinds = {"good": (x, y), "nan": (x, with_nan), "constant": (x, np.ones(120)), "few": (x[:9], y[:9])}
    for name, (tokens, targets) in (kinds | {"objects": (x.astype(object), y), "ragged": (ragged, y)}).items():
        np.savez(where / f"{name}.npz", x=tokens, y=targets)
    (where / "mine.py").write_text(
        "import jax.numpy as jnp\nimport headcount as hc\n"
        "constant = hc.FunctionTask(function=lambda tokens: jnp.ones(()), length=8, dim=1)\n"
        "def broken(tokens):\n    raise KeyError('my mistake')\n"
        "mistaken = hc.FunctionTask(function=broken, length=8, dim=1)\n"
    )
    return where


def test_the_verdict_alone_goes_to_stdout_and_talk_to_stderr(measured):
    folder, result = measured
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert result.out.startswith(("no transition found: ", "needs "))
    assert f"4 models into {folder}" in result.err.replace("\n", "")
    assert "T = 8" in result.err


def test_the_same_command_again_trains_nothing(measured, folder, monkeypatch):
    headcount("measure", "max-plus-min", *TINY, "--out", folder)  # the copy remembers the command with its own name
    before = contents(folder)
    again = headcount("measure", "max-plus-min", *TINY, "--out", folder, "--json")
    assert again.code == 0
    answer = strict_json(again.out)
    assert (answer["already_done"], answer["trained"]) == (4, {})
    assert answer["verdict"] + "\n" == measured[1].out
    assert {path: data for path, data in contents(folder).items() if path.suffix == ".safetensors"} == {
        path: data for path, data in before.items() if path.suffix == ".safetensors"
    }
    assert headcount("export", folder).out == headcount("export", measured[0]).out


def test_every_verb_speaks_json(folder):
    status = strict_json(headcount("status", folder, "--json").out)
    assert status["cells"] == {"finished": 4, "diverged": 0, "failed": 0}
    assert [(sweep["cells"], sweep["done"]) for sweep in status["sweeps"]] == [(4, 4)]
    (shown,) = strict_json(headcount("show", folder, "--json").out)
    assert shown["settings"]["train"]["steps"] == 30
    rows = strict_json(headcount("export", folder, "--json").out)
    assert [(row["heads"], row["seed"]) for row in rows] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    plan = strict_json(headcount("measure", "max-plus-min", *TINY, "--out", folder, "--dry-run", "--json").out)
    assert (plan["cells"], plan["already_done"], plan["buckets"], plan["model_steps"]) == (4, 4, [], 0)
    tasks = strict_json(headcount("tasks", "--json").out)
    assert tasks["max-plus-min"]["options"] == {"length": 16, "windows": None}
    tested = strict_json(headcount("tasks", "quadratic-basins", "--json").out)
    assert all(clause["holds"] for clause in tested["clauses"])


def test_every_verb_speaks_to_people(folder):
    assert "4 of 4 cells: headcount measure max-plus-min" in headcount("status", folder).out
    assert "T = 8" in headcount("show", folder).out
    assert "quadratic-basins" in headcount("tasks").out
    assert "Assumption 2" in headcount("tasks", "max-plus-min").out
    assert headcount("--version").out == f"headcount {__version__}\n"


def test_the_doctor_trains_a_model():
    result = headcount("doctor", "--json")
    findings = {finding["check"]: finding for finding in strict_json(result.out)}
    assert findings.keys() == {"versions", "device", "disk", "training"}
    assert result.code == (0 if all(finding["fine"] for finding in findings.values()) else 1)
    assert findings["training"]["fine"], findings["training"]["found"]


def test_a_dry_run_trains_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(cli.measure, "measure_sweep", lambda *_, **__: pytest.fail("trained"))
    result = headcount("measure", "max-plus-min", *TINY, "--out", tmp_path / "results", "--dry-run")
    assert result.code == 0
    assert "4 cells, 0 already done" in result.out
    assert not (tmp_path / "results").exists()


def test_an_export_is_a_table_of_all_cells(folder, tmp_path):
    plain, timed = (headcount("export", folder, *extra).out for extra in ([], ["--timing"]))
    rows = list(csv.DictReader(io.StringIO(plain)))
    as_json = strict_json(headcount("export", folder, "--format", "json").out)
    assert [row["key"] for row in rows] == [row["key"] for row in as_json]
    assert [float(row["nmse"]) for row in rows] == [row["nmse"] for row in as_json]
    assert [row["curve"][-1] for row in as_json] == [[30, row["final_nmse"]] for row in as_json]
    assert {row["outcome"] for row in rows} == {"finished"}
    added = csv.DictReader(io.StringIO(timed)).fieldnames[-3:]
    assert added == ["seconds", "device", "finished"]
    assert not set(added) & rows[0].keys()
    assert headcount("export", folder, "-o", tmp_path / "table.csv").out == ""
    assert (tmp_path / "table.csv").read_text() == plain
    refused = headcount("export", folder, "-o", tmp_path / "table.csv" / "below")
    assert (refused.code, refused.err.count("\n")) == (1, 1)


def test_equal_results_make_equal_figures(folder, tmp_path):
    for ending in ("svg", "pdf", "png"):
        drawn = [tmp_path / f"{name}.{ending}" for name in "ab"]
        assert [headcount("show", folder, "--figure", path).code for path in drawn] == [0, 0]
        assert drawn[0].stat().st_size > 1000
        assert drawn[0].read_bytes() == drawn[1].read_bytes(), ending


def test_heads_that_share_a_width_are_one_experiment(tmp_path):
    measured = headcount("measure", "max-plus-min", *TINY, "--total-dim", 8, "--out", tmp_path, "--json")
    (shown,) = strict_json(headcount("show", tmp_path, "--json").out)
    assert shown["verdict"] == strict_json(measured.out)["verdict"]


BAD = [
    ("max-plus-min --heads 0", "whole numbers of at least 1, got 0"),
    ("max-plus-min --heads x", "must look like 1:6"),
    ("max-plus-min --heads 1:2:3:4", "must look like 1:6"),
    ("max-plus-min --heads 6:1", "names no value"),
    ("max-plus-min --heads 2,1:3", "must not repeat"),
    ("max-plus-min --heads 1,3 --total-dim 8", "3 heads do not divide total_dim 8"),
    ("max-plus-min --head-dim 4 --total-dim 8", "not both"),
    ("max-plus-min --head-dim 0", "head_dim must be a whole number of at least 1, got 0"),
    ("max-plus-min --seeds 0", "--seeds must be at least 1, got 0"),
    ("max-plus-min --steps 0", "steps must be a whole number of at least 1, got 0"),
    ("max-plus-min --learning-rates fast", "must be numbers such as"),
    ("max-plus-min --learning-rates nan", "must be positive and finite, got nan"),
    ("max-plus-min --validation-examples 5", "at least 20, got 5"),
    ("max-plus-min --windows half", "must look like 0:0.5,0.5:1"),
    ("max-plus-min --windows 0:1,0.7:0.2", "0 <= start < stop <= 1"),
    ("max-plus-min --windows 0:1,0:0.1", "at least a quarter"),
    ("max-plus-min --windows 0:1", "as many position sets, got 1"),
    ("max-plus-min --dim 3", 'has no option "dim"'),
    ("max-plus-min --figure picture.gif", "a figure ends in .svg, .pdf, .png"),
    ("max-plus-mins", 'Did you mean "max-plus-min"?'),
    ("{files}/good.npz --intrinsic-dim 3", 'takes no option "intrinsic_dim"'),
    ("{files}/good.npz --lengths 4", "no rule for length 4"),
    ("{files}/good.npz --lengths 9 --shorter leading", "length 9 cannot be made"),
    ("{files}/nan.npz", "found 1 NaN or infinite values in 120"),
    ("{files}/constant.npz", "targets are all equal to 1"),
    ("{files}/objects.npz", "holds Python objects"),
    ("{files}/ragged.npz", "holds Python objects (ragged arrays?)"),
    ("{files}/few.npz", "9 examples are too few"),
    ("{files}/missing.npz", "there is no file"),
    ("{files}/mine.py:mistaken", "my mistake"),
]


@pytest.mark.parametrize(("request_", "sentence"), BAD, ids=[request_ for request_, _ in BAD])
def test_a_request_that_cannot_be_right_is_one_sentence(folder, files, request_, sentence):
    before = contents(folder)
    task, *options = request_.format(files=files).split()
    result = headcount("measure", task, *TINY, "--out", folder, *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("headcount: ")
    assert result.err.count("\n") == 1, "one sentence"
    assert sentence in result.err
    assert contents(folder) == before


def test_an_unknown_option_is_named():
    result = headcount("measure", "max-plus-min", "--head", "2")
    assert result.code == 2
    assert "--head" in result.err


def test_a_mistyped_choice_meets_the_nearest_one(tmp_path):
    with unchecked():
        result = headcount("measure", "max-plus-min", *TINY, "--out", tmp_path / "results", "--positions", "additiv")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert 'Did you mean "additive"?' in result.err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("verb", ["status", "show", "export"])
def test_a_folder_without_results_is_told(tmp_path, verb):
    result = headcount(verb, tmp_path / "none")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert "`headcount measure` makes them" in result.err


def test_a_folder_that_cannot_be_used_is_told(folder, tmp_path):
    (tmp_path / "file.txt").touch()
    unwritable = headcount("measure", "max-plus-min", *TINY, "--out", tmp_path / "file.txt" / "below")
    before = contents(folder)
    with Store.open_for_writing(folder):
        in_use = headcount("measure", "max-plus-min", *TINY, "--out", folder)
    assert contents(folder) == before
    (folder / "results.sqlite").write_bytes(b"garbage" * 1000)
    damaged = headcount("measure", "max-plus-min", *TINY, "--out", folder)
    for result, sentence in ((unwritable, "cannot be written"), (in_use, "in use by"), (damaged, "is damaged")):
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert sentence in result.err


def test_a_task_that_nothing_can_be_learned_from_is_refused(folder, files):
    before = headcount("export", folder).out
    result = headcount("measure", f"{files}/mine.py:constant", *TINY, "--out", folder)
    assert (result.code, result.out) == (2, "")
    assert "all equal to 1" in result.err.splitlines()[-1]
    assert headcount("export", folder).out == before


def test_cells_that_fail_are_explained(tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("no luck")

    monkeypatch.setattr(run, "program", broken)
    result = headcount("measure", "max-plus-min", *TINY, "--out", tmp_path)
    assert (result.code, result.out.count("\n")) == (3, 1)
    assert "4 cells failed; the first: ValueError: no luck" in result.err
    assert strict_json(headcount("status", tmp_path, "--json").out)["cells"]["failed"] == 4
    assert headcount("show", tmp_path).code == 0


@pytest.mark.parametrize("name", ["plain", "with [brackets]", "closing[/b]", "not-utf8\udcff"])
def test_a_folder_may_have_any_name(folder, name):
    named = shutil.copytree(folder, folder.parent / name)
    result = headcount("measure", "max-plus-min", *TINY, "--out", named)
    assert result.code == 0
    told = headcount("status", named)
    assert told.code == 0
    if name.isascii():
        assert name in result.err.replace("\n", "")
        assert told.out.count(name) >= 2, "once as the folder, once in the command that made it"


def test_a_machine_without_a_home_still_works(folder, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert headcount("status", folder).code == 0


def test_a_reader_that_goes_away_is_not_complained_about(folder):
    reader, writer = os.pipe()
    os.close(reader)
    process = start("export", folder, stdout=writer)
    os.close(writer)
    assert process.communicate()[1] == ""


def when_one_bucket_is_done(process: subprocess.Popen, folder: Path, cells: int) -> None:
    """Wait until some but not all of the cells are stored."""
    while process.poll() is None:
        with contextlib.suppress(StoreError), Store.open_for_reading(folder) as store:
            if 0 < len(store.settled_keys()) < cells:
                return
        time.sleep(0.02)
    pytest.fail(f"the run ended before it could be stopped: {process.communicate()}")


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start("measure", "max-plus-min", *LONG, "--out", killed)
    when_one_bucket_is_done(process, killed, 24)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = strict_json(headcount("status", killed, "--json").out)["sweeps"][0]
    assert 0 < kept["done"] < kept["cells"] == 24
    result = headcount("measure", "max-plus-min", *LONG, "--out", killed, "--json")
    assert result.code == 0, result.err
    assert strict_json(result.out)["already_done"] == kept["done"]
    assert f"{kept['done']} of them already in" in result.err
    assert headcount("measure", "max-plus-min", *LONG, "--out", whole).code == 0
    assert headcount("export", killed).out == headcount("export", whole).out
    assert headcount("export", killed, "--json").out == headcount("export", whole, "--json").out


def test_an_interrupted_run_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    folder = tmp_path / "results"
    process = start("measure", "max-plus-min", *LONG, "--out", folder)
    when_one_bucket_is_done(process, folder, 24)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    done = strict_json(headcount("status", folder, "--json").out)["sweeps"][0]["done"]
    assert 0 < done < 24
    assert f"Stopped. {done} of 24 cells are kept in" in err
    assert f"headcount measure max-plus-min {' '.join(LONG)} --out {folder}" in err
    assert f"{24 - done} missing; run that command again to go on" in headcount("status", folder).out
