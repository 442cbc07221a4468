"""Buckets on a pretended cluster, whose workers are slow, die, come and go: nothing is lost, nothing trained twice."""

import os
import random
import socket
import threading
from collections import Counter
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount._user_files import load_python_file
from headcount.cluster import dispatch
from headcount.cluster.by_value import local_modules
from headcount.cluster.dispatch import Cluster, ClusterExecutor, ClusterLostError, Died, Gone, Told, planned_for
from headcount.cluster.queue import MAX_DEATHS, BucketQueue, Seat
from headcount.cluster.worker import Checkpoint, Errand, Finished, Introduction, Ready, Seen, Worker
from headcount.engine import executor_of, plan_sweep, run_sweep, versions
from headcount.engine.data import PreparedExamples
from headcount.engine.executors import Job
from headcount.engine.plan import Fit
from headcount.engine.records import failure
from headcount.engine.trainer import Glimpse, Trained
from headcount.errors import InputError, StoreError
from headcount.events import Event, quiet
from headcount.store import Outcome, Store
from headcount.tasks import FunctionTask

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import CPU, GPU, TRAIN, class_token, swept

MODEL = class_token().init(0, length=4, dim=1, outputs=1)


@pytest.fixture(autouse=True)
def no_drain(monkeypatch):
    """A test that fails does not wait for workers that were never asked."""
    monkeypatch.setattr(dispatch, "DRAIN_SECONDS", 1.0)


class PretendCluster(Cluster):
    """Workers whose fate is drawn: each event, one of them finishes, dies, is lost, or another one comes."""

    def __init__(self, machines, chance, *, poison=(), accidents=0):
        self.chance, self.poison, self.accidents = chance, poison, accidents
        self.living = [Seat(f"w{i}", f"n{i % 2}", machine) for i, machine in enumerate(machines)]
        self.hands, self.trained, self.taken, self.came, self.stopped = {}, Counter(), [], len(machines), False

    def seats(self):
        return tuple(self.living)

    def begin(self, job, tasks, probes):
        self.hands.clear()

    def start(self, seat, errand):
        assert seat in self.living
        assert sum(holder == seat for holder, _ in self.hands.values()) < seat.machine.workers
        assert not any(errand.bucket.cells[0] in other.bucket.cells for _, other in self.hands.values()), "by two"
        self.hands[errand.ticket] = seat, errand
        self.taken.append((seat, errand))

    def stop(self, job):
        self.stopped = True

    def events(self, seconds):
        if not self.hands:
            return []
        ticket = self.chance.choice(sorted(self.hands))
        seat, errand = self.hands[ticket]
        cells = errand.bucket.cells
        if self.stopped:
            del self.hands[ticket]
            return [Finished(ticket=ticket, result=None, news=())]
        if any(cell.key in self.poison for cell in cells):
            return self._deaths(seat)
        if self.accidents:
            self.accidents -= 1
            match self.chance.randrange(4):
                case 0:
                    return [Told((Ready(ticket), Checkpoint(ticket, 2, np.ones(len(cells)))))]
                case 1:
                    return self._deaths(seat)
                case 2 if len(self.living) > 1:
                    self.living.remove(seat)
                    self.hands = {number: held for number, held in self.hands.items() if held[0] != seat}
                    return [Gone(seat)]
                case 3:
                    self.came += 1
                    self.living.append(Seat(f"w{self.came}", "another", seat.machine))
                    return []
        del self.hands[ticket]
        self.trained.update(cell.key for cell in cells)
        records = tuple(replace(failure(cell, ""), outcome=Outcome.DIVERGED) for cell in cells)
        glimpse = Seen(ticket, Glimpse(cells[0], 2, MODEL, np.zeros((1, 4, 2)), 0.5, (1.0, 0.1)))
        return [Finished(ticket=ticket, result=Trained(records, {}), news=(Ready(ticket), glimpse))]

    def _deaths(self, seat):
        dead = [number for number, held in self.hands.items() if held[0] == seat]
        return [Died(number) for number in dead if self.hands.pop(number)]


def job_of(sweep, machine, **options):
    plan = plan_sweep(sweep, machine=machine)
    chosen = {"watch": None, "events": quiet, "stop": threading.Event(), "examples": PreparedExamples()}
    return Job(
        tasks=sweep.by_key, buckets=plan.buckets, programs=plan.programs, weights_of=lambda key: {}, **chosen | options
    )


SWEEP = swept(seed=range(11))
KEYS = {cell.key for cell in SWEEP.cells}
WIDE = replace(GPU, workers=3)
kinds = st.lists(st.sampled_from([CPU, WIDE]), min_size=1, max_size=4)


@given(kinds, st.randoms(use_true_random=False), st.integers(0, 12))
def test_every_cell_is_trained_once_whatever_becomes_of_the_workers(machines, random, accidents):
    cluster = PretendCluster(machines, random, accidents=accidents)
    steps, workers = [], []

    def hear(event: Event) -> None:
        if event.kind == "steps":
            steps.append(event.done)
        elif event.kind == "workers":
            workers.append((event.detail, event.done, event.total))

    executor = ClusterExecutor(cluster)
    job = job_of(SWEEP, executor.machine, events=hear, watch=lambda glimpse: {"early": glimpse.step})
    results = [trained for finished in executor.trained(job) for trained in finished]
    assert Counter(record.cell.key for each in results for record in each.records) == Counter(KEYS)
    assert cluster.trained == Counter(KEYS)
    assert sum(steps) == len(KEYS) * TRAIN.steps, "steps that are taken again are told of once"
    assert all(each.records[0].provenance["early"] == 2 for each in results)
    _, done, buckets = workers[-1]
    assert done == buckets == len(results)
    for seat, errand in cluster.taken:
        if seat.machine == CPU:
            assert len(errand.bucket.cells) <= errand.bucket.slots <= 8, "cut to what fits"


@given(kinds, st.randoms(use_true_random=False))
def test_only_a_bucket_that_kills_its_workers_is_given_up(machines, random):
    poisoned = random.choice(sorted(KEYS))
    cluster = PretendCluster(machines, random, poison=(poisoned,))
    executor = ClusterExecutor(cluster)
    job = job_of(SWEEP, executor.machine)
    results = [trained for finished in executor.trained(job) for trained in finished]
    records = [record for each in results for record in each.records]
    assert Counter(record.cell.key for record in records) == Counter(KEYS)
    failed = {record.cell.key: record.message for record in records if record.outcome is Outcome.FAILED}
    assert poisoned in failed
    assert str(MAX_DEATHS + 1) in failed[poisoned]
    assert cluster.trained == Counter(KEYS - set(failed))
    (bucket,) = [each for each in results if any(record.cell.key == poisoned for record in each.records)]
    assert set(failed) == {record.cell.key for record in bucket.records}


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_stop_begins_nothing_and_keeps_what_is_finished(random, finished):
    cluster = PretendCluster([CPU, CPU], random)
    job = job_of(SWEEP, CPU)
    results = ClusterExecutor(cluster).trained(job)
    kept = [*chain.from_iterable(next(results) for _ in range(finished))]
    begun = len(cluster.taken)
    job.stop.set()
    kept += chain.from_iterable(results)
    assert len(cluster.taken) == begun
    assert not cluster.hands
    assert Counter(record.cell.key for each in kept for record in each.records) == cluster.trained


def test_what_is_wrong_with_the_task_ends_the_job():
    cluster = PretendCluster([CPU, CPU], random.Random(0))
    train = cluster.events
    cluster.events = lambda seconds: [
        replace(event, result=InputError("no such task")) if isinstance(event, Finished) and event.result else event
        for event in train(seconds)
    ]
    job = job_of(SWEEP, CPU)
    with pytest.raises(InputError, match="no such task"):
        list(ClusterExecutor(cluster).trained(job))
    assert job.stop.is_set()
    assert cluster.stopped
    assert not cluster.hands


def test_what_finishes_after_an_error_is_kept():
    """Here an answer that is read together with the error."""
    cluster = PretendCluster([CPU] * 3, random.Random(0))
    one_by_one = cluster.events

    def events(seconds):
        first, *others = one_by_one(seconds) + one_by_one(seconds)
        return [first if cluster.stopped else replace(first, result=InputError("no such task")), *others]

    cluster.events = events
    kept = []
    with pytest.raises(InputError, match="no such task"):
        kept.extend(ClusterExecutor(cluster).trained(job_of(SWEEP, CPU)))
    assert len(kept) == 1


class InterruptedCluster(PretendCluster):
    """An interrupt comes while an answer is read, which nobody gives again; then the cluster is lost, or is not."""

    def __init__(self, *, lost):
        super().__init__([CPU, CPU], random.Random(0))
        self.lost, self.interrupted = lost, False

    def idle(self):
        return not self.hands

    def events(self, seconds):
        if not self.interrupted:
            self.interrupted = bool(super().events(seconds))
            raise KeyboardInterrupt
        if self.lost:
            raise ClusterLostError("gone")
        return super().events(seconds)


@pytest.mark.parametrize("lost", [False, True])
def test_an_interrupt_while_an_answer_is_read_ends_the_job(lost):
    with pytest.raises(KeyboardInterrupt):
        list(ClusterExecutor(InterruptedCluster(lost=lost)).trained(job_of(SWEEP, CPU)))


def test_a_lost_cluster_ends_a_job_that_was_not_stopped_with_its_error():
    cluster, job = InterruptedCluster(lost=True), job_of(SWEEP, CPU)
    cluster.interrupted = True
    with pytest.raises(ClusterLostError):
        list(ClusterExecutor(cluster).trained(job))


def test_a_program_is_compiled_by_one_worker_of_a_node_and_kept():
    sweep = swept(heads=[1, 2], length=[4, 5], seed=range(40))
    queue = BucketQueue(plan_sweep(sweep, machine=CPU).buckets, CPU, Fit(sweep.by_key))
    first, second, third = (Seat(name, "one", CPU) for name in "abc")
    seats = (first, second, third)
    one, two = queue.take(first, seats), queue.take(second, seats)
    assert one is not None
    assert two is not None
    assert one.program != two.program
    assert queue.take(third, seats) is None, "both programs are being compiled on its node"
    assert queue.take(Seat("d", "two", CPU), seats) is not None, "another node cannot read them"
    queue.compiled(one.number)
    queue.finish(one.number)
    third_takes, first_takes = queue.take(third, seats), queue.take(first, seats)
    assert third_takes is not None
    assert first_takes is not None
    assert third_takes.program == one.program, "read from the node's disk"
    assert first_takes.program == one.program, "in memory"


class HundredTimesSlower(Fit):
    """On a CPU, whatever the bucket."""

    def seconds(self, bucket, machine):
        return len(bucket.cells) * (1.0 if machine.side_by_side else 100.0)


def test_a_slow_worker_leaves_the_last_buckets_to_fast_ones():
    sweep = swept(seed=range(200), length=[4])
    fast, slow = Seat("fast", "one", GPU), Seat("slow", "two", CPU)
    queue = BucketQueue(plan_sweep(sweep, machine=GPU).buckets, GPU, HundredTimesSlower(sweep.by_key))
    assert queue.take(slow, (fast, slow)) is None, "800 seconds for 8 of 400 cells"
    assert queue.take(slow, (slow,)) is not None, "there is nobody else"


def test_a_cluster_is_planned_for_by_its_largest_workers():
    def seats(*machines, cores=0):
        return [Seat(str(index), f"node {index % 2}", machine, cores) for index, machine in enumerate(machines)]

    large = replace(GPU, memory=2 << 30)
    assert planned_for(seats(CPU, GPU, large, CPU, cores=1)) == replace(large, machines=2)
    assert planned_for(seats(*[CPU] * 3)) == replace(CPU, machines=3)
    assert planned_for(seats(*[CPU] * 16, cores=2)) == replace(CPU, machines=4), "two nodes of two cores"
    roomy = replace(CPU, memory=2 << 30)
    assert planned_for(seats(CPU, roomy, CPU)).memory == 2 << 30, "it can have what others cannot"
    one, many = (plan_sweep(SWEEP, machine=replace(GPU, machines=count)) for count in (1, 10))
    assert many.seconds < one.seconds
    assert many.buckets == one.buckets


def test_workers_of_other_versions_are_refused():
    ours = Introduction(CPU, "a host", versions())
    ours.require_our_versions()
    with pytest.raises(InputError, match=r"0\.0\.1") as refused:
        replace(ours, versions=versions() | {"jax": "0.0.1"}).require_our_versions()
    assert versions()["jax"] in str(refused.value)


def test_a_worker_trains_tells_and_stops(tmp_path):
    """The class that a cluster runs, in this process: what it trains is what threads train."""
    sweep = swept(length=[4])
    (bucket,) = plan_sweep(sweep, machine=CPU).buckets
    worker, fetched = Worker(), []

    def fetch():
        fetched.append(1)
        return sweep.by_key[bucket.shape.task]

    errand = Errand(job=1, ticket=7, bucket=bucket, parents={}, watched=True)
    first, second = worker.train(errand, fetch), worker.train(replace(errand, job=2), fetch)
    assert len(fetched) == 1
    with Store.open_for_writing(tmp_path) as store:
        run_sweep(sweep, store)
        for finished in (first, second):
            assert isinstance(finished.result, Trained)
            assert {type(each) for each in finished.news} == {Ready, Checkpoint}
            for record in finished.result.records:
                (stored,) = [each for each in store.records() if each.cell == record.cell]
                assert (record.metrics, record.curve) == (stored.metrics, stored.curve)
                kept, sent = store.weights(record.cell.key), finished.result.weights[record.cell.key]
                assert {name: array.tobytes() for name, array in kept.items()} == {
                    name: np.asarray(array).tobytes() for name, array in sent.items()
                }
    worker.stop(2)
    assert worker.train(replace(errand, job=2), fetch).result is None
    assert worker.train(replace(errand, job=3), fetch).result is not None


def test_a_worker_trains_only_the_program_that_the_key_stands_for(monkeypatch):
    """A function that reads its surroundings, which differ on a worker, or change between two jobs."""

    def target(tokens):
        return tokens[:, 0].max() + float(os.environ["ALPHA"]) * tokens[:, 1].min()

    task, worker = FunctionTask(function=target, length=4, dim=2), Worker()

    def errand(job, alpha):
        monkeypatch.setenv("ALPHA", alpha)
        (bucket,) = plan_sweep(swept(task, length=[4], heads=[1], seed=[0]), machine=CPU).buckets
        return Errand(job=job, ticket=1, bucket=bucket, parents={}, watched=False)

    def trained(errand):
        result = worker.train(errand, lambda: task.at(4)).result
        assert isinstance(result, Trained)
        return result.records[0].metrics["nmse"]

    one, other = trained(errand(1, "1")), errand(2, "-20")
    monkeypatch.setenv("ALPHA", "1")
    refused = worker.train(other, lambda: task.at(4)).result
    assert isinstance(refused, InputError)
    assert task.name in str(refused)
    assert socket.gethostname() in str(refused)
    monkeypatch.setenv("ALPHA", "-20")
    assert trained(other) != one, "with data of its own"


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
    (bucket,) = plan_sweep(swept(task, length=[4]), machine=CPU).buckets
    path.unlink()
    errand = Errand(job=1, ticket=1, bucket=bucket, parents={}, watched=False)
    refused = Worker().train(errand, lambda: task).result
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
