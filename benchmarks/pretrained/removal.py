"""Loss increase at 10, 20, 30 and 50 % of heads removed: headcount's descent against published criteria.

python benchmarks/pretrained/removal.py MODEL DATA [MODEL DATA ...] [--limit N] [--device cuda] [--out DIR]

All orders are made from the same calibration examples and judged on the same held-out ones, in one run, each with and
without the refit of the output projections (the same closed form and ridge for all). Random is the mean of three
orders. Gradient and Fisher see all calibration examples once; leave-one-out runs half of them once per head; ours runs
that half some hundred times, fits on the other half, and the tokens that it ran are printed.
Torch-Pruning's score is that of its installed package (pip install torch-pruning), with its defaults, over the groups
of channels that its own graph finds; the row is left out where the package is missing.

Prints a table per model; --out DIR gets removal.csv and removal.svg.
"""

import argparse
import csv
import importlib.util
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from removal_figure import draw
from rich.console import Console
from rich.table import Table
from torch import nn

from headcount.pretrained.evaluation.evaluate import Evaluation
from headcount.pretrained.examples.read import read_examples
from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.layers.weights import HeadWeights
from headcount.pretrained.loading.load import load_model
from headcount.pretrained.removal.descent import descend
from headcount.pretrained.removal.importance import ascending, layer_importance, peer_orders
from headcount.pretrained.removal.refit import Head, losses_along

SHARES = (0.1, 0.2, 0.3, 0.5)
OURS = "headcount"


talk = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Row:
    """The increases of one criterion on one model, at SHARES."""

    model: str
    criterion: str
    refit: bool
    samples: np.ndarray
    """Increases by share and held-out example."""

    @property
    def increases(self) -> tuple[float, ...]:
        return tuple(self.samples.mean(axis=1))

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(standard_errors(self.samples))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="MODEL DATA", help="a model's folder and the file it is judged on")
    parser.add_argument("--limit", type=int, help="examples, a third of them held out; default: by the model's size")
    parser.add_argument("--length", type=int, help="tokens per example at most")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="threads of torch")
    parser.add_argument("--out", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    if len(arguments.pairs) % 2:
        parser.error(f"each MODEL needs a DATA file, got {len(arguments.pairs)} arguments")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rows: list[Row] = []
    for model, data in zip(arguments.pairs[::2], arguments.pairs[1::2], strict=True):
        rows += measure(model, data, arguments)
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            write_csv(rows, arguments.out / "removal.csv")
            draw(rows, SHARES, arguments.out / "removal.svg")


def measure(model: str, data: str, arguments: argparse.Namespace) -> list[Row]:
    """All rows of one model, printed."""
    start = time.perf_counter()
    loaded = load_model(model, device=arguments.device)
    examples = read_examples(loaded, data, limit=arguments.limit, length=arguments.length)
    examples = replace(examples, scored=len(examples.calibration) // 2)
    evaluation = Evaluation(loaded, attention_layers(loaded.model), examples, tick=_tell)
    name = Path(model).name
    heads = [weights.heads for weights in evaluation.original]
    counts = tuple(round(share * sum(heads)) for share in SHARES)
    base = evaluation.losses()
    talk.print(f"{name}: {sum(heads)} heads, {examples.counts()}, {examples.loss.name}")
    statistics = evaluation.statistics()
    orders = peer_orders([layer_importance(evaluation, index, one) for index, one in enumerate(statistics)])
    if importlib.util.find_spec("torch_pruning"):
        orders["Torch-Pruning, group magnitude"] = torch_pruning_order(evaluation.original)
    else:
        talk.print("Torch-Pruning is not installed, its row is left out: pip install torch-pruning")
    descent_start, before = time.perf_counter(), evaluation.forward_tokens
    descent = descend(evaluation, counts[-1], statistics=statistics, points=counts, least=0)
    tokens = evaluation.forward_tokens - before
    talk.print(f"descent: {time.perf_counter() - descent_start:.0f} s, {tokens:,.0f} tokens, {descent.removed}")
    orders = {OURS: descent.removed, **orders}
    rows = []
    for criterion, order in orders.items():
        for with_refit in (True, False):
            losses = losses_along(evaluation, order, counts, with_refit=with_refit) - base
            rows.append(Row(name, criterion, with_refit, losses))
            talk.print(f"{criterion}, refit {with_refit}: {np.round(rows[-1].increases, 4)}")
    rows = with_mean_of_random(rows)
    print_table(name, rows, f"{examples.loss.name}, {base.mean():.4g} unchanged, {len(base)} held-out examples", counts)
    talk.print(f"{name}: {time.perf_counter() - start:.0f} s")
    return rows


def _tell(done: int, total: int, words: str) -> None:
    talk.print(f"{done}/{total} {words}", end="\r" if sys.stderr.isatty() else "\n")


def torch_pruning_order(layers: tuple[HeadWeights, ...]) -> tuple[Head, ...]:
    """Heads by the mean group magnitude of their channels, as Torch-Pruning scores them by default."""
    import torch_pruning as tp

    scores = []
    for weights in layers:
        block = Coupled(weights.repeated(weights.heads))
        graph = tp.DependencyGraph().build_dependency(block, example_inputs=torch.ones(1, weights.width))
        channels = list(range(weights.heads * weights.head_dim))
        group = graph.get_pruning_group(block.query, tp.prune_linear_out_channels, idxs=channels)
        by_channel = tp.importance.GroupMagnitudeImportance()(group)
        scores.append(by_channel.reshape(weights.heads, -1).mean(1).double().numpy())
    return ascending(scores)


class Coupled(nn.Module):
    """The four projections of a layer, their channels coupled as attention couples them; a key head per head."""

    def __init__(self, weights: HeadWeights):
        super().__init__()
        for name in ("query", "key", "value"):
            setattr(self, name, _linear(getattr(weights, name).reshape(-1, weights.width)))
        self.output = _linear(weights.output.reshape(len(weights.output), -1))

    def forward(self, tokens):
        return self.output(self.query(tokens) * self.key(tokens) * self.value(tokens))


def _linear(matrix: np.ndarray) -> nn.Linear:
    linear = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False)
    linear.weight.data = torch.from_numpy(matrix).float()
    return linear


def with_mean_of_random(rows: list[Row]) -> list[Row]:
    """One row of the random orders' means in place of each."""
    result = [row for row in rows if not row.criterion.startswith("random")]
    for refit in (True, False):
        random = [row for row in rows if row.criterion.startswith("random") and row.refit == refit]
        if random:
            mean = np.mean([row.samples for row in random], axis=0)
            result.append(Row(random[0].model, f"random, mean of {len(random)}", refit, mean))
    return result


def print_table(name: str, rows: list[Row], words: str, counts: tuple[int, ...]) -> None:
    table = Table(title=f"{name}: increase of the held-out {words}")
    table.add_column("criterion")
    for refit in ("refit", "plain"):
        for share, count in zip(SHARES, counts, strict=True):
            table.add_column(f"{refit}\n-{share:.0%} ({count})", justify="right")
    names = list(dict.fromkeys(row.criterion for row in rows))
    by_key = {(row.criterion, row.refit): row for row in rows}
    for criterion in names:
        cells = [f"{value:.4f}" for refit in (True, False) for value in by_key[criterion, refit].increases]
        table.add_row(criterion, *cells)
    console = Console(highlight=False, soft_wrap=True, width=150)
    console.print(table)
    ours = by_key[OURS, True]
    for words, left_out in (("published criteria", (OURS, "leave-one-out")), ("all others", (OURS,))):
        others = {key: row for key, row in by_key.items() if key[0] not in left_out}
        for place, share in enumerate(SHARES):
            best = min(others, key=lambda key: others[key].increases[place])
            increase = others[best].increases[place]
            apart = others[best].samples[place] - ours.samples[place]
            error = standard_errors(apart[None])[0]
            saved = f" ({apart.mean() / increase:+.0%} of its increase)" if increase > 0 else ""
            console.print(
                f"-{share:.0%}: ours {ours.increases[place]:.4f}, best of {words} {increase:.4f} ({best[0]}, "
                f"{'with' if best[1] else 'without'} refit): {apart.mean():.4f} +- {error:.4f} saved{saved}"
            )


def standard_errors(samples: np.ndarray) -> np.ndarray:
    """Of the means over held-out examples; of a difference, paired."""
    return samples.std(axis=1, ddof=1) / np.sqrt(samples.shape[1])


def write_csv(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "criterion", "refit", "share_removed", "loss_increase", "standard_error"])
        for row in rows:
            for share, increase, error in zip(SHARES, row.increases, row.errors, strict=True):
                writer.writerow([row.model, row.criterion, row.refit, share, increase, error])


if __name__ == "__main__":
    main()
