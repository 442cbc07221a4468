"""Cells, records and experiments made by hand. Light: processes that are to be killed import it too."""

from headcount.store import Cell, Experiment, Outcome, Record, Store, TrainSpec, rows

MODEL = {"kind": "class-token", "heads": 2}


def a_cell(**changes) -> Cell:
    plain = {"task": {"task": "any"}, "length": 8, "model": MODEL, "train": TrainSpec(), "seed": 0}
    return Cell(**(plain | changes))


def a_record(outcome: Outcome = Outcome.FINISHED, **changes) -> Record:
    plain = {"cell": a_cell(), "metrics": {"nmse": 0.25}, "curve": ((0, 1.0), (9, 0.25)), "provenance": {"seconds": 1}}
    return Record(outcome=outcome, **(plain | changes))


def bucket(*seeds: int, padding: int = 0) -> list[Record]:
    return [a_record(cell=a_cell(seed=seed), message="x" * padding) for seed in seeds]


def an_experiment(*seeds: int, **changes) -> Experiment:
    """The cells of `bucket(*seeds)`, along one axis."""
    plain = {"name": "mine", "question": "How many?", "task": "any", "axes": ("seed",), "settings": {"task": {"d": 1}}}
    return Experiment(**({"places": {a_cell(seed=seed).key: (seed,) for seed in seeds}} | plain | changes))


def insert(store: Store, records: list[Record]) -> None:
    """A commit that has not come to its end: rows in the middle of a transaction, some already in the file."""
    connection = store._connection
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    rows.insert(connection, records, {})
