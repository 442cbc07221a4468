"""Results folders of every kind for the photographs: fabricated, the same on every machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headcount.papers.registry import REAL_DATA, STUDIES
from headcount.store import Outcome, Store

from ..helpers import fabricated
from ..helpers.fabricated_inspection import facts, killed_after, write_inspection

KEY_HEADS = {"heads": (1, 2, 4), "kv_heads": (1, 2), "head_dim": (1, 2, 4), "length": (8,), "seed": (0, 1)}
LINE = fabricated.LINE | {"length": (8, 16, 32), "seed": (0, 1, 2)}

BASELINES = [
    {"length": 32, "name": name, "label": label, "error": error, "validation_examples": 2000}
    for name, label, error in (
        ("linear", "a linear model", 0.98),
        ("pooled", "a pooled model", 0.56),
        ("neighbours", "a nearest-neighbour model", 1.6),
    )
]

Errors = Callable[[dict[str, Any]], float]


def steady(at: dict[str, Any]) -> float:
    """An error that falls by a third with every head."""
    return 0.6 * 0.65 ** at["heads"] * (1 + 0.05 * at["seed"])


def floor(at: dict[str, Any]) -> float:
    """Noise in the targets: every head count ends at the same error."""
    return 0.11 + 0.0005 * at["seed"] + 0.0001 * at["heads"]


def nothing(at: dict[str, Any]) -> float:
    return 0.99 + 0.001 * at["seed"]


def one_head(at: dict[str, Any]) -> float:
    return 2e-6 * (1 + 0.1 * at["seed"])


def growing(at: dict[str, Any]) -> float:
    """An error that no head count lowers, and that grows with length."""
    return 0.1 * (at["length"] / 8) ** 0.4 * (1 + 0.01 * at["seed"])


def above_a_floor(at: dict[str, Any]) -> float:
    """A drop at three heads onto noise."""
    return 0.02 * (1 + 0.02 * at["seed"]) + (0.4 if at["heads"] < 3 else 0.0)


def gradual(at: dict[str, Any]) -> float:
    """An error that falls a little less with every head."""
    return (0.2 + 0.3 * 0.5 ** at["heads"]) * (1 + 0.002 * at["seed"])


def shared_keys(at: dict[str, Any]) -> float:
    """Enough with two heads whose keys have two numbers in all."""
    return (3e-4 if at["heads"] >= 2 and at["kv_heads"] * at["head_dim"] >= 2 else 0.17) * (1 + 0.1 * at["seed"])


ANSWERS: dict[str, Errors] = {
    "steady": steady,
    "floor": floor,
    "nothing": nothing,
    "one-head": one_head,
    "growing": growing,
    "above-a-floor": above_a_floor,
}


def write_folders(root: Path) -> None:
    """Write all of them below `root`."""
    line = fabricated.sweep(LINE)
    command = "headcount measure own --seeds 3 --out results/sharp"
    sharp = fabricated.write(root / "sharp", fabricated.finished(line), {command: line})
    with Store.open_for_writing(sharp) as store:
        store.put(line.experiment.name, "baselines", BASELINES)
    for name, error in ANSWERS.items():
        made = fabricated.sweep(LINE, task=name)
        fabricated.write(root / name, fabricated.finished(made, error), {f"headcount measure {name}": made})
    part = fabricated.finished(line)[:-7]
    fabricated.write(root / "part", part, {"headcount measure own --seeds 3 --out results/part": line})
    made = fabricated.sweep(LINE, task="gradual")
    enough = fabricated.write(root / "gradual", fabricated.finished(made, gradual), {"headcount measure gradual": made})
    with Store.open_for_writing(enough) as store:
        store.put(made.experiment.name, "baselines", BASELINES)
    failed = fabricated.lost(line.cells[:9], Outcome.DIVERGED, "not finite after step 3")
    failed += fabricated.lost(line.cells[9:12], Outcome.FAILED, "no memory")
    fabricated.write(root / "failed", failed + fabricated.finished(line)[12:], {"headcount measure own": line})
    diverged = fabricated.lost(line.cells, Outcome.DIVERGED, "not finite after step 3")
    fabricated.write(root / "diverged", diverged, {"headcount measure own": line})
    descent = fabricated.descent()
    fabricated.write(root / "descent", fabricated.finished(descent), {"headcount measure own": descent})
    ranks = fabricated.sweep(fabricated.MAP, task="ranks")
    fabricated.write(root / "ranks", fabricated.finished(ranks, fabricated.sharp_in_rank), {"headcount": ranks})
    keys = fabricated.sweep(KEY_HEADS, task="keys", kept=lambda at: at["heads"] % at["kv_heads"] == 0)
    fabricated.write(root / "keys", fabricated.finished(keys, shared_keys), {"headcount measure keys": keys})
    two = {"headcount measure own": line, "headcount measure ranks": ranks}
    records = fabricated.finished(line) + fabricated.finished(ranks, fabricated.sharp_in_rank)
    fabricated.write(root / "two", records, two)
    for name, study in (STUDIES | REAL_DATA).items():
        if study.trained_by == name:
            made = fabricated.study_sweep(study)
            records = fabricated.finished(made)
            fabricated.write(root / "studies" / name, records, {f"headcount reproduce {name}": made})
    inspected = facts(layers=3, heads=4, head_dim=8)
    write_inspection(root / "inspected", inspected)
    write_inspection(root / "killed", killed_after(inspected, layers=1))
    write_inspection(root / "few-examples", facts(layers=2, heads=4, head_dim=8, examples=6, seed=1), name="few")
