"""CPU seconds and bytes of a bucket of Table 2 on one core, per length: run by `measure_inputs.py`.

A bucket is trained for a few steps, twice: what the first time takes more is compiling and preparing data. Its time for
all steps follows from two numbers of steps, since it is linear in them.
"""

import json
import pickle
import sys
import threading
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from machine import clock, hold_to_one_core

hold_to_one_core()  # before JAX is imported

from headcount.engine import sweep  # noqa: E402
from headcount.engine.buckets import Bucket, buckets, shape_of  # noqa: E402
from headcount.engine.hardware import CPU_MEMBERS, hardware  # noqa: E402
from headcount.engine.trainer import BucketTrainer, Trained  # noqa: E402
from headcount.events import quiet  # noqa: E402
from headcount.models import ClassTokenSpec  # noqa: E402
from headcount.store import TrainSpec  # noqa: E402
from headcount.tasks.find import find_task  # noqa: E402

LENGTHS, HEADS, STEPS = (8, 16, 32, 64, 128), (1, 2, 3, 4), 8000
"""Table 2 at laptop scale: 8,000 steps."""
FEW_STEPS, MORE_STEPS = 100, 300
"""Enough that the difference is seen, few enough that the whole takes a minute or two."""


def main() -> None:
    task = find_task("sum-of-maxima", intrinsic_dim=4)
    cells = sweep(
        task,
        axes={"heads": HEADS, "length": LENGTHS, "seed": (0, 1)},
        model=lambda heads: ClassTokenSpec(heads=heads),
        train=TrainSpec(steps=STEPS),
    )
    machine = replace(hardware(backend=None), workers=1)
    trainer = BucketTrainer(cells.by_key, machine, threading.Event(), quiet, programs=1, weights_of=lambda key: {})
    measured = []
    for bucket in buckets(cells.cells, lambda shape: CPU_MEMBERS, lambda shape, members, most: CPU_MEMBERS):
        print(f"  length {bucket.shape.length}", file=sys.stderr, flush=True)
        first, _ = _timed(trainer, _shortened(bucket, FEW_STEPS))
        few, _ = _timed(trainer, _shortened(bucket, FEW_STEPS))
        more, trained = _timed(trainer, _shortened(bucket, MORE_STEPS))
        per_step = max(0.0, (more - few) / (MORE_STEPS - FEW_STEPS))
        measured.append(
            {
                "length": bucket.shape.length,
                "cells": len(bucket.cells),
                "seconds": round(few + per_step * (STEPS - FEW_STEPS), 2),
                "compile_seconds": round(max(0.0, first - few), 2),
                "errand_bytes": len(pickle.dumps(bucket, protocol=5)),
                "answer_bytes": len(pickle.dumps(trained, protocol=5)),
                "weights_bytes": sum(array.nbytes for each in trained.weights.values() for array in each.values()),
            }
        )
    command = f"Table 2 at laptop scale: {STEPS} steps, heads {HEADS}, head_dim 8, {CPU_MEMBERS} models per bucket"
    described = {"device": machine.description, "backend": machine.backend, "command": command}
    print(json.dumps(described | {"buckets": measured, "task_bytes": len(pickle.dumps(task, protocol=5))}))


def _shortened(bucket: Bucket, steps: int) -> Bucket:
    cells = tuple(replace(cell, train=replace(cell.train, steps=steps)) for cell in bucket.cells)
    return Bucket(shape_of(cells[0]), cells, bucket.slots)


def _timed(trainer: BucketTrainer, bucket: Bucket) -> tuple[float, Trained]:
    began = clock()
    trained = trainer.train(bucket)
    if not trained.weights:
        sys.exit(f"no model of the bucket was trained: {trained.records[0].message}")
    return clock() - began, trained


if __name__ == "__main__":
    main()
