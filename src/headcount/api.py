"""From a task to an answer: the recipe, the sweep, the store and the analysis joined."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .answer.answer import WITHIN_FACT
from .engine import Executor, RunSummary, Sweep, executor_of, plan_sweep, run_sweep, spec_of
from .events import Event, Events, heard_by
from .heads_read import attach_model_facts
from .measurement import Measurement
from .models import AbstractSpec
from .paired import attach_paired_errors
from .registry import TaskFact, task_facts
from .report.experiment import STOCK_MODELS
from .report.files import file_name
from .report.progress import automatic_progress
from .request import Request
from .search import DEFAULT_EFFORT, Question, ask, effort_of
from .search.costs import costs
from .search.run import Ended, attach_task_facts
from .store import Store, TrainSpec, Value
from .store.live import LiveWriter
from .tasks import AbstractTask


def measure(
    task: AbstractTask | Request | str | os.PathLike[str] | Any,
    y: Any = None,
    *,
    heads: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    kv_heads: int | Sequence[int] | None = None,
    head_dims: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    seeds: int | None = None,
    effort: str | None = None,
    minutes: float | None = None,
    within: float | None = None,
    library: str | None = None,
    learning_rates: Sequence[float] | None = None,
    model: Callable[..., AbstractSpec] | None = None,
    train: TrainSpec | None = None,
    axes: Mapping[str, Sequence[Value]] | None = None,
    out: Path | str | None = None,
    progress: bool | None = None,
    on: str | Executor | None = None,
    workers: int | None = None,
    events: Events | None = None,
    stop: threading.Event | None = None,
    command: str = "",
    **options: Any,
) -> Measurement:
    """Say how many heads a task needs: train what the answer depends on, until it is settled, and keep the results.

    Large models are trained first, and smaller ones descend from them by losing heads. With `seeds`, `ranks`, `axes` or
    several learning rates every combination is trained from random weights instead, as in the papers. Calling it again
    with the same folder continues: what is stored there is not trained again.

    Args:
        task: A task, or what `find_task` takes: "sum-of-maxima", "data.csv", "mine.py:task". With `y`, the sequences
            x as `ArrayTask` takes them: NumPy, PyTorch, pandas, or lists, also of unequal lengths, or a list of texts.
            Without `y`, what holds both: a pandas or polars DataFrame with `targets="column"`, a pair (x, y), a
            dictionary, a PyTorch Dataset or DataLoader, a Hugging Face Dataset or DatasetDict. A `Request` has all
            arguments but those from `out` on.
        y: Targets of the sequences, where they are given instead of a task.
        heads: Head counts that may be tried; where None, 1 to 12, and more where the task needs more. With `seeds`,
            those that are tried: 1 to 6 where None.
        ranks: Query and key widths to try with every head count; then the question is which of the two is short.
        kv_heads: How many sets of keys and values the heads share: one number for all models, or several to try with
            every head count that they divide. Then the answer is a map: heads needed at each.
        head_dims: Value widths of a head to try with every head count and kv_heads; the other side of that map.
        lengths: Sequence lengths; 8, 16, 32, or the task's own where it has only one.
        seeds: Random starts at every head count, as in the papers, and nothing else.
        effort: "quick", "normal" (where None) or "thorough": how much is tried before the answer counts as settled.
        minutes: After them the answer is from what has finished.
        within: Where the error falls without a sharp drop, the share of what heads gain over the fewest tried that the
            fewest heads that are enough may give away; 0.1 where None.
        library: "torch" or "hf": also choose the smallest stock model of PyTorch or of Hugging Face's transformers that
            does as well as larger ones, by training some; it is shown, and written into the folder.
        learning_rates: Peak learning rates; the best one per seed counts.
        model: `model(heads)` gives a spec; the recipe's models where None.
        train: How models are trained; the recipe's training where None.
        axes: Further axes, such as {"hidden": [8, 32]} or {"data_seed": [0, 1]}.
        out: The results folder; results/TASK where None.
        progress: Show a progress bar, and how data were read; where None, in a terminal and in a notebook.
        on: Where models are trained: "threads" of this process (where None), "ray" (the cluster of RAY_ADDRESS, or a
            local one that is started for this call), "ray://host:port", or an executor that several calls share.
        workers: How many workers of a Ray cluster train at most; where None, one per GPU, or per core without GPUs.
        events: Called with every `Event` of the run, instead of a progress bar.
        stop: Ends training at its next checkpoint when it is set; what has finished is kept, and KeyboardInterrupt
            raised.
        command: What was typed, for `headcount status`.
        **options: Changes to the recipe: fields of `TrainSpec` (`steps=500`) and of the models (`hidden=64, layers=2,
            head_dim=4, total_dim=32, positions="none", beta=2.0, multiplier=8, window=4, causal=True,
            attention="linear", inner_hidden=32, final_norm=True`). Of data, also the keywords of `ArrayTask`
            (`labels=False, answered_at="query", mask=...`) and `targets="price"`, `sequence="patient"`,
            `tokens="bytes"`, and of a name or a file those of `find_task` (`intrinsic_dim=3`).

    Returns:
        The answer with its evidence, the table of errors, and the models.

    Raises:
        InputError: If something asked for cannot be right, or `minutes` were over before anything was trained,
            or there is no Ray where `on` asks for it.
        StoreError: If the folder cannot be written.

    Example:
        >>> import tempfile, headcount as hc
        >>> print(hc.measure(  # far too few steps to learn anything
        ...     "max-plus-min", heads=[1, 2], lengths=[4], seeds=2, steps=4, train_examples=50,
        ...     validation_examples=20, out=tempfile.mkdtemp(), progress=False,
        ... ))
        1 head is enough [1, 2]; 2 would gain no more than chance
    """
    request = task
    if not isinstance(request, Request):
        request = Request.from_arguments(
            task,
            y,
            heads=heads,
            ranks=ranks,
            kv_heads=kv_heads,
            head_dims=head_dims,
            lengths=lengths,
            seeds=seeds,
            effort=effort,
            minutes=minutes,
            within=within,
            library=library,
            learning_rates=learning_rates,
            model=model,
            train=train,
            axes=axes,
            **options,
        )
    folder = default_folder(request) if out is None else Path(out)
    asked, _ = request.planned, request.configurator  # refused before anything is opened
    with (
        executor_of(on, workers, folder=folder) as executor,
        Store.open_for_writing(folder) as store,
        automatic_progress(progress) if events is None else contextlib.nullcontext(events) as hear,
    ):
        return _measured(request, asked, store, executor, hear, stop or threading.Event(), command)


def _measured(
    request: Request,
    asked: Sweep | Question,
    store: Store,
    executor: Executor,
    events: Events,
    stop: threading.Event,
    command: str,
) -> Measurement:
    """Train what is missing and read the whole experiment from the store.

    Raises KeyboardInterrupt, with what is kept in words, where `stop` came before everything was trained.
    """
    for note in (*request.task.notes, *request.notes):
        events(Event("note", note))
    facts = _new_facts(request, asked, store)
    for fact in facts:
        events(Event("note", fact.words))
    try:
        with LiveWriter(store.root, command) as live:
            how = {"command": command, "events": heard_by(events, live), "stop": stop, "executor": executor}
            if isinstance(asked, Sweep):
                run, ended = _train_sweep(asked, store, **how), ""
            else:
                run, ended = _ask(asked, request, store, **how)
                live.ended = ended
            if request.within is not None:
                store.put(run.experiment.name, WITHIN_FACT, request.within)
            measurement = Measurement.of_run(run, store, ended=ended, command=command)
            if measurement.answer().kind == "enough":
                attach_paired_errors(store, measurement.experiment.name, measurement.records, request.task)
                measurement = replace(measurement, facts=store.facts(measurement.experiment.name))
            _store_findings(measurement, store, request.task, facts, stop)  # they rest on its answer
            if request.configurator is not None and measurement.records:
                _configure(request, measurement, store, events, stop)
            measurement.facts.update(store.facts(measurement.experiment.name))
            return measurement
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(asked, store)) from None


def _new_facts(request: Request, asked: Sweep | Question, store: Store) -> list[TaskFact]:
    """Return what is known of the task before training, less what the folder has."""
    lengths = asked.lengths if isinstance(asked, Question) else [cell.length for cell in asked.cells]
    identity = asked.experiment.identity
    stored = next((each.name for each in store.experiments() if each.identity == identity), None)
    return task_facts(request.task, sorted(set(lengths)), {} if stored is None else store.facts(stored))


def _train_sweep(sweep: Sweep, store: Store, *, events: Events, executor: Executor, **how: Any) -> RunSummary:
    """Train what is missing of a sweep; keep how the data were read, and what models without attention reach."""
    plan = plan_sweep(sweep, store.settled_keys(), executor.machine)
    events(Event("plan", done=plan.settled, detail=plan))
    events(Event("round", total=plan.model_steps))
    run = run_sweep(sweep, store, plan=plan, events=events, executor=executor, **how)
    first = min((cell.train for cell in sweep.cells), key=lambda train: train.data_seed)
    lengths = sorted({cell.length for cell in sweep.cells})
    attach_task_facts(store, run.experiment.name, sweep.tasks[0], lengths, first, spec_of(sweep.cells[0]))
    return run


def _ask(
    question: Question, request: Request, store: Store, *, events: Events, executor: Executor, **how: Any
) -> tuple[RunSummary, Ended]:
    """Train what the answer depends on, until it is settled or the minutes are over."""
    effort = effort_of(request.effort or DEFAULT_EFFORT)
    stored = sum(each.done for each in store.progress() if each.experiment == question.experiment.name)
    events(Event("plan", done=stored, detail=functools.partial(costs, question, effort, executor.machine)))
    return ask(question, store, effort, minutes=request.minutes, events=events, executor=executor, **how)


def _store_findings(
    measurement: Measurement, store: Store, task: AbstractTask, facts: list[TaskFact], stop: threading.Event
) -> None:
    """Store what is known of the task, and what the trained models show; a `stop` now ends this alone."""
    if not measurement.records:
        return
    for fact in facts:
        store.put(measurement.experiment.name, fact.name, fact.content)
    attach_model_facts(store, measurement.experiment, measurement.records, measurement.answer(), task, stop)


def _configure(request: Request, measurement: Measurement, store: Store, events: Events, stop: threading.Event) -> None:
    """Choose a stock model of the library that was asked for, and store it; Ctrl-C ends it without one."""
    assert request.configurator is not None
    name, library = measurement.experiment.name, str(request.library)
    chosen = store.get(name, STOCK_MODELS, {})
    chosen[library] = request.configurator(measurement, chosen.get(library, {}), events, stop)
    store.put(name, STOCK_MODELS, chosen)


def _kept(asked: Sweep | Question, store: Store) -> str:
    """Return how many of the cells are trained."""
    settled = store.settled_keys()
    if isinstance(asked, Sweep):
        return f"{len({cell.key for cell in asked.cells} & settled)} of {len(asked.cells)} cells"
    return f"{len(asked.cells.keys() & settled)} of the {len(asked.cells)} cells asked for so far"


def default_folder(request: Request) -> Path:
    """Return the results folder of a request that names none."""
    return Path("results") / file_name(request.task.name)
