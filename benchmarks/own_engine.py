"""headcount's own training, timed: the compiled program that `run_sweep` runs, on the data that `run_sweep` gives it.

Run as a script, it trains 32 members at T = 128 in one program and prints the peak memory of its process in bytes. It
never imports PyTorch, whose libraries would count.
"""

import resource
import sys
import time

import jax
import numpy as np

from headcount import ClassTokenSpec, TrainSpec, find_task, sweep
from headcount.engine import hardware
from headcount.engine.buckets import buckets
from headcount.engine.data import prepare
from headcount.engine.plan import sizes_of
from headcount.engine.train import program
from headcount.models import AbstractSpec
from headcount.tasks import AbstractTask

HEADS = 4
HIDDEN = 32
BATCH = 256
MEMORY_LENGTH = 128
MEMORY_MEMBERS = 32


class WarmProgram:
    """`members` models of one spec in one compiled program, warmed up."""

    def __init__(self, task: AbstractTask, spec: AbstractSpec, train: TrainSpec, members: int = 1, data=None):
        cells = sweep(
            task, axes={"heads": [spec.heads], "seed": range(members)}, model=lambda _: spec, train=train
        ).cells
        (bucket,) = buckets(cells, lambda _: members, lambda count, _: count)
        self.data = prepare(task, bucket.shape.model, train).data if data is None else data
        self.batch, self.members_count = train.batch, members
        self.program = program(bucket.shape.program, sizes_of(task), task.objective, hardware().side_by_side)
        self.states, self.members = self.program.start(bucket.cells, self.data)
        self.advance(1)  # compiles; the number of steps is an argument of the program, not a part of it

    def advance(self, steps: int) -> tuple[float, np.ndarray]:
        """Train every member for `steps` steps and validate it, as between two checkpoints: seconds and errors."""
        began = time.perf_counter()
        # The program uses up the states it is given: only the ones it returns can be used again.
        self.states, measured = self.program.advance(self.states, self.members, self.data, steps)
        jax.block_until_ready(self.states)
        errors = np.asarray(measured.validation[self.program.objective.error])
        return time.perf_counter() - began, errors

    def seconds_per_model_step(self, steps: int) -> float:
        """The wall time of `advance(steps)`, its validation pass included, shared among members and steps."""
        seconds, errors = self.advance(steps)
        if np.isfinite(errors).mean() < 0.9:
            raise FloatingPointError("more than a tenth of the members diverged: this is not the time of training")
        return seconds / (steps * self.members_count)


class Engine(WarmProgram):
    """The model of the first paper's Table 2."""

    def __init__(self, *, length: int, members: int):
        task = find_task("sum-of-maxima", length=length, intrinsic_dim=HEADS, dim=4)
        super().__init__(task, ClassTokenSpec(heads=HEADS, hidden=HIDDEN), TrainSpec(batch=BATCH), members)


if __name__ == "__main__":
    engine = Engine(length=MEMORY_LENGTH, members=MEMORY_MEMBERS)
    for _ in range(3):
        engine.advance(20)
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in KiB
    print(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
