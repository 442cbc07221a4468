"""Results that nobody measured."""

import dataclasses
import random
from typing import Any

from benchmarks.calibration.families import KnownTask, calibration_set
from benchmarks.calibration.record import TaskResult

NORMAL = "effort normal"
KNOWN = KnownTask("maxima", 3, 4, 16)
UNKNOWN = KnownTask("median", None, 2, 15)


def result(task: KnownTask = KNOWN, heads: int | None = None, **fields: Any) -> TaskResult:
    """A task's result; the interval is the answer alone unless given."""
    sentence = "no transition found" if heads is None else f"needs {heads} heads [{heads}, {heads}]"
    given = {"protocol": NORMAL, "sentence": sentence, "low": heads, "high": heads} | fields
    return TaskResult(task=task, heads=heads, **given)


def every_result(seed: int = 0, mistakes: float = 0.06) -> list[TaskResult]:
    """One result per task of the calibration set, a few of them wrong."""
    draw = random.Random(seed)
    results = []
    for task in calibration_set():
        known = task.intrinsic_dim
        heads, early = known, None if known is None else max(1, known + draw.choice([0, 0, 0, 0, 1, -1]))
        if draw.random() < mistakes:
            heads = draw.choice([None, (known or 1) + 1, max(1, (known or 2) - 1)])
        spread = draw.choice([0, 0, 0, 0, 1])
        low, high = (None, None) if heads is None else (max(1, heads - spread), heads + spread)
        times = {"seconds": draw.uniform(5, 60), "early_seconds": draw.uniform(1, 5)}
        results.append(dataclasses.replace(result(task, heads), low=low, high=high, early=early, **times))
    return results
