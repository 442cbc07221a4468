"""Ask a question until it is settled, or until its time is up."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ..answer import count_of_heads
from ..answer.signals import has_learned
from ..engine import Executor, RunSummary, Threads, plan_sweep, run_sweep, spec_of
from ..engine.baselines import attach_baselines
from ..engine.data import PreparedExamples
from ..engine.trainer import Glimpse
from ..errors import BudgetError
from ..events import Event, Events, quiet
from ..models import AbstractSpec, from_arrays
from ..models.base import HeadElimination
from ..store import Cell, Outcome, Record, Store, TrainSpec
from ..tasks import AbstractTask
from .levels import EFFORTS, SearchEffort
from .question import Question
from .results import SearchResults, heads_of
from .rounds import rounds

Ended = Literal["settled", "rounds", "budget"]
"""Nothing is missing at the answer; something still was after the last round; or the time was up."""
MIN_EARLY_HEADS = 4
"""A model of fewer heads than this says little about how many are needed."""


def ask(
    question: Question,
    store: Store,
    effort: SearchEffort,
    *,
    minutes: float | None = None,
    command: str = "",
    events: Events = quiet,
    stop: threading.Event | None = None,
    executor: Executor | None = None,
) -> tuple[RunSummary, Ended]:
    """Train round after round into the store; return the sum of all rounds, and why it ended.

    The question collects the cells; what the store holds is not trained again. When the `minutes` are over, training
    ends at its next checkpoint and what has finished counts. The other options are those of `run_sweep`.

    Raises:
        BudgetError: If the minutes were over before anything was trained.
        InputError: If the task cannot be learned from, or needs more memory than there is where it is to be trained.
        StoreError: If the folder cannot be written, or a parent's weights cannot be read.
    """
    began, executor = time.monotonic(), executor or Threads()
    examples, already_done, outcomes = PreparedExamples(), 0, Counter[Outcome]()
    records = {record.cell.key: record for record in store.records()}
    results = SearchResults(question, lambda cell: _elimination(cell, question, store, examples))
    stop = stop or threading.Event()
    ended: Ended = "settled"
    experiment, largest = None, question.model(question.heads[-1])
    for stored in store.experiments():
        if stored.identity == question.experiment.identity:
            question.taken |= {place: key for key, place in stored.places.items()}
    with _budget(minutes, stop) as over:
        for each in rounds(question, effort, results):
            if over.is_set():
                ended = "budget"
                break
            if not each.cells:
                continue
            sweep = question.sweep_of(each.cells)
            settled = {key for key, record in records.items() if record.outcome is not Outcome.FAILED}
            plan = plan_sweep(sweep, settled, executor.machine)
            plan.require_trainable()  # before its data are drawn
            events(Event("round", each.why, total=plan.model_steps))
            if experiment is None:  # what stops from here on is known to have been asked with an effort
                # Refused before it is stored.
                examples.prepared(question.task, question.lengths[0], largest, question.train)
                _attach_effort(store, store.begin(sweep.experiment, command).name, effort, ended="")
            committed: list[Record] = []
            try:
                run = run_sweep(
                    sweep,
                    store,
                    command=command,
                    events=events,
                    plan=plan,
                    stop=stop,
                    watch=lambda glimpse: _early(glimpse, question, events, began),
                    examples=examples,
                    executor=executor,
                    on_commit=committed.extend,
                )
                experiment, already_done = run.experiment, already_done + run.already_done
            except KeyboardInterrupt:
                if not over.is_set():
                    raise
                ended, experiment = "budget", store.begin(sweep.experiment, command)
            outcomes.update(record.outcome for record in committed)
            records |= {record.cell.key: record for record in committed}
            attach_task_facts(store, experiment.name, question.task, question.lengths, question.train, largest)
            if ended == "budget":
                break
            results.add_records(records[cell.key] for cell in sweep.cells)
    if experiment is None or (ended == "budget" and not records.keys() & set(question.taken.values())):
        short = f"minutes {minutes:g} is too short: no model was trained. Give more, or ask for fewer lengths or steps."
        raise BudgetError(short, what="minutes", given=minutes)
    if ended == "settled" and not results.at_rest:
        ended = "rounds"
    _attach_effort(store, experiment.name, effort, ended=ended)
    seconds = time.monotonic() - began
    summary = RunSummary(experiment=experiment, already_done=already_done, outcomes=dict(outcomes), seconds=seconds)
    return summary, ended


def attach_task_facts(
    store: Store, experiment: str, task: AbstractTask, lengths: Iterable[int], train: TrainSpec, spec: AbstractSpec
) -> None:
    """Store how the data were read, and what models without attention reach."""
    if task.notes:
        store.put(experiment, "notes", list(task.notes))
    attach_baselines(store, experiment, task, lengths, train, standardised=spec.standardises)


def _attach_effort(store: Store, experiment: str, effort: SearchEffort, *, ended: str) -> None:
    """Keep the name of the largest effort that an experiment was asked with, now or before, and how it ended.

    `ended` is empty until it ends. An effort that is none of `EFFORTS` has no name, and comes before those that have.
    """
    levels = ["", *EFFORTS]
    now = next((name for name, each in EFFORTS.items() if each == effort), "")
    before = store.get(experiment, "effort", {}).get("level", now)
    store.put(experiment, "effort", {"level": max(now, before, key=levels.index), "ended": ended})


@contextlib.contextmanager
def _budget(minutes: float | None, stop: threading.Event) -> Iterator[threading.Event]:
    """Yield an event that is set when the minutes are over, just before `stop`, unless `stop` was set before."""
    over = threading.Event()

    def end() -> None:
        if not stop.is_set():
            over.set()
            stop.set()

    if minutes is None:
        yield over
        return
    timer = threading.Timer(60 * minutes, end)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()


def _elimination(cell: Cell, question: Question, store: Store, examples: PreparedExamples) -> HeadElimination:
    """Return the order in which the heads of a trained cell are least missed, over some training examples."""
    spec = spec_of(cell)
    prepared = examples.prepared(question.task, cell.length, spec, cell.train)
    model = from_arrays(spec, store.weights(cell.key))
    model = model if prepared.units is None else model.in_raw_units(*prepared.units.inverse())
    return model.head_removal(prepared.removal_tokens()).eliminated()


def _early(glimpse: Glimpse, question: Question, events: Events, began: float) -> dict[str, Any]:
    """Say what one of the largest models looks like part-way, and keep it with the model."""
    spec, first_draw = glimpse.model.spec, glimpse.cell.train.data_seed == question.data_seed(0)
    if not (spec.removes_heads and first_draw and spec.heads >= max(MIN_EARLY_HEADS, question.heads[-1])):
        return {}
    if not has_learned(glimpse.error, *glimpse.baseline):
        return {}  # what has learned nothing looks like anything
    heads = heads_of(glimpse.model.head_removal(glimpse.tokens).eliminated())
    length, step, seconds = glimpse.cell.length, glimpse.step, round(time.monotonic() - began, 1)
    at = f"early estimate at length {length}; docs/calibration.md has its record"
    words = f"looks like {count_of_heads(heads)} after {seconds:.0f} s ({at})"
    early = {"heads": heads, "step": step, "seconds": seconds}
    events(Event("early", words, detail=early | {"length": length}))
    return {"early": early}
