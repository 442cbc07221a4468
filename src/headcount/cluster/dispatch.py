"""Hand the buckets of a job to the workers of a cluster, and give back what they have trained.

Nothing here knows Ray: a `Cluster` is whatever starts workers, again where they die, and tells what became of them. A
bucket whose worker died or is gone for good goes to whichever worker is free.
"""

import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..engine.buckets import Bucket
from ..engine.executors import POLL_SECONDS, Executor, Job
from ..engine.hardware import Hardware
from ..engine.plan import Fit
from ..engine.records import failure
from ..engine.trainer import Trained
from ..errors import HeadcountError
from ..events import Event as RunEvent
from ..store.weights import Weights
from .queue import BucketQueue, Seat, Ticket
from .worker import Checkpoint, Errand, Finished, News, Ready, Seen

DRAIN_SECONDS = 5.0
"""After an error, workers are waited for so long."""
STOP_AGAIN_SECONDS = 2.0
"""Workers are told again to stop: one that was started again in the meantime knows nothing of it."""


@dataclass(frozen=True)
class Told:
    """What a worker tells."""

    news: tuple[News, ...]


@dataclass(frozen=True)
class Died:
    """The worker that had a bucket died; it may be started again."""

    ticket: int


@dataclass(frozen=True)
class Gone:
    """A worker will not come back."""

    seat: Seat


class ClusterLostError(HeadcountError):
    """There is no cluster any more; what is committed is safe."""


Event = Told | Finished | Died | Gone


class Cluster(ABC):
    """Workers, wherever they are."""

    shared_programs: bool = True
    """Workers of one node find what another of them has compiled."""

    @abstractmethod
    def seats(self) -> Sequence[Seat]:
        """The workers that answer; they may be others each time."""

    @abstractmethod
    def begin(self, job: int, tasks: Mapping[str, Any], probes: Mapping[str, Mapping[int, str]]) -> None:
        """Errands of this job will come, about these tasks, whose functions are these programs at each length."""

    @abstractmethod
    def start(self, seat: Seat, errand: Errand) -> None:
        """Let a worker train a bucket."""

    @abstractmethod
    def events(self, seconds: float) -> list[Event]:
        """What happened since it was last asked for; waits so long at most. `ClusterLostError` where all is over."""

    @abstractmethod
    def stop(self, job: int) -> None:
        """Let the workers end what they train for this job at their next checkpoint."""

    def idle(self) -> bool:
        """Whether it is sure that no worker has anything in hand, so that no event is to come."""
        return False

    def close(self) -> None:  # noqa: B027 - a pretended one has nothing to close
        """Let go of the workers."""


class ClusterExecutor(Executor):
    """Trains on the workers of a cluster.

    Args:
        cluster: Where they are; closed with this.
    """

    def __init__(self, cluster: Cluster):
        self.cluster, self._jobs = cluster, 0
        self._machine = planned_for(cluster.seats())

    @property
    def machine(self) -> Hardware:
        if seats := self.cluster.seats():  # else all are being started again
            self._machine = planned_for(seats)
        return self._machine

    def trained(self, job: Job) -> Generator[Sequence[Trained], None, None]:
        self._jobs += 1
        self.cluster.begin(self._jobs, job.tasks, _probes(job.buckets))
        shared = self.cluster.shared_programs
        queue = BucketQueue(job.buckets, self.machine, Fit(job.tasks), shared_programs=shared)
        yield from Dispatch(self.cluster, queue, job, self._jobs).trained()

    def close(self) -> None:
        self.cluster.close()


def planned_for(seats: Sequence[Seat]) -> Hardware:
    """What to plan for: the largest worker, and how many there are of its kind. There must be one.

    Of workers that compute on CPUs a node has no more than cores, however many share these.
    """
    largest = max((seat.machine for seat in seats), key=lambda machine: (machine.side_by_side, machine.memory))
    alike = [seat for seat in seats if seat.machine.side_by_side == largest.side_by_side]
    per_node = Counter(seat.node for seat in alike)
    if not largest.side_by_side:
        cores = {seat.node: seat.cores for seat in alike if seat.cores}
        per_node = Counter({node: min(count, cores.get(node, count)) for node, count in per_node.items()})
    return replace(largest, machines=per_node.total())


def _probes(buckets: Sequence[Bucket]) -> dict[str, dict[int, str]]:
    """By task and length, what `Cell.probe` says of the task's function."""
    probes: dict[str, dict[int, str]] = {}
    for bucket in buckets:
        probes.setdefault(bucket.shape.task, {})[bucket.shape.length] = bucket.cells[0].probe
    return probes


class Dispatch:
    """One job on a cluster.

    Args:
        cluster: Where it is trained.
        queue: Its buckets.
        job: What is trained, and who is told.
        number: The job's number: larger than those before.
    """

    def __init__(self, cluster: Cluster, queue: BucketQueue, job: Job, number: int):
        self._cluster, self._queue, self._job, self._number = cluster, queue, job, number
        self._seen: dict[str, dict[str, Any]] = {}
        self._shown: RunEvent | None = None
        self._finished: list[Trained] = []
        self._events = deque[Event]()  # heard, but for an error in one of them not looked at yet

    def trained(self) -> Generator[Sequence[Trained], None, None]:
        """What `Executor.trained` promises."""
        queue, stop = self._queue, self._job.stop
        try:
            while (queue.waiting or queue.in_hand) and not stop.is_set():
                self._assign()
                yield from self._heard(POLL_SECONDS)
        except GeneratorExit:
            stop.set()
            with contextlib.suppress(Exception):  # the next job finds the workers free, if there still are any
                deque(self._ended(DRAIN_SECONDS), maxlen=0)
            raise
        except BaseException as error:
            lost = isinstance(error, ClusterLostError)
            if lost and stop.is_set():
                return
            stop.set()
            if not lost:
                yield from self._ended(math.inf if isinstance(error, KeyboardInterrupt) else DRAIN_SECONDS)
            raise
        if stop.is_set():
            yield from self._ended()
        self._show()

    def _ended(self, seconds: float = math.inf) -> Iterator[Sequence[Trained]]:
        """What is in hand, once it has ended at its next checkpoint, waited for so long; nothing new is begun.

        Of a cluster that is lost nothing comes any more, and of two errors the first is told.
        """
        began, told = time.monotonic(), -math.inf
        while self._queue.in_hand and time.monotonic() - began < seconds:
            try:
                if time.monotonic() - told > STOP_AGAIN_SECONDS:
                    self._cluster.stop(self._number)
                    told = time.monotonic()
                yield from self._heard(POLL_SECONDS)
            except ClusterLostError:
                break
            except HeadcountError:  # wrong with the task, as the first error said
                if math.isinf(seconds):
                    raise
            if not self._events and self._cluster.idle():
                break
        yield from self._given()

    def _assign(self) -> None:
        """Give every worker what it can have in hand, but no more than its share of what is left.

        Otherwise a GPU, which has many buckets in hand, would leave none for other GPUs at the end of a job.
        """
        queue, seats = self._queue, self._cluster.seats() if self._queue.waiting else ()
        sharing = sum(seat.machine.workers > 1 for seat in seats)
        share = -(-(queue.waiting + queue.in_hand) // max(1, sharing))
        takers = seats
        while takers:
            takers = [seat for seat in takers if len(queue.held_by(seat.name)) < share and self._started(seat, seats)]

    def _assign_next(self, seat: Seat) -> None:
        """Give a worker that has finished a bucket another one: it need not wait until the first is committed."""
        kept_for_others = self._queue.in_hand if seat.machine.workers > 1 else 0  # see `_assign`
        seats = self._cluster.seats() if self._queue.waiting > kept_for_others else ()
        if any(each is seat for each in seats):
            self._started(seat, seats)

    def _started(self, seat: Seat, seats: Sequence[Seat]) -> bool:
        """Whether there was a bucket for a worker, which it trains now."""
        ticket = self._queue.take(seat, seats)
        if ticket is None:
            return False
        self._cluster.start(seat, self._errand(ticket))
        return True

    def _errand(self, ticket: Ticket) -> Errand:
        return Errand(
            job=self._number,
            ticket=ticket.number,
            bucket=ticket.bucket,
            parents=self._parents(ticket.bucket),
            watched=self._job.watch is not None,
        )

    def _parents(self, bucket: Bucket) -> dict[str, Weights | HeadcountError]:
        """The weights that a bucket's cells start from; a worker says what it means that some cannot be read."""
        if bucket.shape.from_random:
            return {}
        weights: dict[str, Weights | HeadcountError] = {}
        for key in dict.fromkeys(cell.parent for cell in bucket.cells):
            try:
                weights[key] = self._job.weights_of(key)
            except HeadcountError as error:
                weights[key] = error
        return weights

    def _given(self) -> Iterator[Sequence[Trained]]:
        """What has finished and was not given yet, if anything."""
        finished, self._finished = self._finished, []
        if finished:
            yield finished

    def _heard(self, seconds: float) -> Iterator[Sequence[Trained]]:
        """What the events of some time have come to."""
        if not self._events:
            self._events.extend(self._cluster.events(seconds))
        while self._events:
            match event := self._events.popleft():
                case Told(news):
                    self._tell(news)
                case Finished():
                    self._tell(event.news)
                    held, result = self._queue.held(event.ticket), event.result
                    ticket = self._queue.finish(event.ticket)
                    if held is None or ticket is None or result is None:
                        continue
                    if isinstance(result, HeadcountError):
                        yield from self._given()
                        raise result
                    self._finished.append(self._with_seen(result))
                    self._tell_step(ticket, ticket.bucket.shape.train.steps, None)
                    if not self._job.stop.is_set():
                        self._assign_next(held[0])
                case Died(number):
                    self._give_up([self._queue.died(number)])
                case Gone(seat):
                    self._give_up(self._queue.gone(seat))
        self._show()
        yield from self._given()

    def _give_up(self, tickets: Sequence[Ticket | None]) -> None:
        for ticket in filter(None, tickets):
            message = (
                f"{ticket.deaths} workers died while they trained this bucket of {len(ticket.bucket.cells)}: out of "
                "memory? The same command trains it again; fewer workers per machine leave more memory to each."
            )
            self._finished.append(Trained(tuple(failure(cell, message) for cell in ticket.bucket.cells), {}))

    def _tell(self, news: Sequence[News]) -> None:
        for each in news:
            held = self._queue.held(each.ticket)
            if held is None:
                continue
            ticket = held[1]
            match each:
                case Ready():
                    self._queue.compiled(each.ticket)
                    ready = len(self._queue.ready)
                    self._job.events(RunEvent("programs", done=ready, total=max(self._job.programs, ready)))
                case Checkpoint(_, step, errors):
                    self._tell_step(ticket, step, errors)
                case Seen(_, glimpse):
                    if self._job.watch is not None and glimpse.cell.key not in self._seen:
                        self._seen[glimpse.cell.key] = self._job.watch(glimpse)

    def _tell_step(self, ticket: Ticket, step: int, errors: Any) -> None:
        """Steps that a worker takes again after another one died are told of once."""
        cells = ticket.bucket.cells
        if step <= ticket.step:
            return
        self._job.events(RunEvent("steps", done=(step - ticket.step) * len(cells)))
        if errors is not None and len(errors) == len(cells):  # not those of a half, where memory ran out
            self._job.events(RunEvent("checkpoint", done=step, detail=(cells, errors)))
        ticket.step = step

    def _with_seen(self, trained: Trained) -> Trained:
        """Records with what whoever watches has said of them."""
        if not self._seen:
            return trained
        records = tuple(
            replace(record, provenance=record.provenance | self._seen.pop(record.cell.key, {}))
            for record in trained.records
        )
        return replace(trained, records=records)

    def _show(self) -> None:
        now = RunEvent("workers", done=self._queue.done, total=self._queue.total, detail=len(self._cluster.seats()))
        if now != self._shown:
            self._shown = now
            self._job.events(now)
