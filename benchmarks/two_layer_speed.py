"""How fast Table 5's two-layer models train: headcount's program against plain, and against batched, compiled PyTorch.

python benchmarks/two_layer_speed.py [--device cpu|cuda] [--lengths 8 32 128] [--no-compile] [--json FILE]

4 heads that share 32 numbers, nets of 32 units, two attention layers, batch 64, 8,000 stored examples of
`sum-of-maxima`; 10 members, as many as a cell of the table has seeds (2 on a CPU, one after another). Milliseconds per
model and step.

floor           every product of the forward and backward pass at 67 TFLOP/s, an H200's rate without tensor cores
headcount       `advance`, validation, clipping and the schedule included
plain           `plain_layers.PlainLayers`, one model, eager
batched         `plain_layers.BatchedLayers`, all members, through `torch.compile` (CUDA graphs on a GPU)

The programs take turns; figures are medians. Compiling is not counted.
"""

import argparse
import json
import statistics
from pathlib import Path

from machine import device_jax_sees, environment, hold_to_one_core, require_torch, share_the_card
from rich.console import Console
from rich.table import Table
from tables import described, three_digits
from turns import take_turns

HEADS, TOTAL_DIM, HIDDEN, BATCH, DIM = 4, 32, 32, 64, 4
LENGTHS = (8, 32, 128)
MEMBERS = {"cpu": 2, "cuda": 10}
STEPS = {"cpu": 20, "cuda": 200}
TORCH_STEPS = {"cpu": 5, "cuda": 100}
MODES = {"cpu": "default", "cuda": "reduce-overhead"}
FLOPS_PER_SECOND = 67e12
PASSES = 3
"""A backward pass has two products for every one of the forward pass."""

talk = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where JAX sees a GPU, else cpu")
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS), metavar="T", help="default: 8 32 128")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help="time compiled PyTorch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    arguments = parser.parse_args()
    require_torch()
    device = arguments.device or device_jax_sees()
    hold_to_one_core() if device == "cpu" else share_the_card()
    results = environment(device)
    talk.print(described(results))
    results["lengths"] = [measure(length, device, arguments.compile) for length in arguments.lengths]
    Console(highlight=False, soft_wrap=True).print(speed_table(results, device))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def measure(length: int, device: str, compiles: bool) -> dict:
    """All programs at one length, in milliseconds per model and step."""
    import numpy as np
    import plain_layers
    from own_engine import WarmProgram

    from headcount import ClassTokenSpec, TrainSpec, find_task

    members = MEMBERS[device]
    spec = ClassTokenSpec.with_total_dim(TOTAL_DIM, heads=HEADS, hidden=HIDDEN, layers=2)
    task = find_task("sum-of-maxima", length=length, intrinsic_dim=HEADS, dim=DIM)
    engine = WarmProgram(task, spec, TrainSpec(batch=BATCH), members)
    talk.print(f"T = {length}: {members} members")
    examples = np.array(engine.stored_examples.tokens), np.array(engine.stored_examples.targets)
    sizes = {"dim": DIM, "heads": HEADS, "head_dim": spec.head_dim, "hidden": HIDDEN}
    shared = {"sizes": sizes, "batch": BATCH, "device": device}
    plain = plain_layers.Trainer(*examples, members=0, **shared)
    programs = {
        "headcount_ms": lambda: engine.seconds_per_model_step(STEPS[device]),
        "plain_ms": lambda: plain.seconds_per_step(TORCH_STEPS[device]),
    }
    fault = "" if compiles else "not asked for"
    if compiles:
        try:
            batched = plain_layers.Trainer(*examples, members=members, mode=MODES[device], **shared)
            programs["batched_ms"] = lambda: batched.seconds_per_step(TORCH_STEPS[device]) / members
        except Exception as error:  # a compiler, or its own compiler, may be missing or fail in many ways
            fault = f"torch.compile failed: {type(error).__name__}: {str(error).strip().splitlines()[:1]}"
            talk.print(fault)
    turns = take_turns(programs, watch_core=device == "cpu")
    medians = {name: statistics.median(values) for name, values in turns.items()}
    flops = PASSES * BATCH * spec.flops(length=length, dim=DIM, outputs=1)
    floor = 1e3 * flops / FLOPS_PER_SECOND if device == "cuda" else None
    return {"length": length, "members": members, "floor_ms": floor, **medians, "fault": fault, "turns": turns}


def speed_table(results: dict, device: str) -> Table:
    """A row for every length: all programs, and how many times as long as headcount's the others took."""
    title = f"ms per model and step, 2 layers, h = {HEADS}, E = {TOTAL_DIM}, batch {BATCH}, {MEMBERS[device]} members"
    table = Table(title=f"{described(results)}\n{title}")
    for heading in ("T", "floor", "headcount", "plain PyTorch", "ratio", "batched, compiled PyTorch", "ratio"):
        table.add_column(heading, justify="right")
    for row in results["lengths"]:
        own = row["headcount_ms"]
        cells = [
            str(row["length"]),
            "-" if row["floor_ms"] is None else three_digits(row["floor_ms"]),
            three_digits(own),
        ]
        for name in ("plain_ms", "batched_ms"):
            timed = row.get(name)
            cells += ["-", "-"] if timed is None else [three_digits(timed), f"{timed / own:.1f}"]
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
