"""What a worker of a cluster does, in this process and without Ray."""

import os
import socket

import numpy as np
import pytest

from headcount._user_files import load_python_file
from headcount.cluster import worker
from headcount.cluster.by_value import local_modules
from headcount.cluster.worker import KnownTask, WorkerSetup, introduce, train_buckets
from headcount.engine import Hardware, executor_of, plan_sweep, run_sweep, versions
from headcount.engine.trainer import Glimpse
from headcount.errors import InputError, StoreError
from headcount.events import Event
from headcount.store import Store, json_text
from headcount.tasks import FunctionTask

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import CPU, TASK, swept

SETUP = WorkerSetup({}, versions())


class News(list):
    put = list.append


@pytest.fixture(autouse=True)
def references(monkeypatch) -> list:
    """References to tasks are the tasks themselves, which are kept here."""
    kept = []

    def known(task):
        if not any(each.task is task for each in kept):
            kept.append(KnownTask(task))
        return next(each for each in kept if each.task is task)

    monkeypatch.setattr(worker, "_known_task", known)
    return kept


def planned(task=TASK):
    """A task, and the only bucket of its sweep."""
    sweep = swept(task, length=[4])
    return sweep.by_key[json_text(task.spec())], plan_sweep(sweep, machine=CPU).buckets


def trained(task, buckets, news=(), *, watched=False):
    return train_buckets(SETUP, [task], buckets, {}, news, watched)


def test_a_worker_trains_what_threads_train_and_tells_of_it(tmp_path):
    news = News()
    (result,), error = trained(*planned(), news, watched=True)
    assert error is None
    assert {type(each) for each in news} <= {Event, Glimpse}
    assert [each.done for each in news if isinstance(each, Event)] == [1, 2, 3, 4]
    with Store.open_for_writing(tmp_path) as store:
        run_sweep(swept(length=[4]), store)
        for record in result.records:
            (stored,) = [each for each in store.records() if each.cell == record.cell]
            assert (record.metrics, record.curve) == (stored.metrics, stored.curve)
            kept, sent = store.weights(record.cell.key), result.weights[record.cell.key]
            assert {name: array.tobytes() for name, array in kept.items()} == {
                name: np.asarray(array).tobytes() for name, array in sent.items()
            }


def test_workers_of_other_versions_are_refused():
    assert isinstance(introduce(SETUP), Hardware)
    refused = introduce(SETUP._replace(versions=versions() | {"jax": "0.0.1"}))
    assert isinstance(refused, InputError)
    assert "0.0.1" in str(refused)
    assert versions()["jax"] in str(refused)


def test_a_worker_trains_only_the_program_that_the_key_stands_for(monkeypatch):
    """A function that reads its surroundings, which differ on a worker."""

    def target(tokens):
        return tokens[:, 0].max() + float(os.environ["ALPHA"]) * tokens[:, 1].min()

    task = FunctionTask(function=target, length=4, dim=2)
    monkeypatch.setenv("ALPHA", "-20")
    plan = planned(task)
    monkeypatch.setenv("ALPHA", "1")
    results, refused = trained(*plan)
    assert results == []
    assert isinstance(refused, InputError)
    assert task.name in str(refused)
    assert socket.gethostname() in str(refused)


def opened(path):
    path.open().close()


def imported(path):
    if not path.exists():
        raise ModuleNotFoundError(path.name)


@pytest.mark.parametrize(("read", "hint"), [(opened, "outside of the function"), (imported, "top of the file")])
def test_a_worker_without_a_users_file_says_where_and_what_to_do(tmp_path, read, hint):
    path = tmp_path / "only_here.py"
    path.touch()

    def target(tokens):
        read(path)
        return tokens[:, 0].max()

    task = FunctionTask(function=target, length=4, dim=2)
    plan = planned(task)
    path.unlink()
    _, refused = trained(*plan)
    assert isinstance(refused, InputError)
    assert socket.gethostname() in str(refused)
    assert hint in str(refused)


def test_a_folder_in_use_is_refused_before_a_cluster_is_started(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr("headcount.cluster.ray_executor", lambda *_, **__: started.append(1))
    with (
        Store.open_for_writing(tmp_path),
        pytest.raises(StoreError, match=tmp_path.name),
        executor_of("ray", folder=tmp_path),
    ):
        pass
    assert not started


def test_local_modules_are_sent_and_installed_ones_are_not(tmp_path):
    (tmp_path / "mine_for_cluster.py").write_text("value = 1")
    load_python_file(tmp_path / "mine_for_cluster.py")
    names = {module.__name__ for module in local_modules()}
    assert "headcount_user_mine_for_cluster" in names
    assert not {name for name in names if name.partition(".")[0] in ("headcount", "jax", "numpy", "json", "equinox")}
