"""From a task to an answer: the recipe, the sweep, the store and the analysis joined."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from . import recipes
from ._errors import BudgetError, did_you_mean, require
from .effort import DEFAULT_EFFORT, Question, ask, effort_of
from .engine import HEADS_QUESTION, RANK_QUESTION, Early, Listener, RunSummary, Sweep, run_sweep, sweep
from .engine.baselines import attach_baselines
from .engine.sweep import TRAIN_FIELDS
from .measurement import Measurement
from .models import AbstractSpec
from .report.files import file_name
from .report.progress import StepBar, automatic_progress
from .store import Store, TrainSpec, Value
from .tasks import AbstractTask
from .tasks.find import find_task

TRAIN_OPTIONS = tuple(field.name for field in fields(TrainSpec) if field.name != "learning_rate")
MODEL_OPTIONS = tuple(name for name in signature(recipes.model_for).parameters if name != "task")


def measure(
    task: AbstractTask | str,
    *,
    heads: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
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
    **options: Any,
) -> Measurement:
    """How many heads a task needs: trains what the answer depends on, until it is settled, and keeps the results.

    Large models are trained first, and smaller ones descend from them by losing heads. With `seeds`, `ranks`, `axes` or
    several learning rates every combination is trained from random weights instead, as in the papers. Calling it again
    with the same folder continues: what is stored there is not trained again.

    Args:
        task: A task, or what `find_task` takes: "sum-of-maxima", "data.npz", "mine.py:task".
        heads: Head counts that may be tried; where None, 1 to 12, and more where the task needs more. With `seeds`,
            those that are tried: 1 to 6 where None.
        ranks: Query and key widths to try with every head count; then the question is which of the two is short.
        lengths: Sequence lengths; 8, 16, 32, or the task's own where it has only one.
        seeds: Random starts at every head count, as in the papers, and nothing else.
        effort: "quick", "normal" (where None) or "thorough": how much is tried before the answer counts as settled.
        minutes: After so many minutes what has finished is answered from.
        learning_rates: Peak learning rates; the best one per seed counts.
        model: `model(heads)` gives a spec; the recipe's models where None.
        train: How models are trained; the recipe's training where None.
        axes: Further axes, such as {"hidden": [8, 32]} or {"data_seed": [0, 1]}.
        out: The results folder; results/TASK where None.
        progress: Show a progress bar; where None, in a terminal and in a notebook.
        **options: Changes to the recipe: fields of `TrainSpec` (`steps=500`) and of the models (`hidden=64, layers=2,
            head_dim=4, total_dim=32, positions="none", beta=2.0, multiplier=8`).

    Returns:
        The answer with its evidence, the table of errors, and the models.

    Raises:
        InputError: If something asked for cannot be right, or `minutes` were over before anything was trained.
        StoreError: If the folder cannot be written.

    Example:
        >>> import tempfile, headcount as hc
        >>> print(hc.measure(  # far too few steps to learn anything
        ...     "max-plus-min", heads=[1, 2], lengths=[4], seeds=2, steps=4, train_examples=50,
        ...     validation_examples=20, out=tempfile.mkdtemp(), progress=False,
        ... ))
        no transition found: ...
    """
    found = find_task(task) if isinstance(task, str) else task
    asked = to_measure(
        found,
        heads=heads,
        ranks=ranks,
        lengths=lengths,
        seeds=seeds,
        effort=effort,
        minutes=minutes,
        learning_rates=learning_rates,
        model=model,
        train=train,
        axes=axes,
        **options,
    )
    folder = default_folder(found.name) if out is None else Path(out)
    with Store.open_for_writing(folder) as store, automatic_progress(progress) as bar:
        if isinstance(asked, Sweep):
            bar.expect(sum(cell.train.steps for cell in asked.cells if cell.key not in store.settled_keys()))
            return measure_sweep(asked, store, listener=shown_by(bar))
        listener = shown_by(bar)
        return measure_question(asked, store, effort=effort, minutes=minutes, listener=listener)


def to_measure(
    task: AbstractTask,
    *,
    heads: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    seeds: int | None = None,
    effort: str | None = None,
    minutes: float | None = None,
    learning_rates: Sequence[float] | None = None,
    model: Callable[..., AbstractSpec] | None = None,
    train: TrainSpec | None = None,
    axes: Mapping[str, Sequence[Value]] | None = None,
    **options: Any,
) -> Sweep | Question:
    """What `measure` trains, here and on the command line: a question, or every combination. See `measure`."""
    several = {"seeds": seeds, "ranks": ranks, "axes": axes or None}
    several["learning_rates"] = learning_rates if learning_rates is not None and len(learning_rates) > 1 else None
    every = [name for name, value in several.items() if value is not None]
    if every:
        for name, value in {"effort": effort, "minutes": minutes}.items():
            hint = f"{every[0]} asks for every combination, which {name} does not change; give one of the two."
            require(value is None, hint, what=f"{name} {every[0]}", given=value)
        return measurement_sweep(
            task,
            heads=heads,
            ranks=ranks,
            lengths=lengths,
            seeds=seeds,
            learning_rates=learning_rates,
            model=model,
            train=train,
            axes=axes,
            **options,
        )
    effort_of(effort or DEFAULT_EFFORT)
    for name, values in {"heads": heads, "learning_rates": learning_rates}.items():
        require(values is None or len(values) > 0, what=name, given=values, needed="at least one value")
    require(minutes is None or 0 < minutes < float("inf"), what="minutes", given=minutes, needed="positive and finite")
    make, how = _model_and_train(task, model, train, options)
    if learning_rates is not None:
        how = replace(how, learning_rate=learning_rates[0])
    return question_of(task, make, how, heads, lengths)


def question_of(
    task: AbstractTask,
    model: Callable[..., AbstractSpec],
    train: TrainSpec,
    heads: Sequence[int] | None,
    lengths: Sequence[int] | None,
) -> Question:
    """The question of how many heads a task needs."""
    tried = recipes.axes_for(task, heads=heads, lengths=lengths)
    asked = Question(
        task=task,
        model=model,
        train=train,
        heads=tuple(sorted(tried["heads"])),
        most=max(tried["heads"]),
        lengths=tuple(tried["length"]),
    )
    if heads is not None or not asked.removes_heads:
        return asked
    wider = {"heads": tuple(range(1, recipes.TOP_HEADS + 1)), "most": recipes.MOST_HEADS}
    return Question(task=task, model=model, train=train, lengths=asked.lengths, **wider)


def measurement_sweep(
    task: AbstractTask,
    *,
    heads: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    seeds: int | None = None,
    learning_rates: Sequence[float] | None = None,
    model: Callable[..., AbstractSpec] | None = None,
    train: TrainSpec | None = None,
    axes: Mapping[str, Sequence[Value]] | None = None,
    **options: Any,
) -> Sweep:
    """Every combination of what is tried, from random weights; see `measure` for the arguments."""
    for axis in axes or {} if model is None else ():
        fields = (*MODEL_OPTIONS, *TRAIN_FIELDS)
        hint = f'unknown axis "{axis}".{did_you_mean(axis, fields)} Known: {", ".join(sorted(fields))}.'
        require(axis in fields, hint, what=axis)
    make, how = _model_and_train(task, model, train, options)
    tried = recipes.axes_for(
        task, heads=heads, ranks=ranks, lengths=lengths, seeds=seeds, learning_rates=learning_rates
    )
    return sweep(
        task,
        axes=tried | dict(axes or {}),
        model=make if model is None else _with_rank(model, ranks),
        train=how,
        question=RANK_QUESTION if ranks is not None and len(ranks) > 1 else HEADS_QUESTION,
    )


def measure_sweep(
    asked: Sweep,
    store: Store,
    *,
    command: str = "",
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Measurement:
    """Train what is missing of a sweep, and read the whole experiment from the store."""
    run: RunSummary = run_sweep(asked, store, command=command, listener=listener, stop=stop)
    (experiment,) = (each for each in store.experiments() if each.name == run.experiment.name)
    first = min((cell.train for cell in asked.cells), key=lambda train: train.data_seed)
    lengths = sorted({cell.length for cell in asked.cells})
    attach_baselines(store, experiment.name, asked.tasks[0], lengths, first)
    return Measurement(
        experiment=experiment, records=tuple(experiment.own(store.records())), folder=store.root, run=run
    )


def measure_question(
    question: Question,
    store: Store,
    *,
    effort: str | None = None,
    minutes: float | None = None,
    command: str = "",
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Measurement:
    """Ask a question, and read the whole experiment from the store; see `effort.ask` for the arguments."""
    asked = ask(
        question,
        store,
        effort_of(effort or DEFAULT_EFFORT),
        minutes=minutes,
        command=command,
        listener=listener,
        stop=stop,
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
    return Measurement(
        experiment=experiment,
        records=records,
        folder=store.root,
        run=asked.run,
        ended=asked.ended,
    )


def shown_by(bar: StepBar, on_early: Callable[[Early], None] = lambda early: None) -> Listener:
    """A listener that moves a progress bar."""
    return Listener(
        on_plan=lambda why, model_steps: bar.expect(model_steps, why),
        on_programs=bar.compiled,
        on_steps=bar.advance,
        on_early=on_early,
    )


def default_folder(name: str) -> Path:
    """Where results go when nobody says where."""
    return Path("results") / file_name(name)


def _model_and_train(
    task: AbstractTask, model: Callable[..., AbstractSpec] | None, train: TrainSpec | None, options: dict[str, Any]
) -> tuple[Callable[..., AbstractSpec], TrainSpec]:
    """The models and the training that are asked for: those given, or the recipe's with some options changed."""
    known = (*TRAIN_OPTIONS, *MODEL_OPTIONS)
    for name in options:
        hint = f'unknown option "{name}".{did_you_mean(name, known)} Known: {", ".join(known)}.'
        require(name in known, hint, what=name)
    of_train = _given(options, TRAIN_OPTIONS, beside="train" if train is not None else "")
    of_model = _given(options, MODEL_OPTIONS, beside="model" if model is not None else "")
    make = recipes.model_for(task, **of_model) if model is None else model
    return make, recipes.train_for(task, **of_train) if train is None else train


def _with_rank(model: Callable[..., AbstractSpec], ranks: Sequence[int] | None) -> Callable[..., AbstractSpec]:
    """A user's `model(heads)` also at a given rank."""
    if ranks is None:
        return model
    return lambda heads, rank, **fields: model(heads, **fields).with_rank(rank)


def _given(options: dict[str, Any], names: Sequence[str], *, beside: str) -> dict[str, Any]:
    """Those of the options that were given; none may be, beside an argument that decides them all."""
    given = {name: options[name] for name in names if options.get(name) is not None}
    for name in given if beside else ():
        require(False, f"{beside} was given, which decides {name} too; give one of the two.", what=name)
    return given
