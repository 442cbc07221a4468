"""From named axes to cells, and the experiment that remembers where each cell lies."""

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from .._limits import require_size, require_within
from .._user_files import user_supplied
from ..errors import InputError, require
from ..models import AbstractSpec, EncoderSpec
from ..store import Cell, Content, Experiment, TrainSpec, Value, json_text
from ..tasks import AbstractTask

HEADS_QUESTION = "How many attention heads does this task need?"
RANK_QUESTION = "Does this task need more heads, or heads of a higher rank?"
MAP_QUESTION = "How many heads does this task need at every kv_heads and head_dim?"
TRAIN_FIELDS = frozenset(field.name for field in fields(TrainSpec))
DRAWN_FREELY = ("seed", "data_seed", "task_seed")
"""Axes whose values are names of draws, not sizes."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All the models to be trained, the tasks that their cells name, and the experiment they answer."""

    experiment: Experiment
    tasks: tuple[AbstractTask, ...]
    cells: tuple[Cell, ...]

    @functools.cached_property
    def by_key(self) -> dict[str, AbstractTask]:
        """The tasks under the keys by which shapes name them."""
        return {json_text(task.spec()): task for task in self.tasks}

    def part(self, **kept: Iterable[Value]) -> "Sweep":
        """The same sweep with only these values of some axes."""
        places = self.experiment.part(**kept).places
        return self.where(lambda cell: cell.key in places)

    def where(self, keeps: Callable[[Cell], bool]) -> "Sweep":
        """The same sweep with only the cells that `keeps` is true of."""
        cells = tuple(cell for cell in self.cells if keeps(cell))
        places = {cell.key: self.experiment.places[cell.key] for cell in cells}
        return replace(self, experiment=replace(self.experiment, places=places), cells=cells)


def sweep(
    task: AbstractTask,
    *,
    axes: Mapping[str, Sequence[Value]],
    model: Callable[..., AbstractSpec],
    train: TrainSpec,
    at: Mapping[str, Value] | None = None,
    name: str = "",
    question: str = HEADS_QUESTION,
    study: str = "",
    scale: str = "",
) -> Sweep:
    """Every combination of the values along some axes.

    Args:
        task: What is to be learned.
        axes: Values by axis name. "length" and "seed" are the cell's own, fields of `TrainSpec` such as "learning_rate"
            or "data_seed" change the training, and every other axis is an argument of `model`.
        model: Gives a model spec: `model(heads, **others)`, or `model(**others)` without an axis "heads".
        train: How every model is trained, but for what the axes change.
        at: Further coordinates that all these cells share; `joined` makes an axis of them.
        name: The experiment's name; the task's where it is empty.
        question: What the experiment asks.
        study: The study it belongs to; empty for a user's own.
        scale: The scale of that study.

    Returns:
        The cells with their experiment, ready for `run_sweep`.

    Raises:
        InputError: If an axis is empty or repeats a value, if the task has no such length, or if the model cannot
            answer the task. Whether there is memory for it is asked by `run_sweep`.

    Example:
        >>> import headcount as hc
        >>> task = hc.find_task("max-plus-min")
        >>> plan = hc.sweep(
        ...     task,
        ...     axes={"heads": [1, 2], "hidden": [8, 16], "length": [8], "seed": [0, 1]},
        ...     model=lambda heads, hidden: hc.ClassTokenSpec(heads=heads, hidden=hidden),
        ...     train=hc.TrainSpec(steps=100),
        ... )
        >>> len(plan.cells), plan.experiment.axes
        (8, ('heads', 'hidden', 'length', 'seed'))
    """
    axes = {"length": [task.length], "seed": [0]} | dict(axes)
    require_axes_fit(axes)
    axes = {axis: _distinct(axis, values) for axis, values in axes.items()}
    model_axes = [axis for axis in axes if axis not in ("length", "seed") and axis not in TRAIN_FIELDS]
    train_axes = [axis for axis in axes if axis in TRAIN_FIELDS]
    specs = {place: _spec(model, dict(zip(model_axes, place, strict=True))) for place in _product(axes, model_axes)}
    trains = {
        place: replace(train, **dict(zip(train_axes, place, strict=True)))  # pyright: ignore[reportArgumentType]
        for place in _product(axes, train_axes)
    }
    for settings in (*(spec.as_dict() for spec in specs.values()), *map(asdict, trains.values())):
        for name_of_size, value in settings.items():
            _require_sizes(name_of_size, [value])
    for spec, each in itertools.product(specs.values(), trains.values()):
        _require_fit(task, spec, each)
    require(
        task.endless or all(each.train_examples > 0 for each in trains.values()),
        f"{task.name} is stored examples, which cannot be drawn afresh; train_examples must be at least 1, got 0.",
        what="train_examples",
        given=0,
    )
    probes = {}
    for length in axes["length"]:
        probes[length] = task.at(length).probe()  # refuses a length the task cannot have, before anything is trained
        for spec in specs.values():
            spec.require_length(length)
    # All cells share these, so that a hundred thousand of them fit in memory and their keys are found in a second.
    task_spec, shared = Content.from_object(task.spec()), dict(at or {})
    models = {place: Content.from_object(spec.as_dict()) for place, spec in specs.items()}
    cells, places = [], {}
    combinations = itertools.product(axes["length"], models.items(), trains.items(), axes["seed"])
    for length, (of_model, content), (of_train, each), seed in combinations:
        cells.append(Cell(task=task_spec, length=length, model=content, train=each, seed=seed, probe=probes[length]))
        places[cells[-1].key] = (*of_model, *shared.values(), length, *of_train, seed)
    require(
        len(places) == len(cells),
        f"the {len(cells)} combinations of {', '.join(axes)} give only {len(places)} different models; "
        "every axis must change the model or its training.",
    )
    settings = {
        "task": task_spec,
        "model": _shared(models.values()),
        "train": _shared(each.as_dict() for each in trains.values()),
    }
    # A value tried alone must leave the same settings as several: the experiment can be extended along its axes.
    following = {*model_axes, *_following(model, dict(zip(model_axes, next(iter(specs)), strict=True)))}
    for part, names in (("model", following), ("train", train_axes)):
        settings[part] = {field: value for field, value in settings[part].items() if field not in names}
    experiment = Experiment(
        name=name or task.name,
        question=question,
        task=task.name,
        axes=(*model_axes, *shared, "length", *train_axes, "seed"),
        places=places,
        settings=settings,
        study=study,
        scale=scale,
    )
    return Sweep(experiment=experiment, tasks=(task,), cells=tuple(cells))


def joined(sweeps: Iterable[Sweep]) -> Sweep:
    """Sweeps of one study over the same axes as one experiment; what they share are its settings.

    No cell is in two of them, unless at the same place.
    """
    sweeps = list(sweeps)
    experiments = [each.experiment for each in sweeps]
    assert len({each.axes for each in experiments}) == 1
    tasks = {key: task for each in sweeps for key, task in each.by_key.items()}
    places = {key: place for each in experiments for key, place in each.places.items()}
    assert all(places[key] == place for each in experiments for key, place in each.places.items())
    settings = {part: _shared(each.settings[part] for each in experiments) for part in ("task", "model", "train")}
    experiment = replace(experiments[0], places=places, settings=settings)
    cells = {cell.key: cell for each in sweeps for cell in each.cells}
    return Sweep(experiment=experiment, tasks=tuple(tasks.values()), cells=tuple(cells.values()))


def _spec(model: Callable[..., AbstractSpec], coordinates: dict[str, Value]) -> AbstractSpec:
    """Heads are passed by position, so that `lambda h: ..` will do."""
    others = {axis: value for axis, value in coordinates.items() if axis != "heads"}
    heads = [coordinates["heads"]] if "heads" in coordinates else []
    return user_supplied(lambda: model(*heads, **others), name=f"model({', '.join(coordinates)})")


def _following(model: Callable[..., AbstractSpec], coordinates: dict[str, Value]) -> set[str]:
    """The fields of a spec that change along its axes, such as a width that grows with the heads.

    Seen by doubling one coordinate at a time; where the model has no such value, nothing is learned from it.
    """
    own, fields = _spec(model, coordinates).as_dict(), set()
    for axis, value in coordinates.items():
        if isinstance(value, int):
            with contextlib.suppress(InputError):
                other = _spec(model, coordinates | {axis: 2 * value}).as_dict()
                fields |= {field for field in own if own[field] != other.get(field)}
    return fields


def _product(axes: Mapping[str, Sequence[Value]], names: Sequence[str]) -> Iterable[tuple[Value, ...]]:
    return itertools.product(*(axes[name] for name in names))


def _shared(contents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that all contents share."""
    first, *others = contents
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _require_fit(task: AbstractTask, spec: AbstractSpec, train: TrainSpec) -> None:
    require(
        task.tokenise is None or isinstance(spec, EncoderSpec) or not spec.standardises,
        f"{task.name} is data with labels, which a {spec.kind} model cannot read; use an EncoderSpec.",
    )
    needed = 'masks_padding=True and padding="nan"' if isinstance(spec, EncoderSpec) else "masks_padding=True"
    require(
        task.tokenise is not None or spec.masks_nan or not task.padded,
        f"{task.name} has sequences of unequal length; the model needs {needed}.",
        what="masks_padding",
    )
    require(
        spec.vocabulary == task.vocabulary,
        f"{task.name} has {task.vocabulary} token ids (0: numbers), the model {spec.vocabulary}; they must match: "
        f"vocabulary={task.vocabulary}.",
        what="vocabulary",
        given=spec.vocabulary,
    )
    require(
        spec.answered_at == task.answered_at,
        f'{task.name} is answered at "{task.answered_at}", the model at "{spec.answered_at}"; '
        f'use an EncoderSpec with answered_at="{task.answered_at}".',
    )
    require(
        train.precision in spec.precisions,
        f"a {spec.kind} model is trained in {' or '.join(spec.precisions)}, got precision {train.precision}.",
        what="precision",
        given=train.precision,
    )


def _distinct(name: str, values: Iterable[Value]) -> list[Any]:
    plain: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in values]
    require(len(plain) > 0, what=name, given=plain, needed="at least one value")
    require(len(set(plain)) == len(plain), what=name, given=plain, needed="distinct values")
    return plain


def require_axes_fit(axes: Mapping[str, Sequence[Any]]) -> None:
    """Raise `InputError` if axes have more combinations than are allowed, or a value that no machine can have."""
    counts = {axis: len(values) if isinstance(values, Sized) else 1 for axis, values in axes.items()}
    models = math.prod(counts.values())
    listed = " x ".join(f"{count:,} of {axis}" for axis, count in counts.items() if count > 1)
    require_within(f"{models:,} models are asked for ({listed})", models, "HEADCOUNT_MAX_MODELS")
    for axis, values in axes.items():
        _require_sizes(axis, values if isinstance(values, Sized) else ())


def _require_sizes(name: str, values: Sequence[Any]) -> None:
    if name not in DRAWN_FREELY:
        for value in values:
            require_size(name, value)
