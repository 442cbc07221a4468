"""How much loss fewer key heads cost: the mean of neighbours against aligned, chosen and refitted groups.

python benchmarks/pretrained/grouping.py [--weights DIR] [--models NAME ..] [--examples N] [--threads N] [--out DIR]

Two real models: stories15M (Llama, 6 key heads, to 3, 2, 1) on texts that it wrote, and SmolLM2-135M (9 heads on 3 key
heads, to 1) on Wikipedia. All methods see the same calibration examples; the loss increase is over the same held-out
examples, in nats per token, with the standard error of its mean over examples (paired). One run prints the table and
writes grouping.csv and grouping.svg.
"""

import argparse
import csv
import functools
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

# One thread for numpy's algebra: the products are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from headcount.pretrained.plugin import need
from headcount.report.chart import COLOURS
from headcount.report.render.figure import save_figure
from headcount.report.render.ink import INK

if TYPE_CHECKING:
    from headcount.pretrained.layers.weights import HeadWeights
    from headcount.pretrained.sharing.grouping import Groups
    from headcount.pretrained.sharing.in_order import SmallLayer
    from headcount.pretrained.sharing.moments import LayerMoments

MODELS = {
    "stories15m": {"data": "stories.txt", "length": 128, "key_heads": (3, 2, 1)},
    "smollm2-135m": {"data": "wiki.txt", "length": 128, "key_heads": (1,)},
}
METHODS = {
    "mean-pool": ("mean", False),
    "mean-pool + refit": ("mean", True),
    "aligned": ("aligned", False),
    "aligned + refit": ("aligned", True),
    "aligned + groups + refit": ("searched", True),
}
"""How neighbours are merged, or that groups are searched; whether outputs are refitted."""
COLUMNS = ("model", "from", "key_heads", "method", "base", "increase", "error", "seconds", "examples", "tokens")

talk = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--weights", type=Path, default=Path("results/pretrained"), help="folder of the models and data/"
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--examples", type=int, default=128, help="sequences; a third is held out, the others calibrate"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/grouping"), help="folder of grouping.csv and .svg")
    arguments = parser.parse_args()
    need()
    import torch

    torch.set_num_threads(arguments.threads)
    rows = [row for name in arguments.models for row in measure(name, arguments.weights, arguments.examples)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "grouping.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, arguments.out / "grouping.svg")
    print(table(rows))


def measure(name: str, folder: Path, examples: int) -> list[dict]:
    """Every method at every number of key heads of one model."""
    from headcount.pretrained.evaluation.evaluate import Evaluation
    from headcount.pretrained.examples.read import read_examples
    from headcount.pretrained.layers.find import attention_layers
    from headcount.pretrained.loading.load import load_model
    from headcount.pretrained.sharing.in_order import small_layers

    case = MODELS[name]
    loaded = load_model(str(folder / name))
    data = read_examples(loaded, folder / "data" / case["data"], length=case["length"], limit=examples)
    evaluation = Evaluation(loaded, attention_layers(loaded.model), data)
    base = evaluation.losses()
    before = evaluation.original[0].key_heads
    tokens = sum(batch.tokens for batch in data.held_out)
    talk.print(f"{name}: base loss {base.mean():.4f} on {len(base)} held-out examples, {tokens} tokens")
    rows = []
    for key_heads in case["key_heads"]:
        for method, (how, refitted) in METHODS.items():
            if key_heads == 1 and how == "searched":
                continue  # one group: nothing to choose
            began = time.perf_counter()
            layers = small_layers(evaluation, functools.partial(grouped, key_heads, how), refitted=refitted)
            seconds = time.perf_counter() - began
            increase = evaluation.losses({index: layer.masked for index, layer in enumerate(layers)}) - base
            error = increase.std(ddof=1) / math.sqrt(len(increase))
            talk.print(f"{name} {before} to {key_heads}, {method}: +{increase.mean():.3f} ({seconds:.0f} s)")
            sizes = {"from": before, "key_heads": key_heads, "examples": len(base), "tokens": tokens}
            numbers = {"base": base.mean(), "increase": increase.mean(), "error": error, "seconds": seconds}
            rounded = {key: round(float(value), 4) for key, value in numbers.items()}
            rows.append({"model": name, "method": method, **sizes, **rounded})
    return rows


def grouped(key_heads: int, how: str, layer: "LayerMoments") -> "SmallLayer":
    """The layer with fewer key heads."""
    from headcount.pretrained.sharing.grouping import choose_groups, group_layer, neighbours
    from headcount.pretrained.sharing.in_order import SmallLayer

    choose = choose_groups if how == "searched" else lambda layer, groups: neighbours(layer.weights.key_heads, groups)
    groups = choose(layer, key_heads)
    small = mean_pool(layer.weights, groups) if how == "mean" else group_layer(layer, groups)
    return SmallLayer(small, small.repeated(layer.weights.key_heads))


def mean_pool(weights: "HeadWeights", groups: "Groups") -> "HeadWeights":
    """The mean of the key heads and of the values of every group (Ainslie et al. 2023)."""
    arrays = {name: getattr(weights, name) for name in ("key", "value", "key_bias", "value_bias")}
    pooled = {
        name: None if array is None else np.stack([array[list(group)].mean(axis=0) for group in groups])
        for name, array in arrays.items()
    }
    return replace(weights, **pooled)


def table(rows: list[dict]) -> str:
    """Methods down, models and key heads across, in Markdown."""
    cases = list(dict.fromkeys((row["model"], row["from"], row["key_heads"]) for row in rows))
    values = {(row["model"], row["key_heads"], row["method"]): row for row in rows}
    lines = [
        "| loss increase, nats | "
        + " | ".join(f"{model} {before} to {after}" for model, before, after in cases)
        + " |",
        "|---" * (len(cases) + 1) + "|",
    ]
    for method in METHODS:
        cells = [values.get((model, after, method)) for model, _, after in cases]
        written = [f"{cell['increase']:.3f} ± {cell['error']:.3f}" if cell else "-" for cell in cells]
        lines.append(f"| {method} | " + " | ".join(written) + " |")
    return "\n".join(lines)


def draw(rows: list[dict], path: Path) -> None:
    """One panel per model: bars of the loss increase by key heads and method."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    counts = [len({row["key_heads"] for row in rows if row["model"] == model}) for model in models]
    figure = Figure(figsize=(3.0 + 2.4 * sum(counts), 3.6), layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False, width_ratios=counts)[0]
    for panel, model in zip(panels, models, strict=True):
        chosen = [row for row in rows if row["model"] == model]
        places = list(dict.fromkeys(row["key_heads"] for row in chosen))
        for offset, method in enumerate(METHODS):
            cells = [row for row in chosen if row["method"] == method]
            x = np.array([places.index(row["key_heads"]) for row in cells]) + 0.16 * (offset - 2)
            height = [row["increase"] for row in cells]
            colour = COLOURS[offset % len(COLOURS)]
            panel.bar(x, height, 0.15, yerr=[row["error"] for row in cells], color=colour, label=method)
            for place, value in zip(x, height, strict=True):
                panel.annotate(f"{value:.2f}", (place, value), ha="center", va="bottom", fontsize=7, color=INK)
        panel.set_xticks(range(len(places)), [f"{chosen[0]['from']} to {place}" for place in places])
        panel.set_xlabel(f"key heads, {model}", fontsize=9.5, color=INK)
    panels[0].set_ylabel("loss increase, nats per token", fontsize=9.5, color=INK)
    panels[0].legend(frameon=False, fontsize=8)
    title = "Fewer key heads: the mean of neighbours against aligned groups (held-out; lower is better)"
    figure.suptitle(title, fontsize=11, x=0.008, horizontalalignment="left", color=INK)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
