"""How much faster the wide attention block trains than a loop over copies of `nn.MultiheadAttention`.

python benchmarks/rank_speed.py [--device cpu|cuda] [--json FILE]

d = 64 numbers a token, 16 tokens, batch 256, rank r = 1, 2, 4, 8, 64 with d / r heads in a block, 64 blocks averaged (8
on a CPU). One step on either side: draw a batch of the farthest-point task, forward, backward, Adam. Full float32 on
both. The two programs take turns; figures are medians over the turns.

The floor is what an H200 needs at least: the larger of the time of all products at 67 TFLOP/s and of reading and
writing queries, keys, values, what heads read, and their gradients, as often as products need them, at 4.8 TB/s.
"""

import argparse
import json
import statistics
from pathlib import Path

from machine import device_jax_sees, environment, hold_to_one_core, require_torch, share_the_card
from rich.console import Console
from rich.table import Table
from tables import described, three_digits, yes_or_no
from turns import take_turns

DIM, LENGTH, BATCH, TARGET = 64, 16, 256, 5.0
RANKS = (1, 2, 4, 8, 64)
MULTIPLIER = {"cpu": 8, "cuda": 64}
STEPS = {"cpu": 2, "cuda": 20}
FLOPS_PER_SECOND, BYTES_PER_SECOND = 67e12, 4.8e12
"""An H200's, of float32 without tensor cores."""

talk = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where JAX sees a GPU, else cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    arguments = parser.parse_args()
    require_torch()
    device = arguments.device or device_jax_sees()
    hold_to_one_core() if device == "cpu" else share_the_card()
    results = environment(device)
    talk.print(described(results))
    results["rank"] = [measure(rank, device) for rank in RANKS]
    title = f"{described(results)}\nms per step, d = {DIM}, {LENGTH} tokens, batch {BATCH}, {MULTIPLIER[device]} blocks"
    table = Table(title=title)
    for heading in ("rank", "heads in all", "floor ms", "headcount ms", "PyTorch ms", "ratio", "target", "met"):
        table.add_column(heading, justify="right")
    for row in results["rank"]:
        milliseconds = (
            three_digits(row[name]) if row[name] else "-" for name in ("floor_ms", "headcount_ms", "torch_ms")
        )
        target = (f"{TARGET:.0f}", yes_or_no(row["ratio"] >= TARGET)) if device == "cuda" else ("-", "-")
        table.add_row(str(row["rank"]), str(row["heads"]), *milliseconds, f"{row['ratio']:.1f}", *target)
    Console(highlight=False, soft_wrap=True).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def measure(rank: int, device: str) -> dict:
    """Both programs at one rank."""
    import plain_wide_attention

    multiplier, steps = MULTIPLIER[device], STEPS[device]
    talk.print(f"rank {rank}: {multiplier} blocks of {DIM // rank} heads")
    engine = own_program(rank, multiplier)
    sizes = {"dim": DIM, "heads": DIM // rank, "multiplier": multiplier, "length": LENGTH, "batch": BATCH}
    plain = plain_wide_attention.Trainer(**sizes, device=device)
    turns = take_turns(
        {
            "headcount_ms": lambda: engine.seconds_per_model_step(steps),
            "torch_ms": lambda: plain.seconds_per_step(steps),
        },
        watch_core=device == "cpu",
    )
    medians = {name: statistics.median(values) for name, values in turns.items()}
    ratio = medians["torch_ms"] / medians["headcount_ms"]
    floor = floor_ms(rank, multiplier) if device == "cuda" else None
    heads = multiplier * DIM // rank
    return {"rank": rank, "heads": heads, "floor_ms": floor, **medians, "ratio": ratio, "turns": turns}


def floor_ms(rank: int, multiplier: int) -> float:
    """The least milliseconds of a step on an H200."""
    heads, tokens = multiplier * DIM // rank, BATCH * LENGTH
    # W_Q, W_K, W_V, W_O forward and for their gradients, and W_O once more for the gradient of what heads read.
    projections = 9 * 2 * tokens * DIM * heads * rank
    # Scores and weighted sums, and two products for the gradient of each.
    mixing = 6 * 2 * tokens * LENGTH * heads * rank
    # Queries, keys and values: written once, read forward and backward, and the same numbers as gradients written and
    # read; what heads read: written, read by W_O and its gradient; its gradient written and read.
    passes = 3 * (3 + 2) + 3 + 2
    seconds = max((projections + mixing) / FLOPS_PER_SECOND, 4 * passes * tokens * heads * rank / BYTES_PER_SECOND)
    return 1e3 * seconds


def own_program(rank: int, multiplier: int):
    """headcount's own training program for one model that is an attention block and nothing else, warmed up."""
    from own_engine import WarmProgram

    from headcount import EncoderSpec, TrainSpec, find_task

    spec = EncoderSpec.with_total_dim(
        DIM, heads=DIM // rank, width=DIM, multiplier=multiplier, hidden=0, norm="none", residual=False
    )
    train = TrainSpec(batch=BATCH, train_examples=0, validation_examples=BATCH)
    return WarmProgram(find_task("farthest-point", length=LENGTH, dim=DIM), spec, train)


if __name__ == "__main__":
    main()
