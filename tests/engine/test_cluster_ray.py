"""Buckets on the workers of a real Ray cluster on this machine."""

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from headcount.cluster import ray_executor
from headcount.engine import run_sweep
from headcount.errors import InputError
from headcount.events import Event
from headcount.search import Question
from headcount.store import Outcome, Store
from headcount.tasks import FunctionTask
from headcount.tasks.find import find_task

from ..helpers.sweeps import TASK, TRAIN, class_token, swept
from .test_run import everything_in

pytest.importorskip("ray")
from headcount.cluster import connection, dispatch

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def executor():
    with ray_executor("ray", workers=2) as executor:
        yield executor


def do(sweep, root, **options):
    with Store.open_for_writing(root) as store:
        return run_sweep(sweep, store, **options)


def test_a_cluster_trains_the_bytes_that_threads_train(executor, tmp_path):
    """Round after round, the later ones from the weights of the first."""
    question = Question(
        task=TASK, model=class_token, train=replace(TRAIN, steps=20), heads=(1, 2, 3), most=3, lengths=(4,)
    )
    parents = question.random([3], range(2))
    children = [question.descended(parents[0], (1,)), question.descended(parents[1], (0, 2))]
    seen = []
    for root, options in ((tmp_path / "ray", {"executor": executor}), (tmp_path / "threads", {})):
        watch = lambda glimpse: seen.append(glimpse.cell.key) or {"looked": glimpse.step}  # noqa: E731
        do(question.sweep_of(parents), root, watch=watch, **options)
        do(question.sweep_of([*parents, *children]), root, **options)
        do(swept(), root, **options)
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "threads")
    assert seen[0] == seen[1]
    with Store.open_for_reading(tmp_path / "ray") as store:
        assert any("looked" in record.provenance for record in store.records())


def test_a_users_file_its_helper_and_its_arrays_reach_the_workers(executor, tmp_path, monkeypatch):
    (tmp_path / "helper_of_mine.py").write_text(
        "import jax.numpy as jnp\ndef best(values):\n    return jnp.max(values)"
    )
    (tmp_path / "mine.py").write_text(
        "import numpy as np, helper_of_mine\n"
        "from headcount import FunctionTask\n"
        "WEIGHTS = np.linspace(1, 2, 3, dtype=np.float32)\n"
        "def target(tokens):\n    return helper_of_mine.best(tokens @ WEIGHTS)\n"
        "task = FunctionTask(function=target, length=4, dim=3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    task = find_task(f"{tmp_path / 'mine.py'}:task")
    sweep = swept(task, length=[4])
    do(sweep, tmp_path / "ray", executor=executor)
    do(sweep, tmp_path / "threads")
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "threads")


def killing(flag: Path, *, always: bool) -> FunctionTask:
    """A task that kills whoever trains it, but for this process: once, or always."""
    here = os.getpid()

    def target(tokens):
        if os.getpid() != here and flag.exists():
            if not always:
                flag.unlink()
            os.kill(os.getpid(), 9)
        return tokens[:, 0].max()

    return FunctionTask(function=target, length=4, dim=2, name=flag.name, options={"flag": flag.name})


def test_a_killed_worker_costs_nothing_but_time(executor, tmp_path, capfd):
    flag = tmp_path / "once"
    flag.touch()
    summary = do(swept(killing(flag, always=False), length=[4]), tmp_path / "results", executor=executor)
    assert not flag.exists()
    assert summary.outcomes == {Outcome.FINISHED: 4}
    assert not capfd.readouterr().out, "Ray reports deaths there, and results are printed there"


def test_a_bucket_that_kills_every_worker_fails_with_a_sentence(executor, tmp_path, monkeypatch):
    monkeypatch.setitem(executor._options, "max_retries", 1)
    flag = tmp_path / "always"
    flag.touch()
    summary = do(swept(killing(flag, always=True), length=[4]), tmp_path / "results", executor=executor)
    assert summary.outcomes == {Outcome.FAILED: 4}
    assert do(swept(), tmp_path / "results", executor=executor).failed == 0, "workers are back"


def test_a_task_that_cannot_be_sent_is_refused_with_a_sentence(executor, tmp_path):
    lock = threading.Lock()

    def target(tokens):
        with lock:
            return tokens[:, 0].max()

    with pytest.raises(InputError, match="cannot be sent"):
        do(swept(FunctionTask(function=target, length=4, dim=2, options={}), length=[4]), tmp_path, executor=executor)


def test_a_cluster_that_is_lost_ends_a_run_with_a_sentence(executor, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(connection, "LOST_SECONDS", 0.0)
    monkeypatch.setattr(connection, "_listens", lambda place: False)
    with pytest.raises(connection.ClusterLostError, match="the same command"):
        do(swept(seed=range(40)), tmp_path / "results", executor=executor)


def test_a_stop_keeps_what_is_done_and_the_same_call_goes_on(executor, tmp_path):
    sweep, stop = swept(seed=range(40)), threading.Event()

    def stop_early(event: Event) -> None:
        if event.kind == "workers" and event.done:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        do(sweep, tmp_path / "results", executor=executor, events=stop_early, stop=stop)
    kept = everything_in(tmp_path / "results")
    assert 0 < len(kept) < len(sweep.cells)
    assert do(sweep, tmp_path / "results", executor=executor).already_done == len(kept)


@pytest.mark.parametrize("address", ["localhost:1", "ray://localhost:1", "nowhere"])
def test_an_address_where_nothing_answers_is_refused(address):
    with pytest.raises(InputError) as refused:
        ray_executor(address)
    assert address in str(refused.value)


def test_without_ray_a_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install"):
        ray_executor("ray")


def test_an_address_other_than_the_connected_one_is_refused(executor):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=str(port)):
            ray_executor(f"127.0.0.1:{port}")


def test_an_interrupt_while_an_answer_is_read_ends_and_keeps_what_was_finished(executor, tmp_path, monkeypatch):
    take_in, calls = dispatch.ClusterRun.take_in, []

    def interrupted(run, reference):
        take_in(run, reference)
        calls.append(reference)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(dispatch.ClusterRun, "take_in", interrupted)
    with pytest.raises(KeyboardInterrupt):
        do(swept(seed=range(40)), tmp_path / "results", executor=executor)
    assert everything_in(tmp_path / "results")


def test_a_file_that_changes_between_two_jobs_is_read_again(executor, tmp_path):
    """The same function, so the same task, but another program."""
    path = tmp_path / "scale.txt"

    def target(tokens):
        return tokens[:, 0].max() + float(path.read_text()) * tokens[:, 1].min()

    contents = []
    for name, options in (("ray", {"executor": executor}), ("threads", {})):
        for scale in ("1", "-20"):
            path.write_text(scale)
            do(swept(FunctionTask(function=target, length=4, dim=2), length=[4]), tmp_path / name, **options)
        contents.append(everything_in(tmp_path / name))
    assert contents[0] == contents[1]
