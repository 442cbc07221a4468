"""The workers of a Ray cluster. Ray starts them again when they die; what died with them goes to whoever is free.

Ray would also send a call again (`max_task_retries`), but it counts every attempt while a worker is being started, so
that a slow start uses up what was meant for deaths.
"""

import contextlib
import os
import pickle
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import ray
from ray import cloudpickle
from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..engine.executors import POLL_SECONDS
from ..engine.hardware import GPU_WORKERS
from ..errors import HeadcountError, InputError
from ..tasks import AbstractTask
from .by_value import sent_by_value
from .dispatch import Cluster, ClusterLostError, Died, Event, Gone, Told
from .queue import Seat
from .session import LOST, Session
from .worker import Errand, Finished, Introduction, Worker

START_SECONDS = 300.0
"""The first worker is waited for so long."""
LAST_SECONDS = 30.0
"""And the last one so long: those that come later join then."""
NEWS_SECONDS = 0.5
NEWS_PER_WORKER_SECONDS = 0.01
"""News of a worker are asked for so often: less often where there are many, so that asking takes little time."""
LOOK_SECONDS = 5.0
"""How often nodes are looked for that have come since."""
CONTROL_CALLS = 8
"""Calls that a worker answers while it trains: news, a stop, an introduction."""
SENT_VARIABLES = ("HEADCOUNT_", "JAX_", "XLA_FLAGS")
SENT_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision")
NO_HEADCOUNT = "the nodes of the Ray cluster have no headcount: install there what is installed here."


class RayWorker(Worker):
    """A worker as an actor: the task comes as a reference, and is read once."""

    def train_from(self, errand: Errand, task: Sequence[Any]) -> Finished:
        """Train a bucket; `task` is a list, so that Ray does not read what is in it."""
        return self.train(errand, lambda: ray.get(task[0]))


class Place(NamedTuple):
    """Where a worker can be: a node, whether it takes a GPU of it, and how many CPUs."""

    node: str
    gpu: bool
    cpus: int


def places(nodes: Sequence[Mapping[str, Any]], *, cpu_only: bool = False) -> list[Place]:
    """Where workers can be, on the nodes as Ray describes them: GPUs first, then one core of every node after another.

    The CPUs of a node with GPUs are shared out among its GPUs, whose workers compile on them.
    """
    ranked = []
    for node in nodes:
        if node["Alive"]:
            resources = node["Resources"]
            cpus, gpus = int(resources.get("CPU", 0)), 0 if cpu_only else int(resources.get("GPU", 0))
            each = min(GPU_WORKERS, cpus // gpus) if gpus else 1
            found = [Place(node["NodeID"], bool(gpus), each)] * (gpus or cpus)
            ranked += [((not gpus, index), place) for index, place in enumerate(found)]
    return [place for _, place in sorted(ranked, key=lambda entry: entry[0])]


@dataclass(eq=False)
class _Hired:
    """A worker: its name, where it is, its actor, whether it answers, and the answers that are still to come."""

    name: str
    place: Place
    actor: Any
    introduction: Any
    seat: Seat | None = None
    answers: bool = True
    news: Any = None
    asked: float = 0.0
    trains: dict[Any, int] = field(default_factory=dict)

    def forget(self, reference: Any) -> None:
        """An answer was read, or will not come."""
        if reference == self.introduction:
            self.introduction = None
        elif self.trains.pop(reference, None) is None:
            self.news = None


class RayCluster(Cluster):
    """See `ray_executor`."""

    def __init__(self, on: str, *, workers: int | None = None, backend: str | None = None):
        self._max_workers, self._backend, self._cpu_only = workers, backend, os.environ.get("JAX_PLATFORMS") == "cpu"
        self._hired: dict[str, _Hired] = {}
        self._tasks: dict[str, Any] = {}
        self._probes: dict[str, dict[int, str]] = {}
        self._events = deque[Event]()
        self._count, self._looked, self._failed_start = 0, 0.0, ""
        cores = os.cpu_count() or 1
        self._session = Session(on, cpus=None if workers is None else max(workers, cores))
        # Set for this process alone, which does little with a GPU: what it would take, a worker on it has not.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self._compiled = self._where_programs_are_kept()
        self.shared_programs = self._compiled is not None
        try:
            self._look()
            self._await_workers(on)
        except BaseException:
            self.close()
            raise

    def seats(self) -> list[Seat]:
        return [hired.seat for hired in self._hired.values() if hired.seat is not None and hired.answers]

    def begin(self, job: int, tasks: Mapping[str, AbstractTask], probes: Mapping[str, Mapping[int, str]]) -> None:
        """Put tasks where workers find them; one that another job had is there already, if it is still the same."""
        self._events.clear()
        for hired in self._hired.values():
            hired.trains.clear()  # what is left of another job is nobody's concern now
        known = {key: reference for key, reference in self._tasks.items() if key in tasks}
        self._tasks, before, self._probes = {}, self._probes, {}
        for key, task in tasks.items():
            asked, earlier = dict(probes.get(key, {})), before.get(key, {})
            same = key in known and all(earlier.get(length, probe) == probe for length, probe in asked.items())
            self._tasks[key] = known[key] if same else _put(task)
            self._probes[key] = earlier | asked if same else asked

    def start(self, seat: Seat, errand: Errand) -> None:
        hired = self._hired[seat.name]
        reference = hired.actor.train_from.remote(errand, [self._tasks[errand.bucket.shape.task]])
        hired.trains[reference] = errand.ticket

    def stop(self, job: int) -> None:
        for hired in self._hired.values():
            hired.actor.stop.remote(job)

    def events(self, seconds: float) -> list[Event]:
        try:
            return self._events_within(seconds)
        except ConnectionError as error:  # of a client
            raise ClusterLostError(LOST) from error

    def _events_within(self, seconds: float) -> list[Event]:
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        self._ask()
        waited = {}
        for hired in self._hired.values():
            references = [*hired.trains, hired.news, hired.introduction]
            waited |= {each: hired for each in references if each is not None}
        if not waited:
            time.sleep(seconds)
            return []
        ready, _ = ray.wait(list(waited), num_returns=1, timeout=seconds)
        if ready:  # and all others that are
            ready, _ = ray.wait(list(waited), num_returns=len(waited), timeout=0)
        for reference in ready:  # an interrupt leaves here what was heard before it
            self._events.extend(self._heard(waited[reference], reference))
        events = list(self._events)
        self._events.clear()
        return events

    def idle(self) -> bool:
        return not self._events and not any(hired.trains for hired in self._hired.values())

    def close(self) -> None:
        for hired in self._hired.values():
            with contextlib.suppress(Exception):
                ray.kill(hired.actor)
        self._hired.clear()
        self._tasks.clear()
        self._session.close()

    def _where_programs_are_kept(self) -> str | None:
        """As for `Worker`: where this process keeps them; of a cluster on this machine, else in a folder of its own."""
        kept = getattr(jax.config, "jax_compilation_cache_dir")  # noqa: B009 - not in its stubs
        if self._session.folder is not None:
            return str(kept or self._session.folder / "compiled")
        return None if kept is None else ""

    def _look(self) -> None:
        """Start workers wherever there is place: at first, on nodes that have come, and for those that are gone."""
        self._looked = time.monotonic()
        if not self._session.answers():  # nor would what follows, for a minute
            return
        taken = Counter(hired.place for hired in self._hired.values())
        for place in places(ray.nodes(), cpu_only=self._cpu_only):
            if taken[place]:
                taken[place] -= 1
            elif self._max_workers is None or len(self._hired) < self._max_workers:
                self._hire(place)

    def _hire(self, place: Place) -> None:
        options: dict[str, Any] = {
            "num_cpus": place.cpus,
            "num_gpus": int(place.gpu),
            "max_restarts": -1,
            "max_concurrency": max(1, place.cpus) + CONTROL_CALLS,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node, soft=False),
        }
        if not self._session.local:  # there they have those of this process anyway
            sent = {name: value for name, value in os.environ.items() if name.startswith(SENT_VARIABLES)}
            options["runtime_env"] = {"env_vars": sent}
        settings = {name: getattr(jax.config, name) for name in SENT_SETTINGS}
        actor = (
            ray.remote(RayWorker)
            .options(**options)
            .remote(backend=self._backend, in_hand=max(1, place.cpus), compiled=self._compiled, settings=settings)
        )
        self._count += 1
        name = f"worker {self._count}"
        self._hired[name] = _Hired(name, place, actor, actor.introduction.remote())

    def _await_workers(self, on: str) -> None:
        """Wait for all workers, but not long for the last: they may come later."""
        if not self._hired:
            raise InputError("the Ray cluster has neither CPUs nor GPUs: add nodes to it.", what="on", given=on)
        began = time.monotonic()
        while any(hired.seat is None for hired in self._hired.values()):
            waited = time.monotonic() - began
            if waited > (LAST_SECONDS if self.seats() else START_SECONDS):
                break
            self.events(POLL_SECONDS)
        waited = time.monotonic() - began
        if not self.seats() and self._failed_start:
            raise HeadcountError(
                f"no worker of the Ray cluster could start within {waited:.0f} s; the last one ended with: "
                f"{self._failed_start}. Correct that on its nodes, then try again."
            )
        if not self.seats():
            raise HeadcountError(
                f"no worker of the Ray cluster has answered within {waited:.0f} s: its CPUs and GPUs may be in "
                "use (`ray status` says so); try again when they are free."
            )

    def _ask(self) -> None:
        """Ask for news where it is time."""
        now, period = time.monotonic(), max(NEWS_SECONDS, NEWS_PER_WORKER_SECONDS * len(self._hired))
        for hired in self._hired.values():
            if hired.seat is not None and hired.news is None and now - hired.asked > period:
                hired.news, hired.asked = hired.actor.news.remote(), now

    def _heard(self, hired: _Hired, reference: Any) -> Iterator[Event]:
        """What an answer means, or that none will come."""
        if hired.name not in self._hired:
            return
        ticket, is_introduction = hired.trains.get(reference), reference == hired.introduction
        try:
            answer: Any = ray.get(reference)
        except (ActorDiedError, ActorUnschedulableError) as error:  # the latter: its node is gone
            del self._hired[hired.name]
            if hired.seat is not None:
                yield Gone(hired.seat)
            elif "No module named 'headcount" in str(error):
                raise InputError(NO_HEADCOUNT, what="on") from error
            else:
                self._failed_start = _last_line(error)
            return
        except RayActorError:  # it is being started again
            hired.forget(reference)
            hired.answers = False
            if ticket is not None:
                yield Died(ticket)
            return
        except RayError as error:
            hired.forget(reference)
            raise HeadcountError(
                f"a worker failed: {_last_line(error)}. What is stored is as it was; the same command goes on."
            ) from error
        hired.forget(reference)
        hired.answers = True
        if is_introduction:
            self._seat(hired, answer)
        else:
            yield Told(answer) if ticket is None else answer

    def _seat(self, hired: _Hired, introduction: Introduction) -> None:
        """Count a worker in. Raises `InputError` where it computes with other versions."""
        introduction.require_our_versions()
        hired.seat = Seat(hired.name, hired.place.node, introduction.machine, introduction.cores)


def _put(task: AbstractTask) -> Any:
    """A reference to a task that workers can read, with the user's code it is made of."""
    try:
        with sent_by_value(cloudpickle):
            return ray.put(task)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InputError(
            f"the task {task.name} cannot be sent to workers ({_last_line(error)}): its functions may use no open "
            "files, locks or other things of this process. Train it without a cluster, or load such things inside.",
            what="on",
        ) from error


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].rstrip(".") if lines else type(error).__name__
