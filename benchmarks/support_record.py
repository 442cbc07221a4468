"""How often a trained model's gradients give D: small models on tasks of known D, stopped early and later.

    python benchmarks/support_record.py --out DIR [--families maxima,outer] [--steps 300,1000] [--dims 1,2,3,4,5]

The tasks are those of `headcount calibrate` at T = 16. A run that was stopped continues where it was.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from headcount.calibration.families import KnownTask

import headcount as hc
from headcount.theory.support.stored import estimate_support

HEADS, LENGTH, DIM, TRAINED = 6, 16, 4, 4000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", default="maxima,weighted,basins,outer,laws,two-labels,noisy")
    parser.add_argument("--steps", default="100,300,1000,2000")
    parser.add_argument("--dims", default="1,2,3,4,5")
    options = parser.parse_args()
    steps = [int(word) for word in options.steps.split(",")]
    rows: dict[tuple[str, int], list[tuple[int, float, float]]] = defaultdict(list)
    print(f"{HEADS} heads, T = {LENGTH}, d = {DIM}, {TRAINED:,} examples: D, then the estimate after these steps")
    for family in options.families.split(","):
        for count in map(int, options.dims.split(",")):
            classes = 2 if family == "two-labels" else 0
            noise = 0.1 if family == "noisy" else 0.0
            known = KnownTask(family, count, DIM, LENGTH, TRAINED + 1000, noise, classes, variant=1)
            task, line = known.task(), []
            for each in steps:
                measurement = hc.measure(
                    task,
                    heads=[HEADS],
                    lengths=[LENGTH],
                    seeds=1,
                    steps=each,
                    positions="none",
                    out=options.out / f"{known.name}-{each}",
                    progress=False,
                )
                tokens = np.asarray(task.examples(TRAINED, 1000).validation.content)
                estimate = estimate_support(measurement.model(), tokens, labels=classes > 0).value
                error = measurement.records[0].error
                rows[family, each].append((count, estimate, error))
                line.append(f"{each}: {estimate:.2f} (error {error:.2g})")
            print(f"{family:12s} D = {count}  {'   '.join(line)}", flush=True)
    print("\nright (rounded) of tried")
    print("family       " + "".join(f"{each:>10,}" for each in steps))
    for family in options.families.split(","):
        cells = [f"{_right(rows[family, each])} of {len(rows[family, each])}" for each in steps]
        print(f"{family:13s}" + "".join(f"{cell:>10}" for cell in cells))


def _right(cases: list[tuple[int, float, float]]) -> int:
    return sum(round(estimate) == count for count, estimate, _ in cases)


if __name__ == "__main__":
    main()
