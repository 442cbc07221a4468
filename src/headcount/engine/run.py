"""Train a sweep: an executor trains its buckets, what has finished is committed at once, nothing is trained twice."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .._compile import let_go_of_programs
from ..backends import say_once
from ..events import Event, Events, quiet
from ..store import Experiment, Outcome, Record, Store
from ..store.weights import Weights
from .data import PreparedExamples
from .executors import Executor, Threads
from .plan import TrainingPlan, plan_sweep
from .sweep import Sweep
from .trainer import Job, Trained, Watch


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Result of a run: cells found in the store, cells trained now, and their outcomes.

    `experiment` is the one that was run, under the name it has in its folder.
    """

    experiment: Experiment
    already_done: int
    outcomes: dict[Outcome, int]
    seconds: float

    @property
    def failed(self) -> int:
        """Cells that failed in this run; the same command trains them again."""
        return self.outcomes.get(Outcome.FAILED, 0)

    @property
    def trained(self) -> int:
        """Cells trained in this run, whatever came of them."""
        return sum(self.outcomes.values())


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    command: str = "",
    events: Events = quiet,
    plan: TrainingPlan | None = None,
    stop: threading.Event | None = None,
    watch: Watch | None = None,
    weights_of: Callable[[str], Weights] | None = None,
    examples: PreparedExamples | None = None,
    executor: Executor | None = None,
    on_commit: Callable[[Sequence[Record]], object] = lambda records: None,
) -> RunSummary:
    """Train every cell of a sweep that the store does not hold yet.

    Args:
        sweep: What to train, made by `sweep`.
        store: An open results folder: `Store.open_for_writing(folder)`.
        command: What was typed, to be shown by `headcount status`.
        events: Hears how it goes.
        plan: The plan, where it was made before.
        stop: When it is set, or at a KeyboardInterrupt, the workers end at their next checkpoint, what they finished
            is committed, and KeyboardInterrupt is raised.
        watch: Called from worker threads with the first model of each bucket that starts from random weights, after a
            third of its training; what it returns is kept in that model's provenance.
        weights_of: Gives the trained weights of a cell's parent by its key; those of the store where None.
        examples: Data that several runs share.
        executor: Where buckets are trained; threads of this process where None.
        on_commit: Called with the records of every commit.

    Returns:
        What was there already, what was trained, and what came of it.

    Raises:
        InputError: If the task's data cannot be learned from, or a model needs more memory than there is where it is
            to be trained.
        StoreError: If the folder cannot be written, or a parent's weights cannot be read; earlier results are safe.

    Example:
        >>> import tempfile, headcount as hc
        >>> from headcount.store import Store
        >>> plan = hc.sweep(
        ...     hc.find_task("max-plus-min"),
        ...     axes={"heads": [1, 2], "length": [4], "seed": [0, 1]},
        ...     model=lambda heads: hc.ClassTokenSpec(heads=heads),
        ...     train=hc.TrainSpec(steps=4, train_examples=50, validation_examples=20),
        ... )
        >>> with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(folder) as store:
        ...     hc.run_sweep(plan, store).trained
        4
    """
    began = time.monotonic()
    let_go_of_programs()
    plan = plan or plan_sweep(sweep, store.settled_keys(), None if executor is None else executor.machine)
    plan.require_trainable()
    executor = executor or Threads(plan.machine)
    outcomes = Counter[Outcome]()
    job = Job(
        tasks=sweep.by_key,
        buckets=plan.buckets,
        programs=plan.programs,
        weights_of=weights_of or store.weights,
        examples=PreparedExamples() if examples is None else examples,
        watch=watch,
        events=events,
        stop=stop or threading.Event(),
    )
    for bucket in plan.buckets[:1]:
        job.data_for(bucket.shape)  # refuses a task that cannot be learned before anything is stored
    experiment = store.begin(sweep.experiment, command)
    if experiment.name != sweep.experiment.name and "code" in sweep.experiment.settings.get("task", {}):
        say_once(
            f'this folder has an experiment "{sweep.experiment.name}" with other settings, or with a function of '
            f'other code; results of this one are under "{experiment.name}".'
        )
    if plan.buckets:
        events(Event("programs", total=plan.programs))

    waiting: list[Trained] = []

    def commit(finished: Sequence[Trained]) -> None:
        waiting.extend(finished)  # until they are committed: an interrupted commit is made again
        if not waiting:
            return
        records = [record for each in waiting for record in each.records]
        store.commit(records, {key: arrays for each in waiting for key, arrays in each.weights.items()})
        waiting.clear()
        outcomes.update(record.outcome for record in records)
        on_commit(records)

    with contextlib.closing(executor.trained(job)) as results:
        try:
            for finished in results:
                commit(finished)
        except KeyboardInterrupt:  # while committing: what is in progress ends at its next checkpoint
            job.stop.set()
            commit(())
            for finished in results:
                commit(finished)
            raise
    if job.stop.is_set() and sum(outcomes.values()) < plan.cells - plan.settled:
        raise KeyboardInterrupt
    seconds = time.monotonic() - began
    return RunSummary(experiment=experiment, already_done=plan.settled, outcomes=dict(outcomes), seconds=seconds)
