"""Wall seconds of a commit of one bucket, with one weights file per cell and as the store does it: run by
`measure_inputs.py`.

Both write to one disk in turns. Weights are those of a Table 2 model with 4 heads; cells differ in their seeds.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from headcount._draws import named_generator
from headcount.models import ClassTokenSpec
from headcount.store import Cell, Outcome, Record, Store, TrainSpec
from headcount.store.database import SCHEMA_VERSION

MEMBERS = (8, 64)
STORED_CELLS = (0, 10_000)
TURNS = 9
PARAMETERS = ClassTokenSpec(heads=4).parameters(length=16, dim=4, outputs=1)
PROVENANCE = {
    "seconds": 2.0,
    "device": "CPU, 2 cores",
    "backend": "reference",
    "versions": {"jax": "0.10.2"},
}

Write = Callable[[Store, list[Record], dict[str, dict[str, np.ndarray]]], None]


def one_file_per_cell(store: Store, records: list[Record], weights: dict[str, dict[str, np.ndarray]]) -> None:
    """What the store did before format 4: each file is synced, and its folder, then the rows are committed."""
    folder = store.root / "weights"
    folder.mkdir(exist_ok=True)
    for key, arrays in weights.items():
        unfinished = folder / f"{key}.unfinished"
        save_file(arrays, unfinished)
        for path, name in ((unfinished, folder / f"{key}.safetensors"), (folder, None)):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            if name is not None:
                os.replace(path, name)
    store.commit(records)


def as_the_store_does(store: Store, records: list[Record], weights: dict[str, dict[str, np.ndarray]]) -> None:
    """One pack per commit, from format 4 on."""
    store.commit(records, weights)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for stored in STORED_CELLS:
            store = Store.open_for_writing(Path(folder) / str(stored))
            seed = 0
            if stored:
                store.commit([_record(1_000_000 + number) for number in range(stored)])
            for members in MEMBERS:
                print(f"  {members} cells per commit, {stored:,} stored", file=sys.stderr, flush=True)
                seconds: dict[str, list[float]] = {"files": [], "store": []}
                for _ in range(TURNS):
                    for name, write in (("files", one_file_per_cell), ("store", as_the_store_does)):
                        records = [_record(seed + number) for number in range(members)]
                        seed += members
                        weights = {record.cell.key: _weights(number) for number, record in enumerate(records)}
                        began = time.perf_counter()
                        write(store, records, weights)
                        seconds[name].append(time.perf_counter() - began)
                medians = {name: round(statistics.median(times), 5) for name, times in seconds.items()}
                least = {f"{name}_least": round(min(times), 5) for name, times in seconds.items()}
                rows.append({"cells": members, "stored": stored} | medians | least)
            store.close()
    print(json.dumps({"commits": rows, "weights_bytes_per_cell": 4 * PARAMETERS, "format": SCHEMA_VERSION}))


def _record(seed: int) -> Record:
    cell = Cell(
        task={"task": "sum-of-maxima", "intrinsic_dim": 4},
        length=16,
        model={"heads": 4, "head_dim": 8, "hidden": 32},
        train=TrainSpec(steps=8000),
        seed=seed,
    )
    curve = tuple((400 * point, 0.1 / (point + 1)) for point in range(21))
    return Record(cell=cell, outcome=Outcome.FINISHED, metrics={"nmse": 0.01}, curve=curve, provenance=PROVENANCE)


def _weights(seed: int) -> dict[str, np.ndarray]:
    """As many numbers as a model has, in ten arrays."""
    numbers = named_generator(seed, "weights").standard_normal(PARAMETERS).astype(np.float32)
    return {f"array{place}": part.copy() for place, part in enumerate(np.array_split(numbers, 10))}


if __name__ == "__main__":
    main()
