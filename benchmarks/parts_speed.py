"""How much faster a CPU trains encoders on batches in parts that stay in its caches than on whole batches.

python benchmarks/parts_speed.py [--quick] [--json FILE]

headcount's own program for one model, held to one core: with the parts that it chooses, and with whole batches. The
models are those of the studies: Figure 1 of the second paper (d = 64, 16 points, nets of 2,048 units), CIFAR-10 in
patches of 4 pixels (T = 145) and of 8 (T = 37), MS MARCO (12 heads, 64 candidates), here all with unit norms and an
answer per token, on random tokens. A turn is four steps and the validation of 20 sequences; compiling is not counted.
The programs take turns; figures are medians. --quick sees that it runs, and no more.
"""

import argparse
import json
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

from machine import hold_to_one_core
from rich.console import Console
from rich.table import Table
from tables import described, three_digits
from turns import take_turns

MODELS = {
    "Figure 1, one layer": {"heads": 1, "rank": 64, "width": 64, "hidden": 2048},
    "Figure 1, three layers": {"heads": 1, "rank": 64, "width": 64, "hidden": 2048, "layers": 3},
    "CIFAR-10, T = 37, 8 heads": {"heads": 8, "rank": 16, "width": 128, "hidden": 512, "layers": 4},
    "CIFAR-10, T = 145, 4 heads": {"heads": 4, "rank": 16, "width": 64, "hidden": 256, "layers": 4},
    "CIFAR-10, T = 145, 8 heads": {"heads": 8, "rank": 16, "width": 128, "hidden": 512, "layers": 4},
    "MS MARCO, T = 64, 12 heads": {"heads": 12, "rank": 32, "width": 384, "hidden": 1536, "layers": 2},
}
BATCHES = {"Figure 1": (16, 256), "T = 37": (37, 256), "T = 145": (145, 256), "T = 64": (65, 128)}
"""Tokens of a sequence and sequences of a batch, by a part of the model's name."""
TURNS, QUICK_BATCH = 3, 32

talk = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first model, with a small batch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    arguments = parser.parse_args()
    hold_to_one_core()
    results = environment()
    talk.print(described(results))
    names = list(MODELS)[:1] if arguments.quick else MODELS
    results["models"] = [measure(name, quick=arguments.quick) for name in names]
    table = Table(title=f"{described(results)}\nms per step on one core")
    for heading in ("model", "batch", "in parts of", "whole", "in parts", "ratio", "GFLOP/s in parts"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for row in results["models"]:
        times = (three_digits(row[name]) for name in ("whole_ms", "parts_ms"))
        speed = f"{row['flops'] / row['parts_ms'] / 1e6:.0f}"
        table.add_row(row["model"], str(row["batch"]), str(row["at_once"]), *times, f"{row['ratio']:.2f}", speed)
    Console(highlight=False, soft_wrap=True).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def environment() -> dict:
    """The device as headcount names it, and the versions."""
    import jax

    from headcount.engine import hardware

    return {"device": hardware().description, "versions": {"python": platform.python_version(), "jax": jax.__version__}}


def measure(name: str, *, quick: bool) -> dict:
    """One model both ways, in milliseconds per training step."""
    from own_engine import WarmProgram

    from headcount import EncoderSpec, TrainSpec, find_task
    from headcount.engine.hardware import examples_at_once
    from headcount.engine.plan import task_shape

    length, batch = next(sizes for part, sizes in BATCHES.items() if part in name)
    batch = QUICK_BATCH if quick else batch
    spec = EncoderSpec(**MODELS[name], norm_first=True)  # type: ignore[arg-type]
    task = find_task("farthest-point", length=length, dim=spec.width)
    train = TrainSpec(batch=batch, train_examples=0, validation_examples=20)
    hardware: Any = sys.modules[examples_at_once.__module__]
    chosen = hardware.WHOLE_BYTES
    programs = {}
    for way, most in (("whole_ms", sys.maxsize), ("parts_ms", chosen)):
        hardware.WHOLE_BYTES = most
        programs[way] = WarmProgram(task, spec, train)
    hardware.WHOLE_BYTES = chosen
    turns = take_turns(
        {way: (lambda engine=engine: engine.seconds_per_model_step(4)) for way, engine in programs.items()},
        watch_core=not quick,
        count=1 if quick else TURNS,
    )
    medians = {way: statistics.median(values) for way, values in turns.items()}
    shape = task_shape(task)
    at_once = examples_at_once(programs["parts_ms"].program.shape, shape, side_by_side=False)
    flops = 3 * batch * spec.flops(**shape.model_sizes)
    ratio = medians["whole_ms"] / medians["parts_ms"]
    return {"model": name, "batch": batch, "at_once": at_once, **medians, "ratio": ratio, "flops": flops}


if __name__ == "__main__":
    main()
