"""Workers that train nothing, on a clock that is moved on instead of waited for, under the dispatch of a real run.

`simulate` runs `Dispatch` and `BucketQueue` of `headcount.cluster` as they are. Their workers compile, train,
die and start again in virtual time, and the process that commits is busy for as long as a commit was measured to take.
"""

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headcount.cluster.dispatch import Cluster, Died, Dispatch, Event, Gone, Told
from headcount.cluster.queue import BucketQueue, Seat
from headcount.cluster.worker import Errand, Finished, Ready
from headcount.engine.buckets import Bucket, Shape
from headcount.engine.data import PreparedExamples
from headcount.engine.executors import Job
from headcount.engine.hardware import Hardware
from headcount.engine.trainer import Trained
from headcount.events import quiet
from headcount.keys import named_generator
from headcount.models import ClassTokenSpec
from headcount.store import Cell, TrainSpec

CELL = Cell(task={"task": "pretended"}, length=8, model={"heads": 1}, train=TrainSpec(steps=1), seed=0)


@dataclass(frozen=True)
class TimedBucket(Bucket):
    """A bucket that takes `seconds` on a worker's device, once its program is compiled."""

    seconds: float = 0.0


def timed(seconds: Iterable[float], *, programs: int = 1) -> list[TimedBucket]:
    """Buckets that take so long, their programs in turn."""
    shapes = [Shape("pretended", number, ClassTokenSpec(heads=1), CELL.train) for number in range(programs)]
    return [TimedBucket(shapes[i % programs], (CELL,), 1, each) for i, each in enumerate(seconds)]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds, measured or assumed.

    Args:
        commit: Of this process per bucket.
        call: Of this process per message to or from a worker: a bucket, its answer, the answer to a poll.
        look: Of this process per worker each time it asks what happened.
        startup: Of a worker before its first bucket, and again after it died.
        compile: Of a program that no worker of the node has compiled yet.
        read: Of a program that is on the node's disk.
        worker_mtbf: Mean time between the deaths of one worker.
        node_lost: A worker that dies is lost with its node: its buckets go back to the queue.
        replaced: Until a worker on another node has come for it.
        charge_dispatch: The CPU time that dispatch takes here is added to the virtual clock.
    """

    commit: float = 0.0
    call: float = 0.0
    look: float = 0.0
    startup: float = 0.0
    compile: float = 0.0
    read: float = 0.0
    worker_mtbf: float = math.inf
    node_lost: bool = False
    replaced: float = 0.0
    charge_dispatch: bool = False


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What came of a simulated run.

    Args:
        seconds: Until the last bucket was committed.
        useful: Seconds of training whose results were committed, over all workers.
        wasted: Seconds of training that died with a worker.
        deaths: Workers that died.
        committing: Seconds of this process in commits.
        calling: Seconds of this process in messages.
        dispatching: CPU seconds of the dispatch code, measured.
        buckets: Buckets that were committed.
        failed: Buckets that were given up.
    """

    workers: int
    seconds: float
    useful: float
    wasted: float
    deaths: int
    committing: float
    calling: float
    dispatching: float
    buckets: int
    failed: int

    @property
    def efficiency(self) -> float:
        """The share of the workers' time in which they trained something that was committed."""
        return self.useful / (self.workers * self.seconds)

    @property
    def writer_busy(self) -> float:
        """The share of the time in which this process had something to do."""
        return (self.committing + self.calling + self.dispatching) / self.seconds

    @property
    def buckets_per_second(self) -> float:
        return self.buckets / self.seconds


class TimedFit:
    """What `plan.Fit` says of real buckets."""

    def program(self, bucket: Bucket) -> Hashable:
        return bucket.shape.length

    def for_machine(self, bucket: Bucket, machine: Hardware) -> Bucket:
        return bucket

    def seconds(self, bucket: Bucket, machine: Hardware) -> float:
        assert isinstance(bucket, TimedBucket)
        return bucket.seconds


@dataclass(eq=False)
class _Worker:
    """A simulated worker; `life` counts its starts, so that events of an earlier one are not its own."""

    seat: Seat
    up: float
    life: int = 0
    device_free: float = 0.0
    compiled: dict[int, float] = field(default_factory=dict)
    trains: dict[int, TimedBucket] = field(default_factory=dict)
    begun: dict[int, tuple[float, float]] = field(default_factory=dict)


class VirtualCluster(Cluster):
    """Workers in virtual time.

    Args:
        machine: The device of each, and how many buckets it has in hand.
        workers: How many there are.
        per_node: Workers that share a disk, so compiled programs.
        costs: What takes how long.
        seed: Of the deaths.
    """

    def __init__(self, machine: Hardware, workers: int, *, per_node: int, costs: Costs, seed: int = 0):
        self.now, self._costs, self._machine = 0.0, costs, machine
        self._random = named_generator(seed, "deaths of simulated workers")
        self._heap: list[tuple[float, int, Callable[[], list[Event]]]] = []
        self._pushed = 0
        self._on_disk: dict[tuple[str, int], float] = {}
        self._workers: dict[str, _Worker] = {}
        self._seats: list[Seat] = []
        self._names = 0
        self._left = time.process_time()
        self.wasted, self.deaths, self.calling, self.committing, self.dispatching = 0.0, 0, 0.0, 0.0, 0.0
        # As `ray_cluster` polls: less often where there are many workers. A poll is one message.
        self._news_period = max(0.5, 0.01 * workers)
        self._slowed = 1 / max(0.05, 1 - costs.call * workers / self._news_period)
        for number in range(workers):
            self._hire(f"node {number // per_node}", costs.startup)

    def seats(self) -> Sequence[Seat]:
        return tuple(self._seats)

    def alive(self) -> int:
        return len(self._seats)

    def begin(self, job: int, tasks: Mapping[str, Any], probes: Mapping[str, Mapping[int, str]]) -> None:
        pass

    def start(self, seat: Seat, errand: Errand) -> None:
        self._enter()
        self._spend(self._costs.call)
        self.calling += self._costs.call
        worker = self._workers[seat.name]
        assert isinstance(errand.bucket, TimedBucket)
        worker.trains[errand.ticket] = errand.bucket
        self._train(worker, errand.ticket)
        self._left = time.process_time()

    def events(self, seconds: float) -> list[Event]:
        self._enter()
        deadline, heard = self.now + seconds, list[Event]()
        while self._heap and self._heap[0][0] <= (self.now if heard else deadline):
            at, _, happen = heapq.heappop(self._heap)
            self.now = max(self.now, at)
            heard += happen()
        if not heard:
            self.now = max(self.now, deadline)
        answers = sum(not isinstance(event, Told) for event in heard)  # polls slow everything, see `_slowed`
        seconds = self._costs.look * len(self._seats) + self._costs.call * answers
        self.calling += seconds
        self._spend(seconds)
        self._left = time.process_time()
        return heard

    def stop(self, job: int) -> None:
        pass

    def commit(self) -> None:
        """This process commits a bucket."""
        self._enter()
        self.committing += self._costs.commit
        self._spend(self._costs.commit)
        self._left = time.process_time()

    def _enter(self) -> None:
        """Count the time since the dispatch code was last left alone, which was its own."""
        took = time.process_time() - self._left
        self.dispatching += took
        if self._costs.charge_dispatch:
            self._spend(took)

    def _spend(self, seconds: float) -> None:
        self.now += seconds * self._slowed

    def _push(self, at: float, happen: Callable[[], list[Event]]) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (at, self._pushed, happen))

    def _hire(self, node: str, up: float) -> list[Event]:
        self._names += 1
        seat = Seat(f"worker {self._names}", node, self._machine)
        worker = self._workers[seat.name] = _Worker(seat, up, device_free=up)
        self._seats.append(seat)
        self._expect_death(worker)
        return []

    def _expect_death(self, worker: _Worker) -> None:
        if math.isfinite(self._costs.worker_mtbf):
            at = worker.up + float(self._random.exponential(self._costs.worker_mtbf))
            self._push(at, lambda: self._die(worker, at))

    def _train(self, worker: _Worker, ticket: int) -> None:
        """Compile where that is needed, wait for the device, train."""
        bucket, life = worker.trains[ticket], worker.life
        program, begin = bucket.shape.length, max(self.now, worker.up)
        if program not in worker.compiled:
            there = self._on_disk.get((worker.seat.node, program), math.inf)
            ready = begin + (self._costs.read if there <= begin else self._costs.compile)
            worker.compiled[program] = ready
            self._on_disk[worker.seat.node, program] = min(there, ready)
            # Told when it is next polled: half a period later on average.
            self._push(ready + self._news_period / 2, lambda: self._tell_ready(worker, life, ticket))
        start = max(begin, worker.compiled[program], worker.device_free)
        worker.device_free = end = start + bucket.seconds
        worker.begun[ticket] = start, end
        self._push(end, lambda: self._finish(worker, life, ticket))

    def _tell_ready(self, worker: _Worker, life: int, ticket: int) -> list[Event]:
        return [Told((Ready(ticket),))] if worker.life == life and ticket in worker.trains else []

    def _finish(self, worker: _Worker, life: int, ticket: int) -> list[Event]:
        if worker.life != life or ticket not in worker.trains:
            return []
        del worker.trains[ticket], worker.begun[ticket]
        return [Finished(ticket=ticket, result=Trained((), {}), news=(Ready(ticket),))]

    def _die(self, worker: _Worker, at: float) -> list[Event]:
        self.deaths += 1
        self.wasted += sum(max(0.0, min(at, end) - start) for start, end in worker.begun.values())
        worker.life += 1
        worker.begun.clear()
        worker.compiled.clear()
        worker.up = worker.device_free = at + self._costs.startup
        self._seats.remove(worker.seat)
        if self._costs.node_lost:
            del self._workers[worker.seat.name]
            joins = at + self._costs.replaced
            self._push(joins, lambda: self._hire(f"node of worker {self._names + 1}", joins + self._costs.startup))
            return [Gone(worker.seat)]
        self._push(worker.up, lambda: self._return(worker))
        tickets = tuple(worker.trains)
        worker.trains.clear()
        return [Died(ticket) for ticket in tickets]

    def _return(self, worker: _Worker) -> list[Event]:
        self._seats.append(worker.seat)
        self._expect_death(worker)
        return []


def simulate(
    buckets: Iterable[TimedBucket],
    workers: int,
    *,
    costs: Costs,
    machine: Hardware,
    per_node: int = 64,
    seed: int = 0,
) -> Simulated:
    """Let workers train buckets in virtual time.

    Args:
        buckets: In any order; given to the dispatch with the costly ones first, as a plan has them.
        workers: How many there are.
        costs: What takes how long.
        machine: The device of each; `machine.workers` buckets in hand at once.
        per_node: Workers that share a disk.
        seed: Of the deaths.

    Returns:
        Times and counts.
    """
    ordered = tuple(sorted(buckets, key=lambda bucket: -bucket.seconds))
    cluster = VirtualCluster(machine, workers, per_node=per_node, costs=costs, seed=seed)
    queue = BucketQueue(ordered, replace(machine, machines=workers), TimedFit())
    job = Job(
        tasks={},
        buckets=ordered,
        programs=0,
        weights_of=lambda key: {},
        examples=PreparedExamples(),
        watch=None,
        events=quiet,
        stop=threading.Event(),
    )
    useful, committed, failed = sum(bucket.seconds for bucket in ordered), 0, 0
    for trained in itertools.chain.from_iterable(Dispatch(cluster, queue, job, 1).trained()):
        cluster.commit()  # one for each, though `run_sweep` commits those together that wait
        committed += 1
        failed += bool(trained.records)  # simulated workers give none; dispatch does where it gives up
    return Simulated(
        workers=workers,
        seconds=cluster.now,
        useful=useful,
        wasted=cluster.wasted,
        deaths=cluster.deaths,
        committing=cluster.committing,
        calling=cluster.calling,
        dispatching=cluster.dispatching,
        buckets=committed,
        failed=failed,
    )


def drawn(seconds: Sequence[float], count: int, *, programs: int, seed: int = 0) -> list[TimedBucket]:
    """Buckets whose times are drawn from measured ones, with replacement."""
    random = named_generator(seed, "buckets of a simulated sweep")
    return timed(random.choice(np.asarray(seconds, dtype=float), size=count).tolist(), programs=programs)
