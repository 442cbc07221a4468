"""How long a certified collision takes: D = 4, T = 32, one model of each head count, both questions of
`headcount collide`. The first run compiles; the second is the one that counts.

    python benchmarks/collision_speed.py
"""

import time

import numpy as np

import headcount as hc
from headcount.tasks import GeneratedTask
from headcount.theory import domain_of, find_collisions
from headcount.theory.collisions.stored import SearchOptions, best_certificate

LENGTH, DIM = 32, 4


def main() -> None:
    task, options = hc.find_task("sum-of-maxima", length=LENGTH, dim=DIM), SearchOptions()
    assert isinstance(task, GeneratedTask)
    domain = domain_of(task, options.radius)
    anchors = domain.clip(np.asarray(task.examples(20, 20).validation.content[: options.anchors], float))
    print("heads  compiled and run (s)  run again (s)  floor anywhere  exact  floor near data  exact")
    for heads in range(1, 6):
        model = hc.ClassTokenSpec(heads=heads).init(0, length=LENGTH, dim=DIM, outputs=1)
        seconds, certificates = [], []
        for _ in range(2):
            began = time.perf_counter()
            certificates = []
            for starts, near in ((4 * options.starts, None), (options.starts, anchors)):
                (found,) = find_collisions([model], task, domain, steps=options.steps, starts=starts, anchors=near)
                certificates.append(best_certificate(found, model, task, domain, options.slope))
            seconds.append(time.perf_counter() - began)
        said = "  ".join("-" if c is None else f"{c.floor(options.slope):14.3g}  {c.exact!s:>5}" for c in certificates)
        print(f"{heads:5d}  {seconds[0]:20.1f}  {seconds[1]:13.1f}  {said}")


if __name__ == "__main__":
    main()
