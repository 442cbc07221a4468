"""Results that nothing was trained for: experiments over named axes, records with errors one chooses, and folders."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headcount._choices import STARTS
from headcount.papers.base import AbstractStudy, Scale
from headcount.papers.beyond import alphabet, architectures, norm
from headcount.papers.beyond.depth import DepthStudy
from headcount.papers.beyond.norm import NormStudy
from headcount.papers.beyond.shared_keys import SharedKeysStudy, _divisors
from headcount.papers.beyond.sparse import SparseStudy
from headcount.papers.claims.places import EACH_TIME, ONCE
from headcount.papers.head_count import table2
from headcount.papers.head_count.converged import TABLES, ConvergedStudy
from headcount.papers.head_count.table2_draws import DrawsStudy
from headcount.papers.head_count.width import HEADS, WidthStudy
from headcount.papers.others.memorise import MemoriseStudy
from headcount.papers.rank import norms
from headcount.papers.rank.base import RankStudy
from headcount.papers.real_data.cifar import CifarStudy
from headcount.papers.real_data.cifar_places import CifarPlacesStudy
from headcount.papers.real_data.marco import MarcoStudy
from headcount.papers.real_data.marco_epochs import MarcoEpochsStudy
from headcount.papers.real_data.marco_queries import MarcoQueriesStudy
from headcount.papers.real_data.passages import TRAINED
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


def study_sweep(study: AbstractStudy, scale: Scale = Scale.SMOKE) -> Sweep:
    """A study's experiment over its true axes, without tasks and models."""
    parts = [sweep(axes, task=study.trained_by, **study_names(study, scale)) for axes in _study_axes(study, scale)]
    places = {key: place for part in parts for key, place in part.experiment.places.items()}
    experiment = replace(parts[0].experiment, places=places)
    return Sweep(experiment, tuple(cell for part in parts for cell in part.cells))


def study_names(study: AbstractStudy, scale: Scale) -> dict[str, str]:
    return {"name": f"{study.trained_by}-{scale}", "study": study.trained_by, "scale": scale.value}


def _study_axes(study: AbstractStudy, scale: Scale) -> list[dict[str, Sequence[Any]]]:
    effort = study.efforts[scale]
    rest = {"length": effort.lengths, "seed": tuple(range(effort.seeds))}
    if isinstance(study, DepthStudy | MemoriseStudy):
        return list(study.efforts[scale].grid())
    if isinstance(study, WidthStudy):
        return [{"heads": HEADS, "hidden": study.widths[scale]} | rest]
    if isinstance(study, NormStudy):
        return [{"heads": norm.HEADS, "norm": tuple(norm.NORMS)} | rest]
    if isinstance(study, RankStudy):
        effort = study.efforts[scale]
        return [
            {"rank": tuple(width // h for h in effort.heads), "layers": effort.layers, "multiplier": effort.multipliers}
            | {"dim": (dim,), "positions": (positions,)}
            | ({"recipe": tuple(norms.RECIPES)} if isinstance(study, norms.NormsStudy) else {})
            | rest
            for dim in effort.dims
            for positions in effort.positions
            for width in [2 * dim if positions == "concatenated" else dim]
        ]
    if isinstance(study, alphabet.AlphabetStudy):
        return [{"heads": alphabet.HEADS, "beta": (alphabet.SOFT, alphabet.SHARP)} | rest]
    if isinstance(study, architectures.ArchitectureStudy):
        effort = study.efforts[scale]
        heads = dict.fromkeys(architectures.CONTROLS, (architectures.MATCHED_HEADS,))
        return [
            {"heads": heads.get(name, effort.heads), "task": (task,), "architecture": (name,)}
            | {"length": effort.lengths, "learning_rate": effort.learning_rates, "seed": rest["seed"]}
            for task in effort.tasks
            for name in (architectures.ATTENTION, *architectures.controls_of(task))
        ]
    if isinstance(study, CifarPlacesStudy):
        heads, lengths = study.efforts[scale].heads, {EACH_TIME: effort.lengths, ONCE: effort.lengths[1:]}
        return [
            {"heads": heads, "places": (places,), "length": some, "seed": rest["seed"]}
            for places, some in lengths.items()
        ]
    if isinstance(study, MarcoStudy):
        efforts = {"candidates": study.efforts[scale], "pairs": study.efforts[scale].pairs}
        return [
            {"heads": e.heads, "layout": (layout,), "length": e.lengths, "seed": tuple(range(e.seeds))}
            for layout, e in efforts.items()
        ]
    if isinstance(study, MarcoEpochsStudy):
        return [{"heads": study.efforts[scale].heads, "epochs": study.efforts[scale].tried} | rest]
    if isinstance(study, MarcoQueriesStudy):
        effort = study.efforts[scale]
        return [{"heads": effort.heads, "queries": tuple(effort.among(TRAINED))} | rest]
    if isinstance(study, SharedKeysStudy):
        effort = study.efforts[scale]
        return [
            {"heads": (heads,), "kv_heads": tuple(_divisors(heads)), "head_dim": effort.head_dims} | rest
            for heads in effort.heads
        ]
    if isinstance(study, SparseStudy):
        return [{"heads": study.efforts[scale].heads, "way": study.efforts[scale].ways} | rest]
    if isinstance(study, DrawsStudy):
        effort = study.efforts[scale]
        axes = {"heads": table2.STUDY.published.values("heads"), "task_seed": tuple(range(effort.draws))}
        return [axes | {"length": rest["length"], "data_seed": tuple(range(effort.data_draws)), "seed": rest["seed"]}]
    if isinstance(study, ConvergedStudy):
        variants = tuple(study.efforts[scale].variants())
        return [
            {"heads": (table.transition,), "variant": variants, "table": (name,)} | rest
            for name, table in TABLES.items()
        ]
    if isinstance(study, CifarStudy):
        return [{"heads": study.efforts[scale].heads} | rest]
    return [
        {"heads": table2.STUDY.published.values("heads") if study.reads else study.published.values("heads")} | rest
    ]
