"""Runs that are killed, streams that are closed, disks that are full: in processes of their own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from headcount.errors import StoreError
from headcount.store import Store

from ..helpers.commands import a_sentence, contents, headcount, start, strict_json
from .test_measure import MEASURE
from .test_question import ASK, starts

KILLED = """
import os, signal
from headcount.cli import main
from headcount.store import Store
commit = Store.commit
def commit_and_die(store, records, weights):
    first = records[:4]  # of one length, where those of the other have finished as well by now
    commit(store, first, {record.cell.key: weights[record.cell.key] for record in first})
    os.kill(os.getpid(), signal.SIGKILL)
Store.commit = commit_and_die
main()
"""
KILLED_LATER = """
import os, signal, sys
from headcount.cli import main
from headcount.store import Store
commit, left = Store.commit, int(sys.argv.pop())
def commit_and_die(*arguments):
    global left
    commit(*arguments)
    left -= 1
    left or os.kill(os.getpid(), signal.SIGKILL)
Store.commit = commit_and_die
main()
"""
FULL = """
import resource, sys
from headcount.cli import main
sys.dont_write_bytecode = True  # Python would keep a module's first half, and others would import it
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop()), resource.RLIM_INFINITY))
main()
"""


def run(script: str, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def weights_in(root) -> dict[str, dict[str, bytes]]:
    """Every weight by its cell; which cells share a file is a matter of when they ended."""
    with Store.open_for_reading(root) as store:
        return {
            record.cell.key: {name: array.tobytes() for name, array in store.weights(record.cell.key).items()}
            for record in store.records()
        }


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert run(KILLED, *MEASURE, "--out", killed).returncode == -signal.SIGKILL
    (kept,) = strict_json(headcount("status", killed, "--json").out)["experiments"]
    assert (kept["done"], kept["cells"]) == (4, 8)
    assert "4 missing" in headcount("status", killed).out
    assert strict_json(headcount("export", killed, "--json").out)[0]["outcome"] == "finished"
    result = headcount(*MEASURE, "--out", killed, "--json")
    assert (result.code, strict_json(result.out)["already_done"]) == (0, 4), result.err
    assert headcount(*MEASURE, "--out", whole).code == 0
    for form in ("csv", "json"):
        tables = [headcount("export", folder, "--format", form).out for folder in (killed, whole)]
        assert tables[0] == tables[1], form
    assert weights_in(killed) == weights_in(whole)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_long_run_stopped_from_outside_goes_on(tmp_path, number):
    command = (*MEASURE, "--steps", 8000, "--lengths", "4,5,6,7", "--seeds", 4, "--out", tmp_path)
    process = start(*command)
    while process.poll() is None:
        with contextlib.suppress(StoreError), Store.open_for_reading(tmp_path) as store:
            if store.settled_keys():
                break
        time.sleep(0.02)
    os.killpg(process.pid, number)
    out, err = process.communicate()
    done = strict_json(headcount("status", tmp_path, "--json").out)["experiments"][0]["done"]
    assert (0 < done < 32, out, "Traceback" in err) == (True, "", False)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or f"{done} of 32 cells" in err
    assert strict_json(headcount(*command, "--json").out)["already_done"] == done


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 3, 4])
def test_a_question_killed_in_mid_descent_goes_on_to_the_same_bytes(tmp_path, commits):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = (*ASK, "--lengths", "4,5")
    assert run(KILLED_LATER, *command, "--out", killed, commits).returncode == -signal.SIGKILL
    kept = len(starts(killed))
    assert ("descended" in starts(killed)) == (commits > 2)
    result = headcount(*command, "--out", killed, "--json")
    assert (result.code, strict_json(result.out)["already_done"] >= kept) == (0, True), result.err
    assert headcount(*command, "--out", whole).code == 0
    assert kept < len(starts(whole))
    for form in ("csv", "json"):
        tables = [headcount("export", folder, "--format", form).out for folder in (killed, whole)]
        assert tables[0] == tables[1], form
    assert weights_in(killed) == weights_in(whole)
    rows = strict_json(headcount("verify", killed, "--cells", 99, "--json").out)
    assert {row["agreement"] for row in rows} == {"same"}


def test_a_reader_that_goes_away_is_not_complained_about(own):
    reader, writer = os.pipe()
    os.close(reader)
    process = start("export", own, stdout=writer)
    os.close(writer)
    assert process.communicate()[1] == ""


@pytest.mark.parametrize("what", ["page", pytest.param("figures", marks=pytest.mark.slow)])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(own, tmp_path, what):
    # A file size limit is how a process without rights meets a full disk.
    page, figures, before = tmp_path / "page.html", tmp_path / "figures", contents(own)
    page.write_text("old")
    target = ["-o", page] if what == "page" else ["-o", "/dev/null", "--figures", figures, "--format", "pdf"]
    ended = run(FULL, "report", own, *target, 2000)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("headcount: ")
    assert str(page if what == "page" else figures) in last
    assert page.read_text() == "old"
    assert not [path for path in tmp_path.glob("figures/*") if b"%%EOF" not in path.read_bytes()], "a torn figure"
    assert not list(tmp_path.rglob("*.unfinished"))
    assert contents(own) == before


def test_a_run_on_a_full_disk_keeps_what_was_committed(own):
    ended = run(FULL, *MEASURE, "--out", own, 4096)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    assert str(own) in ended.stderr.splitlines()[-1]
    assert strict_json(headcount("status", own, "--json").out)["cells"]["finished"] == 23


@pytest.mark.slow
@pytest.mark.parametrize("taken", ["results.sqlite", ""])
def test_results_that_are_deleted_while_a_run_writes_end_it(tmp_path, monkeypatch, taken):
    root, commit = tmp_path / "results", Store.commit

    def commit_and_lose(store, *arguments):
        commit(store, *arguments)
        (root / taken).unlink() if taken else shutil.rmtree(root)

    monkeypatch.setattr(Store, "commit", commit_and_lose)
    ended = headcount(*MEASURE, "--out", root)
    a_sentence(ended, 1, str(root / taken if taken else root))
    assert not (root / "results.sqlite").exists()
