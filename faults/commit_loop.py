"""A run without training: made-up buckets with weights are committed one after another, those that are missing."""

import os

import numpy as np

from headcount.errors import HeadcountError
from headcount.store import Cell, Experiment, Outcome, Record, Store, TrainSpec

BUCKETS, MEMBERS = 4, 2


def buckets() -> list[list[Record]]:
    """What is committed: the same at every call."""
    cells = [
        Cell(
            task={"task": "made-up"},
            length=8,
            model={"kind": "class-token", "heads": 1 + number % 2},
            train=TrainSpec(),
            seed=number,
        )
        for number in range(BUCKETS * MEMBERS)
    ]
    records = [
        Record(
            cell=cell,
            outcome=Outcome.FINISHED,
            metrics={"nmse": 1 / (1 + cell.seed)},
            curve=((0, 1.0), (9, 0.25)),
            provenance={"seconds": 1.0, "device": "none"},
        )
        for cell in cells
    ]
    return [records[start : start + MEMBERS] for start in range(0, len(records), MEMBERS)]


def experiment() -> Experiment:
    places = {record.cell.key: (record.cell.model["heads"], record.cell.seed) for b in buckets() for record in b}
    return Experiment(name="made-up", question="How many?", task="made-up", axes=("heads", "seed"), places=places)


def commit_loop(folder: str) -> None:
    """Commit every bucket that is not there yet; a refusal ends in its sentence, as the command line's does."""
    try:
        with Store.open_for_writing(folder) as store:
            store.begin(experiment(), "commit-loop")
            for records in buckets():
                if {record.cell.key for record in records} - store.settled_keys():
                    weights = {record.cell.key: {"a": np.arange(6.0) + record.cell.seed} for record in records}
                    store.commit(records, weights)
    except HeadcountError as error:
        os.write(2, f"headcount: {error}\n".encode())
        raise SystemExit(error.exit_code) from None
