"""Does what a layer needs alone predict what pruning keeps of it? One panel, a point per layer, a colour per model.

python benchmarks/pretrained/prediction.py DIR [DIR ...] --figure prediction.svg

Every DIR is the results folder of a complete `headcount inspect`. Both axes are shares of a layer's heads: those needed
within the tolerance while all other layers are whole, and those that the descent of the whole model keeps at its end.
Prints Spearman's rank correlation with a 90 % interval over resampled layers, per model and over all.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from headcount.pretrained.reading.pairs import correlation
from headcount.pretrained.reading.read import read_trained_model
from headcount.report.chart import COLOURS
from headcount.report.render.figure import save_figure
from headcount.report.render.ink import INK, QUIET
from headcount.store import Store

SPREAD = 0.012
"""Points at the same place are drawn side by side, this share of the axis apart."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--figure", type=Path, default=Path("prediction.svg"))
    arguments = parser.parse_args()
    shares = {folder.name: layer_shares(folder) for folder in arguments.folders}
    for name, (needed, kept) in shares.items():
        print(f"{name}: {len(needed)} layers, rank correlation {correlation(needed, kept)}")
    every = [np.concatenate(side) for side in zip(*shares.values(), strict=True)]
    print(f"all: {len(every[0])} layers, rank correlation {correlation(*every)}")
    draw(shares, arguments.figure)
    print(f"drawn in {arguments.figure}")


def layer_shares(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Heads needed and heads kept at the end of the descent, of every layer, as shares of its heads."""
    with Store.open_for_reading(folder) as store:
        (experiment, *_) = [each for each in store.experiments() if each.study == "inspect"]
        model = read_trained_model(store.facts(experiment.name))
    if model.prediction is None:
        raise SystemExit(f"{folder}: the inspection is not complete; run `headcount status {folder}`")
    heads = np.array([layer.heads for layer in model.layers])
    return np.array(model.prediction.needed) / heads, np.array(model.prediction.kept) / heads


def draw(shares: dict[str, tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    panel = figure.subplots()
    panel.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle=(0, (3, 2)))
    taken: dict[tuple[float, float], int] = {}
    for place, (name, (needed, kept)) in enumerate(shares.items()):
        points = []
        for x, y in zip(needed.round(3), kept.round(3), strict=True):
            points.append((x + SPREAD * taken.get((x, y), 0), y))
            taken[x, y] = taken.get((x, y), 0) + 1
        panel.plot(*zip(*points, strict=True), "o", markersize=5, alpha=0.8, color=COLOURS[place], label=name)
    panel.set_xlabel("heads needed by the layer alone, share", color=INK)
    panel.set_ylabel("heads that the descent keeps, share", color=INK)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=9)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
