"""Results that nothing was trained for: experiments over named axes, records with errors one chooses, and folders."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headcount._choices import STARTS
from headcount.papers.base import Scale, Study
from headcount.store import Cell, Outcome, Record, Store, TrainSpec
from headcount.store.experiment import Experiment

PROVENANCE = {"device": "a test", "versions": {"headcount": "0"}, "seconds": 2.0, "finished": "2026-01-01T00:00:00"}
LINE = {"heads": (1, 2, 3, 4, 5, 6), "length": (8, 16), "seed": (0, 1)}
MAP = {"heads": (1, 2, 4, 8), "rank": (1, 2, 4, 8), "length": (8,), "seed": (0, 1)}
DESCENT = {"heads": (1, 3, 4, 5, 8), "length": (8, 16), "data_seed": (0, 1), "start": STARTS, "seed": (0, 1)}
TRAIN_FIELDS = ("learning_rate", "data_seed", "steps")

Errors = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Sweep:
    """What `engine.sweep` makes, without tasks and models."""

    experiment: Experiment
    cells: tuple[Cell, ...]

    def coordinates(self) -> list[dict[str, Any]]:
        return [self.experiment.coordinates(cell.key) for cell in self.cells]


def sweep(
    axes: Mapping[str, Sequence[Any]] = LINE,
    *,
    task: str = "own",
    name: str = "",
    study: str = "",
    scale: str = "",
    kept: Callable[[dict[str, Any]], bool] = lambda _: True,
    **train: Any,
) -> Sweep:
    """The cells at every combination of the axes that is `kept`; `train` changes the training of all.

    Along an axis "start", those that are not random have the first random start of most heads for a parent.
    """
    cells, places = [], {}
    for place in itertools.product(*axes.values()):
        at = dict(zip(axes, place, strict=True))
        if not kept(at):
            continue
        cell = Cell(
            task={"task": task},
            length=at.get("length", 8),
            model={key: value for key, value in at.items() if key not in ("length", "start", "seed", *TRAIN_FIELDS)},
            train=TrainSpec(**train | {field: at[field] for field in TRAIN_FIELDS if field in at}),
            seed=at.get("seed", 0),
        )
        if at.get("start", "random") != "random":
            most = max(axes["heads"])
            parent = replace(cell, model=cell.model | {"heads": most}, seed=0).key
            removed = tuple(range(most - at["heads"])) if at["start"] == "descended" else ()
            cell = replace(cell, parent=parent, removed=removed)
        cells.append(cell)
        places[cell.key] = place
    experiment = Experiment(
        name=name or task,
        question="How many attention heads does this task need?",
        task=task,
        axes=tuple(axes),
        places=places,
        settings={"task": {"task": task}, "model": {}, "train": train},
        study=study,
        scale=scale,
    )
    return Sweep(experiment, tuple(cells))


def descent(axes: Mapping[str, Sequence[Any]] = DESCENT, **names: Any) -> Sweep:
    """A search from above: random starts at 1, 3 and 8 heads (one at 3), descended models at 3, 4 and 5.

    The second draw of the data has no model of 1 head.
    """
    tried = {"random": (1, 3, 8), "descended": (3, 4, 5), "continued": ()}

    def asked(at: dict[str, Any]) -> bool:
        fewer = (at["heads"], at["start"]) == (3, "random") and at["seed"] > 0
        return at["heads"] in tried[at["start"]] and not fewer and not (at["data_seed"] > 0 and at["heads"] == 1)

    return sweep(axes, kept=asked, **names)


def sharp(at: dict[str, Any]) -> float:
    """Errors that fall hundredfold at 4 heads, scatter with the seed and grow with length."""
    return (2e-2 if at.get("heads", 4) < 4 else 1e-4) * (1 + 0.1 * at.get("seed", 0)) * at.get("length", 8) ** 0.3


def sharp_in_rank(at: dict[str, Any]) -> float:
    """Errors that fall elevenfold at rank 8, as for the farthest of points in eight dimensions."""
    return (0.55 if at["rank"] < 8 else 0.05) * (1 + 0.02 * at.get("seed", 0))


def record(cell: Cell, outcome: Outcome = Outcome.FINISHED, message: str = "", **metrics: float) -> Record:
    """The record of a cell; a cell that did not finish has no metrics."""
    kept = metrics if outcome is Outcome.FINISHED else {}
    return Record(cell=cell, outcome=outcome, metrics=kept, curve=(), provenance=PROVENANCE, message=message)


def finished(made: Any, error: Errors = sharp) -> list[Record]:
    """A finished record per cell of a sweep, with the error that `error` gives for its coordinates."""
    records = []
    for cell in made.cells:
        nmse = error(made.experiment.coordinates(cell.key))
        fitted = {"fitted_error": nmse} if made.experiment.study == "memorise" else {}  # what that study is judged by
        records.append(record(cell, nmse=nmse, final_nmse=nmse, train_nmse=nmse, baseline=1.0, **fitted))
    return records


def graded(made: Any, metrics: Callable[[dict[str, Any]], Mapping[str, float]]) -> list[Record]:
    """A finished record per cell of a sweep, with these metrics."""
    return [record(cell, **metrics(made.experiment.coordinates(cell.key))) for cell in made.cells]


def lost(cells: Iterable[Cell], outcome: Outcome, message: str = "") -> list[Record]:
    return [record(cell, outcome, message) for cell in cells]


def write(root: Path, records: Iterable[Record], begun: Mapping[str, Any] | None = None) -> Path:
    """A results folder of these records; `begun` has the sweep of every command that began a run."""
    with Store.open_for_writing(root) as store:
        for command, made in (begun or {}).items():
            store.begin(made.experiment, command)
        store.commit(list(records))
    return root


def study_sweep(study: Study, scale: Scale = Scale.SMOKE) -> Sweep:
    """A study's experiment over its true axes, without tasks and models."""
    parts = [sweep(axes, task=study.trained_by, **study_names(study, scale)) for axes in _study_axes(study, scale)]
    places = {key: place for part in parts for key, place in part.experiment.places.items()}
    experiment = replace(parts[0].experiment, places=places)
    return Sweep(experiment, tuple(cell for part in parts for cell in part.cells))


def study_names(study: Study, scale: Scale) -> dict[str, str]:
    return {"name": f"{study.trained_by}-{scale}", "study": study.trained_by, "scale": scale.value}


def _study_axes(study: Study, scale: Scale) -> list[dict[str, Sequence[Any]]]:
    trained = study.reads or study
    return [_axes(part) for part in trained.swept(trained.efforts[scale])]


def _axes(part: Any) -> dict[str, Sequence[Any]]:
    """Values by axis, in the order of an experiment's axes: of models, shared ones, the length, training, the seed."""
    own = {axis: tuple(values) for axis, values in part.axes.items()}
    shared = {axis: (value,) for axis, value in part.at.items()}
    trained = {axis: own.pop(axis) for axis in TRAIN_FIELDS if axis in own}
    length, seed = {"length": own.pop("length")}, {"seed": own.pop("seed")}
    return own | shared | length | trained | seed
