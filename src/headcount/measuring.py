"""From a task to an answer: the recipe, the sweep, the store and the analysis joined."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

from . import recipes
from ._errors import did_you_mean, require
from .engine import HEADS_QUESTION, RANK_QUESTION, RunSummary, Sweep, run_sweep, sweep
from .engine.sweep import TRAIN_FIELDS
from .measurement import Measurement
from .models import AbstractSpec
from .report.files import file_name
from .report.progress import automatic_progress
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
    learning_rates: Sequence[float] | None = None,
    model: Callable[..., AbstractSpec] | None = None,
    train: TrainSpec | None = None,
    axes: Mapping[str, Sequence[Value]] | None = None,
    out: Path | str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Measurement:
    """How many heads a task needs, by training every combination and keeping the results.

    Calling it again with the same folder continues: what is stored there is not trained again.

    Args:
        task: A task, or what `find_task` takes: "sum-of-maxima", "data.npz", "mine.py:task".
        heads: Head counts to try; 1 to 6 where None.
        ranks: Query and key widths to try with every head count; then the question is which of the two is short.
        lengths: Sequence lengths; 8, 16, 32, or the task's own where it has only one.
        seeds: Seeds per combination; 4 where None.
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
        InputError: If something asked for cannot be right.
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
    asked = measurement_sweep(
        found,
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
    folder = default_folder(found.name) if out is None else Path(out)
    with Store.open_for_writing(folder) as store:
        steps = sum(cell.train.steps for cell in asked.cells if cell.key not in store.settled_keys())
        with automatic_progress(steps, progress) as on_steps:
            return measure_sweep(asked, store, on_steps=on_steps)


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
    """The sweep that `measure` trains, here and on the command line; see `measure` for the arguments."""
    known = (*TRAIN_OPTIONS, *MODEL_OPTIONS)
    for name in options:
        hint = f'unknown option "{name}".{did_you_mean(name, known)} Known: {", ".join(known)}.'
        require(name in known, hint, what=name)
    of_train = _given(options, TRAIN_OPTIONS, beside="train" if train is not None else "")
    of_model = _given(options, MODEL_OPTIONS, beside="model" if model is not None else "")
    for axis in axes or {} if model is None else ():
        fields = (*MODEL_OPTIONS, *TRAIN_FIELDS)
        hint = f'unknown axis "{axis}".{did_you_mean(axis, fields)} Known: {", ".join(sorted(fields))}.'
        require(axis in fields, hint, what=axis)
    make = recipes.model_for(task, **of_model) if model is None else _with_rank(model, ranks)
    tried = recipes.axes_for(
        task, heads=heads, ranks=ranks, lengths=lengths, seeds=seeds, learning_rates=learning_rates
    )
    return sweep(
        task,
        axes=tried | dict(axes or {}),
        model=make,
        train=recipes.train_for(task, **of_train) if train is None else train,
        question=RANK_QUESTION if ranks is not None and len(ranks) > 1 else HEADS_QUESTION,
    )


def measure_sweep(
    asked: Sweep,
    store: Store,
    *,
    command: str = "",
    on_steps: Callable[[int], None] = lambda model_steps: None,
    stop: threading.Event | None = None,
) -> Measurement:
    """Train what is missing of a sweep, and read the whole experiment from the store."""
    run: RunSummary = run_sweep(asked, store, command=command, on_steps=on_steps, stop=stop)
    (experiment,) = (each for each in store.experiments() if each.name == run.experiment.name)
    return Measurement(
        experiment=experiment, records=tuple(experiment.own(store.records())), folder=store.root, run=run
    )


def default_folder(name: str) -> Path:
    """Where results go when nobody says where."""
    return Path("results") / file_name(name)


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
