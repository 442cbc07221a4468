"""How fast vision transformers train: headcount's program against plain PyTorch, members and head counts at once.

python benchmarks/vit_speed.py [--device cpu|cuda] [--quick] [--compile MODE ...] [--json FILE]

Images a second, on random images of 32 x 32 pixels in frames of 32 and 48 (65 and 145 tokens with the class token), 10
heads, batch 256, each step's batch drawn, placed, standardised and cut into patches on the device. bfloat16 products on
a GPU, float32 on a CPU.

PyTorch         `plain_vit.py`, eager and through `torch.compile`, in its default mode and in "reduce-overhead", which
                uses CUDA graphs; --compile names other modes, or none. Without PyTorch the rest is measured alone
one member      headcount's own program, one model; next to PyTorch's
four members    four models in one program; next to the time of one after another
head counts     1, 2, 4 and 8 heads, a program each: advanced one after another, and from four threads at once

Compiling is not counted. The programs take turns; figures are medians of three. On a CPU all have the threads that they
take by themselves, and headcount's members go one after another in any case. --quick sees that it runs, and no more.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from machine import device_jax_sees, share_the_card
from rich.console import Console
from rich.table import Table
from tables import described, three_digits

IMAGE, CLASSES, EXAMPLES, VALIDATION = 32, 10, 10_000, 20
SIDES, HEADS, MEMBERS, HEAD_COUNTS = (32, 48), 10, 4, (1, 2, 4, 8)
REPEATS = 3

talk = Console(stderr=True, highlight=False, soft_wrap=True)


class Effort(NamedTuple):
    """How much is trained between two looks at the clock."""

    batch: int
    steps: int


EFFORTS = {"cuda": Effort(256, 200), "cpu": Effort(256, 3)}
QUICK = {"cuda": Effort(256, 10), "cpu": Effort(8, 2)}
COMPILED = {"cuda": ("default", "reduce-overhead"), "cpu": ()}
"""Modes of torch.compile that are timed; on a CPU compiling takes minutes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where JAX sees a GPU, else cpu")
    parser.add_argument("--quick", action="store_true", help="a few steps, and small batches on a CPU")
    parser.add_argument("--compile", nargs="*", metavar="MODE", help="modes of torch.compile; default on a GPU: both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    arguments = parser.parse_args()
    share_the_card()  # before JAX is imported
    device = arguments.device or device_jax_sees()
    if device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    effort = (QUICK if arguments.quick else EFFORTS)[device]
    modes = COMPILED[device] if arguments.compile is None else tuple(arguments.compile)
    results = environment() | {"heads": HEADS, "members": MEMBERS, **effort._asdict()}
    talk.print(described(results))
    results["sides"] = [measure(side, device, effort, modes) for side in SIDES]
    out = Console(highlight=False, soft_wrap=True)
    out.print(speed_table(results))
    out.print(head_counts_table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def environment() -> dict:
    """The device as headcount names it, and the versions."""
    import jax

    from headcount.engine import hardware

    try:
        from torch import __version__ as torch
    except ImportError:
        torch = "not installed"
    versions = {"python": platform.python_version(), "jax": jax.__version__, "torch": str(torch)}
    return {"device": hardware().description, "versions": versions}


def measure(side: int, device: str, effort: Effort, modes: tuple[str, ...]) -> dict:
    """All programs at one side of the frame, in images per second."""
    from headcount.engine import hardware
    from headcount.engine.data import prepare

    batch, steps = effort
    began = time.perf_counter()
    task, train = random_images(side), training(device, batch)
    data = prepare(task, encoder(task, HEADS), train).data
    wanted = ((HEADS, 1), (HEADS, MEMBERS), *((heads, 1) for heads in HEAD_COUNTS))
    with ThreadPoolExecutor(hardware().workers) as pool:  # compiling takes longer than all that is timed
        one, four, *each = pool.map(lambda sizes: own_program(task, data, train, *sizes), wanted)
    plain, faults = plain_trainers(device, side, batch, modes)
    talk.print(f"side {side}: compiled and warm after {time.perf_counter() - began:.0f} s")
    turns = take_turns(
        {
            **{name: (lambda trainer=trainer: trainer.images_per_second(steps)) for name, trainer in plain.items()},
            "one_member": lambda: images_per_second(one, steps),
            "four_members": lambda: images_per_second(four, steps),
            "head_counts_in_turn": lambda: in_turn(each, steps),
            "head_counts_at_once": lambda: at_once(each, steps),
        }
    )
    medians = {name: statistics.median(rates) for name, rates in turns.items()}
    talk.print(", ".join(f"{name} {three_digits(rate)}" for name, rate in medians.items()))
    ratios = {f"one_member_over_{name}": medians["one_member"] / medians[name] for name in plain} | {
        "four_members_over_one": medians["four_members"] / medians["one_member"],
        "head_counts_at_once_over_in_turn": medians["head_counts_at_once"] / medians["head_counts_in_turn"],
    }
    return {"side": side, "tokens": task.length + 1, **medians, "ratios": ratios, "faults": faults, "turns": turns}


def take_turns(programs: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """The images per second of every program in each of `REPEATS` turns."""
    rounds = [{name: run() for name, run in programs.items()} for _ in range(REPEATS)]
    return {name: [timed[name] for timed in rounds] for name in programs}


def plain_trainers(device: str, side: int, batch: int, modes: tuple[str, ...]) -> tuple[dict, dict[str, str]]:
    """PyTorch's trainers by name, and why one is missing."""
    try:
        import plain_vit
    except ImportError as error:
        return {}, {"torch": f"PyTorch is missing: {error}"}
    sizes = {"device": device, "heads": HEADS, "side": side, "batch": batch}
    trainers, faults = {"torch": plain_vit.Trainer(**sizes)}, {}
    for mode in modes:
        try:
            trainers[f"torch {mode}"] = plain_vit.Trainer(**sizes, mode=mode)
        except Exception as error:  # a compiler, or its own compiler, may be missing or fail in many ways
            first = str(error).strip().splitlines()[:1]
            faults[f"torch {mode}"] = f"torch.compile failed: {type(error).__name__}: {''.join(first)}"
    return trainers, faults


def random_images(side: int):
    """The task of `EXAMPLES` images without content, and as many more to validate on as a task must have."""
    import numpy as np

    from headcount._draws import named_generator
    from headcount.data.images import ImageSet
    from headcount.tasks import ImageTask

    generator, count = named_generator(0, "random images"), EXAMPLES + VALIDATION
    source = ImageSet(
        name="random images",
        images=generator.integers(0, 256, (count, IMAGE, IMAGE, 3), dtype=np.uint8),
        labels=(generator.permutation(count) % CLASSES).astype(np.int32),
        classes=tuple(f"class {number}" for number in range(CLASSES)),
        held_out=VALIDATION,
    )
    return ImageTask(source, side=side)


def encoder(task, heads: int):
    """The published vision transformer: the recipe for images, with four layers."""
    from headcount.recipes import labelled_encoder

    return labelled_encoder(task, heads, layers=4)


def training(device: str, batch: int):
    from headcount.store import TrainSpec

    return TrainSpec(
        batch=batch,
        learning_rate=1e-3,
        weight_decay=0.05,
        second_moment_decay=0.999,
        train_examples=EXAMPLES,
        validation_examples=VALIDATION,
        precision="bfloat16" if device == "cuda" else "float32",
    )


def own_program(task, data, train, heads: int, members: int):
    """headcount's own program for `members` models of `heads` heads, warmed up."""
    from own_engine import WarmProgram

    return WarmProgram(task, encoder(task, heads), train, members, data)


def images_per_second(program, steps: int) -> float:
    """Images that all members together saw in a second."""
    return 1 / program.seconds_per_model_step(steps) * program.batch


def in_turn(engines: list, steps: int) -> float:
    """The images per second of all engines, advanced one after another."""
    return _rate(engines, steps, sum(engine.advance(steps)[0] for engine in engines))


def at_once(engines: list, steps: int) -> float:
    """The images per second of all engines, each advanced from a thread of its own."""
    with ThreadPoolExecutor(len(engines)) as pool:
        began = time.perf_counter()
        list(pool.map(lambda engine: engine.advance(steps), engines))
        return _rate(engines, steps, time.perf_counter() - began)


def _rate(engines: list, steps: int, seconds: float) -> float:
    return steps * sum(engine.batch * engine.members_count for engine in engines) / seconds


def speed_table(results: dict) -> Table:
    """A row for every program and side; each next to the one it is compared with."""
    title = f"images/s, {results['heads']} heads, batch {results['batch']}, {results['steps']} steps a turn"
    table = Table(title=f"{described(results)}\n{title}")
    for heading in ("T", "program", "images/s", "against"):
        table.add_column(heading, justify="right" if heading in ("T", "images/s") else "left")
    for row in results["sides"]:
        ratios, tokens = row["ratios"], str(row["tokens"])
        named = {
            name: "PyTorch, eager" if name == "torch" else f"PyTorch, compiled, mode {name.split()[1]}"
            for name in (*row["faults"], *row)
            if name.split()[0] == "torch"
        }
        for name, label in named.items():
            table.add_row(tokens, label, three_digits(row[name]) if name in row else "-", row["faults"].get(name, ""))
        compared = [
            f"{ratios[f'one_member_over_{name}']:.2f} x {label}" for name, label in named.items() if name in row
        ]
        table.add_row(tokens, "headcount, 1 member", three_digits(row["one_member"]), "; ".join(compared))
        factor = f"{ratios['four_members_over_one']:.2f} x one after another"
        table.add_row(tokens, f"headcount, {results['members']} members", three_digits(row["four_members"]), factor)
    return table


def head_counts_table(results: dict) -> Table:
    """Programs of several head counts, advanced in turn and at once."""
    counts = ", ".join(map(str, HEAD_COUNTS))
    table = Table(title=f"images/s of {counts} heads, a program each")
    for heading in ("T", "one after another", "at once, from threads", "factor"):
        table.add_column(heading, justify="right")
    for row in results["sides"]:
        rates = (three_digits(row[f"head_counts_{name}"]) for name in ("in_turn", "at_once"))
        table.add_row(str(row["tokens"]), *rates, f"{row['ratios']['head_counts_at_once_over_in_turn']:.2f}")
    return table


if __name__ == "__main__":
    main()
