"""From a task to an answer: the recipe, the sweep, the store and the analysis joined."""

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from .engine import Early, Executor, Listener, RunSummary, Sweep, executor_of, run_sweep, shown_live, spec_of
from .engine.baselines import attach_baselines, attach_notes
from .errors import BudgetError, InputError, require
from .heads_read import attach_heads_read
from .measurement import Measurement
from .models import AbstractSpec
from .registry import after_training, task_facts
from .report.files import file_name
from .report.progress import NoBar, StepBar, automatic_progress
from .request import Request
from .search import DEFAULT_EFFORT, Question, ask, effort_of
from .store import Store, TrainSpec, Value
from .tasks import AbstractTask, ArrayTask
from .tasks.find import FILE_OPTIONS, find_task

ARRAY_OPTIONS = tuple(signature(ArrayTask.__init__).parameters)[3:]
"""What can be said about x and y: the keywords of `ArrayTask`."""
DATA_OPTIONS = tuple(dict.fromkeys((*ARRAY_OPTIONS, *FILE_OPTIONS)))


def measure(
    task: AbstractTask | str | os.PathLike[str] | Any,
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
    learning_rates: Sequence[float] | None = None,
    model: Callable[..., AbstractSpec] | None = None,
    train: TrainSpec | None = None,
    axes: Mapping[str, Sequence[Value]] | None = None,
    out: Path | str | None = None,
    progress: bool | None = None,
    on: str | Executor | None = None,
    workers: int | None = None,
    **options: Any,
) -> Measurement:
    """How many heads a task needs: trains what the answer depends on, until it is settled, and keeps the results.

    Large models are trained first, and smaller ones descend from them by losing heads. With `seeds`, `ranks`, `axes` or
    several learning rates every combination is trained from random weights instead, as in the papers. Calling it again
    with the same folder continues: what is stored there is not trained again.

    Args:
        task: A task, or what `find_task` takes: "sum-of-maxima", "data.csv", "mine.py:task". With `y`, the sequences
            x as `ArrayTask` takes them: NumPy, PyTorch, pandas, or lists, also of unequal lengths.
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
        minutes: After so many minutes what has finished is answered from.
        learning_rates: Peak learning rates; the best one per seed counts.
        model: `model(heads)` gives a spec; the recipe's models where None.
        train: How models are trained; the recipe's training where None.
        axes: Further axes, such as {"hidden": [8, 32]} or {"data_seed": [0, 1]}.
        out: The results folder; results/TASK where None.
        progress: Show a progress bar, and how data were read; where None, in a terminal and in a notebook.
        on: Where models are trained: "threads" of this process (where None), "ray" (the cluster of RAY_ADDRESS, or a
            local one that is started for this call), "ray://host:port", or an executor that several calls share.
        workers: How many workers of a Ray cluster train at most; where None, one per GPU, or per core without GPUs.
        **options: Changes to the recipe: fields of `TrainSpec` (`steps=500`) and of the models (`hidden=64, layers=2,
            head_dim=4, total_dim=32, positions="none", beta=2.0, multiplier=8, window=4, causal=True,
            attention="linear", inner_hidden=32, final_norm=True`). With `y`, also the keywords of `ArrayTask`
            (`labels=False, answered_at="query", mask=...`), and of a file those of `find_task` (`targets="price"`).

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
        no transition found: ...
    """
    asked_task = _task_of(task, y, {name: options.pop(name) for name in DATA_OPTIONS if name in options})
    request = Request(
        task=asked_task,
        heads=heads,
        ranks=ranks,
        kv_heads=kv_heads,
        head_dims=head_dims,
        lengths=lengths,
        seeds=seeds,
        effort=effort,
        minutes=minutes,
        learning_rates=learning_rates,
        model=model,
        train=train,
        axes=axes,
        options=options,
    )
    asked = request.planned()
    folder = default_folder(asked_task.name) if out is None else Path(out)
    with (
        executor_of(on, workers, folder=folder) as executor,
        Store.open_for_writing(folder) as store,
        automatic_progress(progress) as bar,
    ):
        if not isinstance(bar, NoBar):
            for note in (*asked_task.notes, *request.notes):
                print(note, file=sys.stderr)
        if isinstance(asked, Sweep):
            settled = store.settled_keys()
            model_steps = sum(cell.train.steps for cell in asked.cells if cell.key not in settled)
            shown = shown_by(bar)
            shown.on_plan("", model_steps)
            with shown_live(folder, "", shown, model_steps) as (listener, _):
                measurement = measure_sweep(asked, store, listener=listener, executor=executor)
        else:
            with shown_live(folder, "", shown_by(bar)) as (listener, live):
                measurement = measure_question(
                    asked, store, effort=effort, minutes=minutes, listener=listener, executor=executor
                )
                live.ended = measurement.ended
        if measurement.records:
            name = measurement.experiment.name
            for fact in task_facts(asked_task, lengths_of(asked), store.attachments(name)):
                store.attach(name, fact.name, fact.content)
    return measurement


def _task_of(given: Any, y: Any, options: dict[str, Any]) -> AbstractTask:
    """The task that is given, named, or made of arrays; options about data must have data to be about."""
    if isinstance(given, AbstractTask):
        require(y is None, f'the task "{given.name}" has its own targets; y goes with arrays alone.', what="y")
        about = f'the task "{given.name}" is made already; {", ".join(options)} belongs where it is made.'
        require(not options, about, what=" ".join(options))
        return given
    if isinstance(given, str | os.PathLike):
        beside = f"{os.fspath(given)!r} is a file or a name, and brings its targets; for a file pass targets=..."
        require(y is None, f"{beside} instead of y.", what="y")
        return find_task(given, **options)
    if y is None:
        kind = type(given).__name__
        raise InputError(f"x was given ({kind}) without targets: pass both, as in measure(x, y).", what="y")
    unknown = [name for name in options if name not in ARRAY_OPTIONS]
    of_files = f"{', '.join(unknown)} is for files; x and y were given as arrays."
    require(not unknown, of_files, what=" ".join(unknown))
    return ArrayTask(given, y, **options)


def lengths_of(asked: Sweep | Question) -> list[int]:
    """The lengths that are measured."""
    return sorted(set(asked.lengths) if isinstance(asked, Question) else {cell.length for cell in asked.cells})


def measure_sweep(
    asked: Sweep,
    store: Store,
    *,
    command: str = "",
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    executor: Executor | None = None,
) -> Measurement:
    """Train what is missing of a sweep, and read the whole experiment from the store.

    What the heads of the best model read is kept beside it; a `stop` that comes only then ends that alone.
    """
    run: RunSummary = run_sweep(asked, store, command=command, listener=listener, stop=stop, executor=executor)
    (experiment,) = (each for each in store.experiments() if each.name == run.experiment.name)
    first = min((cell.train for cell in asked.cells), key=lambda train: train.data_seed)
    attach_notes(store, experiment.name, asked.tasks[0])
    standardised = spec_of(asked.cells[0]).standardises
    attach_baselines(store, experiment.name, asked.tasks[0], lengths_of(asked), first, standardised=standardised)
    measurement = Measurement(
        experiment=experiment, records=tuple(experiment.own(store.records())), folder=store.root, run=run
    )
    _keep_heads_read(measurement, store, asked.tasks[0], stop)
    return measurement


def measure_question(
    question: Question,
    store: Store,
    *,
    effort: str | None = None,
    minutes: float | None = None,
    command: str = "",
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    executor: Executor | None = None,
) -> Measurement:
    """Ask a question, and read the whole experiment from the store; see `effort.ask` for the arguments.

    What the heads of the best model read is kept as by `measure_sweep`.
    """
    asked = ask(
        question,
        store,
        effort_of(effort or DEFAULT_EFFORT),
        minutes=minutes,
        command=command,
        listener=listener,
        stop=stop,
        executor=executor,
    )
    stored = {each.name: each for each in store.experiments()}
    experiment = stored.get(asked.run.experiment.name, question.whole())
    records = tuple(experiment.own(store.records())) if asked.begun else ()
    if asked.ended == "budget" and not records:
        raise BudgetError(
            f"minutes {minutes:g} is too short: no model was trained. Give more, or ask for fewer lengths or steps.",
            what="minutes",
            given=minutes,
        )
    measurement = Measurement(
        experiment=experiment,
        records=records,
        folder=store.root,
        run=asked.run,
        ended=asked.ended,
    )
    _keep_heads_read(measurement, store, question.task, stop)
    return measurement


def _keep_heads_read(measurement: Measurement, store: Store, task: AbstractTask, stop: threading.Event | None) -> None:
    if measurement.records:
        for attach in (attach_heads_read, after_training):
            attach(store, measurement.experiment, measurement.records, measurement.answer(), task, stop)


def shown_by(bar: StepBar, on_early: Callable[[Early], None] = lambda early: None) -> Listener:
    """A listener that moves a progress bar; one that fails stops moving."""
    moving = Listener(
        on_plan=lambda why, model_steps: bar.expect(model_steps, why),
        on_programs=bar.compiled,
        on_steps=bar.advance,
        on_early=on_early,
        on_workers=bar.working,
    )
    return Listener.joined(moving)


def default_folder(name: str) -> Path:
    """Where results go when nobody says where."""
    return Path("results") / file_name(name)
