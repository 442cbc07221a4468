"""The campaign of faults in its shortest form; and that it notices each fault, by planting it."""

import importlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faults import campaign, cluster, syscalls
from faults.campaign import KINDS, Counts, run_kind, table
from faults.checks import COUNTED, Events, Problem, quiet, refused, twice
from faults.processes import Ended, Scratch, Warm, build_library, wait_for
from faults.trial import LOOP_CELLS, SWEEP_CELLS, Bench, Trial, loop_command, sweep_command, undisturbed
from headcount._draws import named_generator

from .helpers.commands import Result

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="trials are forked")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    root = tmp_path_factory.mktemp("faults")
    warm = Warm(Scratch(root, root / "cache", build_library(root)))
    loop = undisturbed(warm, loop_command, LOOP_CELLS)
    yield Bench(warm.scratch, warm, undisturbed(warm, sweep_command, SWEEP_CELLS), loop)
    warm.close()


def first(kind, bench: Bench, trials: int) -> list[Problem]:
    """The problems of the first trials of a kind."""
    drawn = itertools.islice(kind(bench, named_generator(0, kind.__name__)), trials)
    return [problem for problems in drawn for problem in problems]


def counted(problems: list[Problem]) -> set[str]:
    return {problem.what for problem in problems}


def test_a_killed_sweep_goes_on_to_the_same_bytes_and_one_that_trains_again_is_noticed(bench):
    trial = Trial(bench)
    assert trial.killed(trial.run(FAULTS_KILL="commit:3:0.001")) == []
    assert 0 < len(trial.settled) < SWEEP_CELLS
    assert trial.complete() == []
    again = Trial(bench, folder=bench.sweep.folder)
    assert again.check() == []
    assert "twice" in counted(again.check(again.run(FAULTS_PLANT="train-again")))


@pytest.mark.parametrize("reaction", [RuntimeError, None])
def test_what_comes_of_ending_a_command_that_hangs_is_no_fault_of_its_own(reaction, tmp_path, monkeypatch):
    """Where an interruption falls into a conversion of matplotlib's, a TypeError comes out, or nothing does."""
    for name in ("JAX_PLATFORMS", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))  # which the script sets for good
    monkeypatch.syspath_prepend(Path(campaign.__file__).parent)
    inputs, inputs_case = map(importlib.import_module, ("inputs", "inputs_case"))

    def hanging(*_: object) -> Result:
        try:
            time.sleep(30)
        except inputs.TooLate:
            if reaction is not None:
                raise reaction from None
        return Result(0, "", "")

    monkeypatch.setattr(inputs, "headcount", hanging)
    monkeypatch.setattr(inputs, "HANGS_SECONDS", 0.05)
    verdict = inputs.answer(inputs.Input("kind", "words", lambda _: inputs_case.Case((), refused=False)), tmp_path)
    assert verdict.faults == ("too slow",)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_no_kind_of_fault_does_harm(bench, name):
    kind = KINDS[name]
    counts = run_kind(kind.trials, bench, named_generator(1, name), 0, kind.least)
    assert counts.problems == []


@pytest.mark.parametrize("kind", [syscalls.commit_loop, syscalls.errors])
def test_a_kill_or_an_error_at_a_system_call_loses_nothing(bench, kind):
    if bench.scratch.library is None:
        pytest.skip("there is no C compiler here")
    assert first(kind, bench, 3) == []


@pytest.mark.parametrize(
    ("plant", "noticed"),
    [("lose", "lost"), ("alter", "differs"), ("no-weights", "not intact"), ("train-again", "twice")],
)
def test_a_planted_fault_is_noticed(bench, plant, noticed):
    trial = Trial(bench, bench.loop)
    assert trial.killed(trial.run(FAULTS_KILL="commit:3:0.000001")) == []
    assert 0 < len(trial.settled) < LOOP_CELLS
    assert noticed in counted(trial.check(trial.run(FAULTS_PLANT=plant)))


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:8192] = bytes(4096)
    path.write_bytes(content)


def test_a_damaged_file_and_a_lost_folder_are_noticed(bench):
    trial = Trial(bench, bench.loop)
    assert trial.check(trial.run()) == []
    damaged(trial.folder / "results.sqlite")
    assert "not intact" in counted(trial.check())
    (trial.folder / "results.sqlite").unlink()
    trial.settled = bench.loop.contents.keys
    assert counted(trial.check()) == {"lost"}


def test_a_kill_that_does_not_happen_is_noticed(bench):
    trial = Trial(bench, bench.loop)
    assert counted(trial.killed(trial.run(FAULTS_FOLDER=trial.folder, FAULTS_AT=10**6), surely=True)) == {
        "not completed"
    }


def test_a_file_and_a_worker_that_are_left_over_are_noticed(bench, monkeypatch):
    trial = Trial(bench, bench.loop)
    trial.folder.mkdir()
    (trial.folder / "half.unfinished").write_bytes(b"half")
    assert counted(trial.complete()) == {"not completed"}
    monkeypatch.setattr(cluster, "GONE_SECONDS", 0.01)
    monkeypatch.setattr(cluster, "WORKER", os.fsencode(sys.executable))
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, env=os.environ | trial.environment()) as left:
        assert wait_for(lambda: bool(cluster.workers_of(trial.log)), 10)
        assert counted(cluster._workers_ended(trial)) == {"not completed"}
        left.kill()


def test_what_a_process_says_is_judged():
    failed = "Traceback (most recent call last):\n  File\nKeyError: 3\n"
    assert counted(quiet(Ended(1, "", failed))) == {"traceback"}
    assert counted(refused(Ended(1, "", "it failed\n"))) == {"no sentence"}
    assert counted(refused(Ended(0, "", ""))) == {"no sentence"}
    assert counted(refused(Ended(-signal.SIGSEGV, "", "headcount: fine"))) == {"no sentence"}
    assert refused(Ended(1, "", "headcount: the disk is full.\n")) == []


def test_a_cell_that_comes_to_training_after_its_commit_is_noticed():
    lines = ((1, "train", ("a", "b")), (1, "committed", ("a",)), (2, "train", ("b", "c")), (2, "train", ("a",)))
    assert [problem.detail for problem in twice(Events(lines), {"c"})] == [
        "cell c was settled and came to 'train' again",
        "cell a was settled and came to 'train' again",
    ]


def test_a_campaign_that_fails_itself_is_no_success(bench):
    def broken(bench, draw):
        yield []
        raise KeyError("mistaken")

    counts = run_kind(broken, bench, named_generator(0, "broken"), 10)
    assert (counts.trials, counted(counts.problems)) == (1, {"not completed"})
    row = table({"broken": counts, "fine": Counts(3)}).splitlines()[1].split()
    assert row[1:] == ["1", *("1" if what == "not completed" else "0" for what in COUNTED), "0"]
