"""How much faster headcount trains than the plain PyTorch program: ratios, both sides measured in this one run.

python benchmarks/training_speed.py [--device cpu|cuda] [--json FILE]

The two programs take turns, so that what else the machine does hits both; every figure is a median over the turns.
On a CPU both have one and the same core. Tables go to stdout, what is being measured to stderr.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import device_jax_sees, environment, hold_to_one_core, share_the_card
from rich.console import Console
from tables import described, flatness_table, memory_line, speed_table
from turns import TURNS, take_turns

MEMORY_TARGET, MEMORY_RUNS = 700e6, 5
FLATNESS_LENGTH, FLATNESS_MEMBERS, FLATNESS_STEPS = 32, (1, 4, 16, 32), 100

talk = Console(stderr=True, highlight=False, soft_wrap=True)
paper = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row: T, the members headcount trains in one program, and the steps each side takes in a turn."""

    length: int
    members: int
    steps: int
    torch_steps: int
    target: float | None


CASES = {
    "cpu": (
        Case(length=8, members=8, steps=100, torch_steps=100, target=10),
        Case(length=32, members=8, steps=100, torch_steps=40, target=15),
        Case(length=128, members=8, steps=40, torch_steps=10, target=40),
    ),
    "cuda": (
        Case(length=8, members=1024, steps=100, torch_steps=200, target=800),
        Case(length=32, members=512, steps=100, torch_steps=200, target=None),
        Case(length=128, members=256, steps=100, torch_steps=200, target=100),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where JAX sees a GPU, else cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    arguments = parser.parse_args()
    device = arguments.device or device_jax_sees()
    results: dict = {}
    if device == "cpu":
        # Before the big imports: Linux starts a child's peak memory at its parent's, and this process is still small.
        results["peak_memory_bytes"] = peak_memory()
        hold_to_one_core()
    else:
        share_the_card()
    results |= environment(device)
    talk.print(described(results))
    results["speed"] = [measure(case, device) for case in CASES[device]]
    paper.print(speed_table(results))
    if device == "cpu":
        results["members"] = measure_flatness()
        paper.print(flatness_table(results["members"], FLATNESS_LENGTH))
        paper.print(memory_line(results["peak_memory_bytes"], MEMORY_TARGET))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def peak_memory() -> list[int]:
    """The most bytes that each of several processes held while it trained 32 members at T = 128, threads as they come.

    They differ by a tenth or so, mostly in what compiling leaves behind; a promise about memory is about the largest.
    """
    talk.print(f"Peak memory: 32 members at T = 128, in {MEMORY_RUNS} fresh processes that do not import PyTorch")
    command = [sys.executable, Path(__file__).parent / "own_engine.py"]
    on_cpu = os.environ | {"JAX_PLATFORMS": "cpu"}
    return [
        int(subprocess.run(command, env=on_cpu, check=True, stdout=subprocess.PIPE, text=True).stdout)
        for _ in range(MEMORY_RUNS)
    ]


def measure(case: Case, device: str) -> dict:
    """Both programs on one case."""
    import numpy as np
    import own_engine
    import plain_torch

    talk.print(
        f"T = {case.length}: headcount, {case.members} members x {case.steps} steps and a validation pass; "
        f"PyTorch, one model x {case.torch_steps} steps; {TURNS} turns each"
    )
    engine = own_engine.Engine(length=case.length, members=case.members)
    engine.advance(case.steps)
    plain = plain_torch.Settings(heads=own_engine.HEADS, hidden=own_engine.HIDDEN, batch=own_engine.BATCH)
    tokens, targets = np.array(engine.data.train.tokens), np.array(engine.data.train.targets)
    turns = take_turns(
        {
            "headcount_ms": lambda: engine.seconds_per_model_step(case.steps),
            "torch_ms": lambda: plain_torch.seconds_per_step(plain, tokens, targets, case.torch_steps, device),
        },
        watch_core=device == "cpu",
    )
    medians = {name: statistics.median(values) for name, values in turns.items()}
    ratio = medians["torch_ms"] / medians["headcount_ms"]
    met = None if case.target is None else ratio >= case.target
    return asdict(case) | medians | {"ratio": ratio, "met": met, "turns": turns}


def measure_flatness() -> list[dict]:
    """headcount alone: the same step for more and more members at once."""
    import own_engine

    counts = ", ".join(map(str, FLATNESS_MEMBERS))
    talk.print(f"T = {FLATNESS_LENGTH}: headcount, {counts} members x {FLATNESS_STEPS} steps and a validation pass")
    engines = {count: own_engine.Engine(length=FLATNESS_LENGTH, members=count) for count in FLATNESS_MEMBERS}
    turns = take_turns(
        {
            count: lambda engine=engine: engine.seconds_per_model_step(FLATNESS_STEPS)
            for count, engine in engines.items()
        },
        watch_core=True,
    )
    return [{"members": count, "headcount_ms": statistics.median(ms), "turns": ms} for count, ms in turns.items()]


if __name__ == "__main__":
    main()
