"""How fast headcount trains: both of its back ends, plain PyTorch, an expert's PyTorch and the floor, in this one run.

python benchmarks/training_speed.py [--device cpu|cuda] [--json FILE] [--no-expert]

`fused` (our kernels, after) and `reference` (JAX alone, before) train the same members on the same batches. The
programs take turns, so that what else the machine does hits all of them; every figure is a median over the turns. On a
CPU all have one and the same core. Tables go to stdout in Markdown, what is being measured to stderr.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine import device_jax_sees, environment, hold_to_one_core, require_torch, share_the_card
from rich.console import Console
from tables import described, flatness_table, memory_line, sizes_table, slower_line, speed_table
from turns import PATIENCE, TURNS, take_turns

MEMORY_TARGET, MEMORY_RUNS = 700e6, 5
BACKENDS = ("fused", "reference")

talk = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
paper = Console(highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row: T, the members headcount trains in one program, and the steps each side takes in a turn.

    `ratio` is the target of plain PyTorch's time over headcount's, `us` that of headcount's microseconds per model and
    step.
    """

    length: int
    members: int
    steps: int
    torch_steps: int
    expert_steps: int
    ratio: float | None = None
    us: float | None = None


CASES = {
    "cpu": (
        Case(length=8, members=8, steps=150, torch_steps=100, expert_steps=60, ratio=40),
        Case(length=32, members=8, steps=100, torch_steps=40, expert_steps=30, ratio=75),
        Case(length=128, members=8, steps=60, torch_steps=10, expert_steps=10, ratio=200),
    ),
    "cuda": (
        Case(length=8, members=1024, steps=150, torch_steps=200, expert_steps=150, us=1.2),
        Case(length=32, members=512, steps=150, torch_steps=200, expert_steps=100, us=3),
        Case(length=128, members=256, steps=150, torch_steps=200, expert_steps=100, us=8),
    ),
}
SIZES = {
    "cpu": ((8, 1), (32, 1), (128, 1), (512, 1), (32, 32), (2, 8)),
    "cuda": ((8, 1), (32, 1), (128, 1), (8, 32), (32, 32), (128, 32), (512, 64), (8, 4096)),
}
"""T and members where only the two back ends are compared: small and large programs, besides the cases above."""
FLATNESS_LENGTH, FLATNESS_MEMBERS = 32, (1, 4, 16, 32)
STEPS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where JAX sees a GPU, else cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    parser.add_argument("--no-expert", action="store_true", help="leave out torch.compile, half a minute per row")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"turns of every program, default {TURNS}")
    parser.add_argument("--targets-only", action="store_true", help="only the rows that have a target")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds per row to wait for a quiet core")
    arguments = parser.parse_args()
    require_torch()
    device = arguments.device or device_jax_sees()
    results: dict = {}
    if device == "cpu":
        # Before the big imports: Linux starts a child's peak memory at its parent's, and this process is still small.
        results["peak_memory_bytes"] = [] if arguments.targets_only else peak_memory()
        hold_to_one_core()
    else:
        share_the_card()
    results |= environment(device)
    talk.print(described(results))
    from floor import peak_flops

    results |= {"peak_flops": peak_flops(device), "backend": backend_name(), "speed": [], "sizes": [], "members": []}
    bench = Bench(
        device, arguments.turns, arguments.patience, expert=not arguments.no_expert, peak=results["peak_flops"]
    )
    for case in CASES[device]:
        results["speed"].append(bench.case(case))
        write(results, arguments.json)
    paper.print(speed_table(results))
    if not arguments.targets_only:
        results["sizes"] = [bench.back_ends(length, members) for length, members in SIZES[device]]
        paper.print(sizes_table(results))
    paper.print(slower_line(results["speed"] + results["sizes"]))
    if device == "cpu" and not arguments.targets_only:
        results["members"] = bench.flatness()
        paper.print(flatness_table(results["members"], FLATNESS_LENGTH))
        paper.print(memory_line(results["peak_memory_bytes"], MEMORY_TARGET))
    write(results, arguments.json)


def write(results: dict, path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n")


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


def backend_name() -> str:
    """What a run would choose here, as its provenance would name it."""
    from headcount.backends import backend_name, choose_backend

    return backend_name(choose_backend())


@dataclass(frozen=True)
class Bench:
    """Programs of one device, measured in turns; the figures are milliseconds per model and step."""

    device: str
    turns: int
    patience: float
    expert: bool
    peak: float

    def case(self, case: Case) -> dict[str, Any]:
        """All programs on one case."""
        import programs

        shape = programs.Case(length=case.length, members=case.members)
        talk.print(
            f"{shape}: headcount, {case.steps} steps and a validation pass; PyTorch, one model x {case.torch_steps} "
            f"steps; {self.turns} turns each"
        )
        ours = {backend: programs.Headcount(shape, self.device, backend) for backend in available()}
        engine = ours["reference"].engine
        plain = programs.Plain(shape, self.device, engine)
        runs = {backend: lambda run=run: run.seconds(case.steps) for backend, run in ours.items()}
        runs |= {"plain": lambda: plain.seconds(case.torch_steps)}
        row: dict[str, Any] = {"length": case.length, "members": case.members, "steps": case.steps}
        if "fused" in ours:
            row["back_end_difference"] = programs.back_end_difference(ours["fused"].engine, engine)
        if self.expert:
            row["gradient_difference"] = programs.gradient_difference(engine, self.device)
            expert = programs.fastest_expert(shape, self.device, engine)
            row["expert_form"] = expert.form
            runs |= {"expert": lambda: expert.seconds(case.expert_steps)}
        row |= self._medians(runs) | {"floor": 1e3 * engine.flops / self.peak}
        row |= {"ratio": row["plain"] / row[ours_of(row)], "us": 1e3 * row[ours_of(row)]}
        row |= {"ratio_target": case.ratio, "us_target": case.us, "met": None}
        if case.ratio is not None:
            row["met"] = row["ratio"] >= case.ratio
        if case.us is not None:
            row["met"] = row["us"] <= case.us
        programs.free_memory(self.device)
        return row

    def back_ends(self, length: int, members: int) -> dict[str, Any]:
        """The back ends alone on one size."""
        import programs

        shape = programs.Case(length=length, members=members)
        talk.print(f"{shape}: headcount's back ends, {STEPS} steps and a validation pass")
        ours = {backend: programs.Headcount(shape, self.device, backend) for backend in available()}
        medians = self._medians({name: lambda run=run: run.seconds(STEPS) for name, run in ours.items()})
        return {"length": length, "members": members} | medians

    def flatness(self) -> list[dict[str, Any]]:
        """headcount alone: the same step for more and more members at once."""
        import programs

        counts = ", ".join(map(str, FLATNESS_MEMBERS))
        talk.print(f"T = {FLATNESS_LENGTH}: headcount, {counts} members x {STEPS} steps and a validation pass")
        backend = available()[0]
        shapes = {count: programs.Case(length=FLATNESS_LENGTH, members=count) for count in FLATNESS_MEMBERS}
        ours = {str(count): programs.Headcount(shape, self.device, backend) for count, shape in shapes.items()}
        medians = self._medians({count: lambda run=run: run.seconds(STEPS) for count, run in ours.items()})
        return [{"members": count, "headcount_ms": medians[str(count)]} for count in FLATNESS_MEMBERS]

    def _medians(self, runs: dict[str, Any]) -> dict[str, Any]:
        for run in runs.values():
            run()
        turns = take_turns(runs, watch_core=self.device == "cpu", count=self.turns, patience=self.patience)
        return {name: statistics.median(values) for name, values in turns.items()} | {"turns": turns}


def available() -> tuple[str, ...]:
    """The back ends that this machine has, `fused` first."""
    from headcount.backends import choose_backend

    if choose_backend() == "reference":
        return ("reference",)
    return BACKENDS


def ours_of(row: dict[str, Any]) -> str:
    """The back end that a run chooses, by what was measured."""
    return "fused" if "fused" in row else "reference"


if __name__ == "__main__":
    main()
