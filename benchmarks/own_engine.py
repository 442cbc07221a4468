"""headcount's own training, timed: the compiled program that `run_sweep` runs, on the data that `run_sweep` gives it.

Run as a script, it trains 32 members at T = 128 in one program and prints the peak memory of its process in bytes. It
never imports PyTorch, whose libraries would count.
"""

import resource
import sys
import time

import jax
import numpy as np

from headcount import ClassTokenSpec, TrainSpec, grid, sum_of_maxima
from headcount.engine import hardware
from headcount.engine.data import examples
from headcount.engine.sweep import buckets
from headcount.engine.train import program

HEADS = 4
HIDDEN = 32
BATCH = 256
MEMORY_LENGTH = 128
MEMORY_MEMBERS = 32


class Engine:
    """`members` models of one shape in one compiled program, warmed up."""

    def __init__(self, *, length: int, members: int):
        task = sum_of_maxima(length=length, intrinsic_dim=HEADS, dim=4)
        train = TrainSpec(batch=BATCH)
        sweep = grid(
            task,
            heads=[HEADS],
            seeds=range(members),
            train=train,
            model=lambda h: ClassTokenSpec(heads=h, hidden=HIDDEN),
        )
        (bucket,) = buckets(sweep.cells)
        self.data, _ = examples(task, bucket.shape.model, train)
        outputs = self.data.validation.targets.shape[-1]
        self.members_count = members
        self.program = program(bucket.shape, task.dim, outputs, hardware().side_by_side)
        self.states, self.members = self.program.start(bucket.cells, self.data)
        self.advance(1)  # compiles; the number of steps is an argument of the program, not a part of it

    def advance(self, steps: int) -> np.ndarray:
        """Train every member for `steps` steps and validate it, as between two checkpoints of a run."""
        # The program takes the states it is given for its own use: only the ones it returns can be used again.
        self.states, measured = self.program.advance(self.states, self.members, self.data, steps)
        jax.block_until_ready(self.states)
        return np.asarray(measured.validation["nmse"])

    def seconds_per_model_step(self, steps: int) -> float:
        """The wall time of `advance(steps)`, its validation pass included, shared among members and steps."""
        began = time.perf_counter()
        errors = self.advance(steps)
        seconds = time.perf_counter() - began
        if np.isfinite(errors).mean() < 0.9:
            raise FloatingPointError("more than a tenth of the members diverged: this is not the time of training")
        return seconds / (steps * self.members_count)


if __name__ == "__main__":
    engine = Engine(length=MEMORY_LENGTH, members=MEMORY_MEMBERS)
    for _ in range(3):
        engine.advance(20)
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in KiB
    print(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
