"""Results that nothing was trained for: cells of a study or of an own experiment, with errors one chooses."""

from collections.abc import Callable, Iterable
from pathlib import Path

from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.store import Cell, Outcome, Record, Store, TrainSpec
from headcount.studies import STUDIES, Scale

PROVENANCE = {"device": "a test", "versions": {"headcount": "0"}, "seconds": 2.0, "finished": "2026-01-01T00:00:00"}
OWN = {"task": "own"}


def study_cells(name: str, scale: Scale = Scale.SMOKE) -> tuple[Cell, ...]:
    return STUDIES[name].sweep(scale).cells


def own_cells(heads=(1, 2, 3), lengths=(8, 16), seeds=(0, 1), task=OWN, **train) -> tuple[Cell, ...]:
    return tuple(
        Cell(task=task, length=length, model=ClassTokenSpec(heads=count), train=TrainSpec(**train), seed=seed)
        for length in lengths
        for count in heads
        for seed in seeds
    )


def map_cells(
    heads=(1, 2, 4, 8), ranks=(1, 2, 4, 8), lengths=(8,), seeds=(0, 1), task=OWN, **model
) -> tuple[Cell, ...]:
    """The cells of a sweep over heads and rank, of encoders 8 numbers wide."""
    return tuple(
        Cell(
            task=task,
            length=length,
            model=EncoderSpec(heads=count, rank=rank, width=8, hidden=16, **model),
            train=TrainSpec(),
            seed=seed,
        )
        for length in lengths
        for count in heads
        for rank in ranks
        for seed in seeds
    )


def sharp_in_rank(cell: Cell) -> float:
    """Errors that fall tenfold at rank 8, as for the farthest of points in eight dimensions."""
    return (0.55 if cell.model.rank < 8 else 0.05) * (1 + 0.02 * cell.seed)


def sharp(cell: Cell) -> float:
    """Errors that fall hundredfold at 4 heads and scatter with the seed."""
    return (2e-2 if cell.model.heads < 4 else 1e-4) * (1 + 0.1 * cell.seed) * cell.length**0.3


def finished(cells: Iterable[Cell], error: Callable[[Cell], float] = sharp) -> list[Record]:
    return [settled(cell, nmse=error(cell)) for cell in cells]


def settled(cell: Cell, outcome: Outcome = Outcome.FINISHED, nmse: float = 0.1, message: str = "") -> Record:
    metrics = {"nmse": nmse, "final_nmse": nmse, "train_nmse": nmse} if outcome is Outcome.FINISHED else {}
    return Record(cell=cell, outcome=outcome, metrics=metrics, curve=(), provenance=PROVENANCE, message=message)


def lost(cells: Iterable[Cell], outcome: Outcome, message: str = "") -> list[Record]:
    return [settled(cell, outcome, message=message) for cell in cells]


def write(root: Path, records: Iterable[Record], asked: dict[str, Iterable[Cell]] | None = None) -> Path:
    """A results folder of these records; `asked` are the cells of every command."""
    with Store.open_for_writing(root) as store:
        for command, cells in (asked or {}).items():
            store.begin_sweep(command, cells)
        store.commit(list(records))
    return root
