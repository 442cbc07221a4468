"""Simulate a cluster of 1 to 10,000 workers under the real dispatch code, from stored measurements.

python benchmarks/cluster/simulate.py                            # tables, and docs/scale.svg; about a minute
python benchmarks/cluster/simulate.py --quick --figure /tmp/a.svg  # to 1,000 workers, fewer buckets

`measure_inputs.py` takes the measurements (`measured.json`). Workers train nothing and time is virtual, but which
worker gets which bucket is decided by `headcount.cluster.dispatch`, and the CPU time that takes here is part of
the simulated time. Tables are printed in Markdown.
"""

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulate_figure import draw
from virtual import Costs, Simulated, drawn, simulate

from headcount.engine.hardware import Hardware
from headcount.engine.plan import CPU_PACE, GPU_PACE

MEASURED = Path(__file__).parent / "measured.json"
FIGURE = Path(__file__).parents[2] / "docs" / "scale.svg"
WORKERS = (1, 4, 16, 64, 256, 1000, 10_000)
BUCKETS_PER_WORKER, MOST_BUCKETS = 20, 40_000
CORE = Hardware("cpu", "one CPU core", 4 << 30, 1, side_by_side=False)
GPU = Hardware("gpu", "one GPU", 139 << 30, 16, side_by_side=True)
ANSWER_REFERENCES = 2
"""Answers that are waited for per worker: of what it trains, and of its news."""
REPLACED_SECONDS = 120.0
"""Assumed: from the loss of a node until another one has joined."""
MTBF_HOURS = (1, 6, 24)


@dataclass(frozen=True)
class Kind:
    """A kind of worker: its bucket times as measured, and what else its buckets take."""

    name: str
    machine: Hardware
    seconds: tuple[float, ...]
    per_node: int
    programs: int
    costs: Costs

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)


def kinds(measured: dict, commits: str) -> list[Kind]:
    """CPU cores and GPUs, with commits of one `commits`: "files" or "store"."""
    calls, buckets, on_gpu = measured["calls"], measured["buckets"], measured["gpu_buckets"]
    costs = Costs(
        commit=commit_seconds(measured, commits),
        call=(calls["call_cpu_seconds"] + calls["answer_cpu_seconds"]) / 2,
        look=ANSWER_REFERENCES * calls["wait_cpu_seconds_per_reference"],
        startup=calls["import_cpu_seconds"],
        charge_dispatch=True,
    )
    compiling = statistics.fmean(bucket["compile_seconds"] for bucket in buckets["buckets"])
    of_core = replace(costs, compile=compiling, read=CPU_PACE.read_seconds)
    of_gpu = replace(costs, compile=GPU_PACE.compile_seconds, read=GPU_PACE.read_seconds)
    on_core = tuple(bucket["seconds"] for bucket in buckets["buckets"])
    gpu_seconds = tuple(bucket["seconds"] for bucket in on_gpu["buckets"])
    return [
        Kind("CPU cores", CORE, on_core, 64, len(on_core), of_core),
        Kind("GPUs", GPU, gpu_seconds, 8, 10, of_gpu),
    ]


def commit_seconds(measured: dict, commits: str, cells: int = 8) -> float:
    """The fastest of the measured commits of so many cells, with most cells stored."""
    rows = [row for row in measured["commits"]["commits"] if row["cells"] == cells]
    return max(rows, key=lambda row: row["stored"])[f"{commits}_least"]


def run(kind: Kind, workers: int, costs: Costs | None = None, per_worker: int = BUCKETS_PER_WORKER) -> Simulated:
    """So many workers of a kind, each with so many buckets on average."""
    count = min(per_worker * workers, MOST_BUCKETS)
    buckets = drawn(kind.seconds, count, programs=kind.programs)
    return simulate(buckets, workers, costs=costs or kind.costs, machine=kind.machine, per_node=kind.per_node)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _inputs(measured: dict) -> str:
    calls, buckets, on_gpu = measured["calls"], measured["buckets"], measured["gpu_buckets"]
    gpu_seconds = [bucket["seconds"] for bucket in on_gpu["buckets"]]
    core_seconds = [bucket["seconds"] for bucket in buckets["buckets"]]
    compiled = [bucket["compile_seconds"] for bucket in buckets["buckets"]]
    answer = statistics.fmean(bucket["answer_bytes"] for bucket in buckets["buckets"])
    loads = ", ".join(f"{part} {measured[part]['origin']['load']}" for part in ("buckets", "commits", "calls"))
    rows = [
        (
            "a bucket of 8 models on one CPU core",
            f"{min(core_seconds):.0f} to {max(core_seconds):.0f} s, mean {statistics.fmean(core_seconds):.0f} s",
            f"CPU seconds, {buckets['command']}, {buckets['backend']}",
        ),
        (
            "a bucket of 8 models on one GPU",
            f"{min(gpu_seconds):.0f} to {max(gpu_seconds):.0f} s, mean {statistics.fmean(gpu_seconds):.1f} s",
            f"{on_gpu['device']}, {len(gpu_seconds)} buckets of `{on_gpu['command'].partition(' --out')[0]}`",
        ),
        ("compiling, CPU", f"{statistics.fmean(compiled):.1f} s", "CPU seconds, data included"),
        ("compiling, GPU", f"{GPU_PACE.compile_seconds:.0f} s", "what a plan assumes"),
        ("bucket to worker", f"{buckets['buckets'][0]['errand_bytes']:,} bytes", "pickled"),
        ("bucket's answer", f"{answer:,.0f} bytes", "pickled: records and weights of 8 models"),
        (
            "commit of 8 cells, one file per cell",
            f"{1e3 * commit_seconds(measured, 'files'):.0f} ms",
            "fastest of 9, 10,000 cells stored",
        ),
        ("commit of 8 cells, one pack", f"{1e3 * commit_seconds(measured, 'store'):.0f} ms", "the same, in turns"),
        (
            "commit of 64 cells, one file per cell / one pack",
            f"{1e3 * commit_seconds(measured, 'files', 64):.0f} / {1e3 * commit_seconds(measured, 'store', 64):.0f} ms",
            "the same",
        ),
        ("call of a worker and its answer", f"{1e3 * calls['call_least_seconds']:.2f} ms", "wall, fastest of 300"),
        (
            "the same, of this process alone",
            f"{1e3 * calls['call_cpu_seconds']:.2f} ms",
            f"CPU seconds; {1e3 * calls['answer_cpu_seconds']:.2f} ms with an answer of 100 kB",
        ),
        (
            "waiting for the answers of 1,000 workers",
            f"{1e6 * ANSWER_REFERENCES * calls['wait_cpu_seconds_per_reference']:.1f} ms",
            "CPU seconds of one `ray.wait`, whether or not something happened",
        ),
        ("start of a worker", f"{calls['import_cpu_seconds']:.1f} s", "CPU seconds until JAX and headcount are there"),
    ]
    return f"Load average of the 2 cores while measuring: {loads}.\n\n" + table(("what", "measured", "how"), rows)


def two_digits(value: float) -> str:
    """Rounded to two digits, and 180 rather than 1.8e+02."""
    return f"{float(f'{value:.2g}'):g}"


def _scaling(results: dict[str, list[Simulated]]) -> str:
    header = ("workers", *results)
    by_workers: dict[int, dict[str, Simulated]] = {}
    for name, ended in results.items():
        for each in ended:
            by_workers.setdefault(each.workers, {})[name] = each
    rows = [
        [
            f"{workers:,}",
            *(f"{each.efficiency:.0%} ({two_digits(each.buckets_per_second)} buckets/s)" for each in ended.values()),
        ]
        for workers, ended in by_workers.items()
    ]
    return table(header, rows)


def _saturation(measured: dict, results: dict[str, list[Simulated]]) -> str:
    rows = []
    for commits, called in (("files", "one file per cell"), ("store", "packs")):
        for kind in kinds(measured, commits):
            ended = results[f"{kind.name}, {called}"][-1]
            busy = kind.costs.commit + 2 * kind.costs.call
            per_bucket = (ended.calling + ended.dispatching + ended.committing) / ended.buckets
            rows.append(
                (
                    f"{kind.name}, {called}",
                    f"{1 / busy:.0f} buckets/s",
                    f"{kind.mean / busy:,.0f}",
                    f"{ended.buckets_per_second:.0f} buckets/s",
                    f"{1e6 * ended.dispatching / ended.buckets:.0f} µs",
                    f"{ended.workers * per_bucket:,.0f} s",
                )
            )
    most = next(iter(results.values()))[-1].workers
    header = ("", "1 / (commit + 2 calls)", "workers at that", f"simulated, {most:,} workers", "dispatch per bucket")
    return table((*header, f"bucket that keeps {most:,} workers busy"), rows)


def _failures(measured: dict, workers: int, per_worker: int) -> str:
    rows = []
    for kind in kinds(measured, "store"):
        quiet = run(kind, workers, per_worker=per_worker)
        for hours in MTBF_HOURS:
            dying = replace(kind.costs, worker_mtbf=3600.0 * hours)
            ended = run(kind, workers, dying, per_worker)
            lost = run(kind, workers, replace(dying, node_lost=True, replaced=REPLACED_SECONDS), per_worker)
            rows.append(
                (
                    kind.name,
                    f"{hours} h",
                    f"{ended.deaths}",
                    f"{ended.wasted / ended.useful:.2%}",
                    f"{ended.seconds / quiet.seconds - 1:+.1%}",
                    f"{lost.seconds / quiet.seconds - 1:+.1%}",
                )
            )
    header = ("", "a worker lives", "deaths", "training lost", "run longer by", "longer, each death a lost node")
    return f"{workers:,} workers, packs.\n\n" + table(header, rows)


def _most_gpus(measured: dict, results: dict[str, list[Simulated]], gpus: int = 10_000) -> str:
    """What one process has to do for so many GPUs, beside what it does: arithmetic, nothing simulated."""
    of_gpus = kinds(measured, "store")[1]
    costs, per_second = of_gpus.costs, gpus / of_gpus.mean
    ended = results[f"{of_gpus.name}, packs"][-1]
    answer = statistics.fmean(bucket["answer_bytes"] for bucket in measured["buckets"]["buckets"])
    served = of_gpus.mean / (costs.commit + 2 * costs.call)
    per_bucket = {
        "commits of 8 cells": costs.commit,
        "calls and answers": 2 * costs.call,
        "dispatch": ended.dispatching / ended.buckets,
    }
    rows = [
        (what, f"{per_second:,.0f} per second", f"{1 / seconds:,.0f}", f"{per_second * seconds:.2g}")
        for what, seconds in per_bucket.items()
    ]
    wait = gpus * costs.look
    rows += [
        ("`ray.wait` over all workers", "each time something happens", f"{1 / wait:,.0f}", "linear from 1,000 workers"),
        ("answers", f"{per_second * answer / 1e6:,.0f} MB/s ({answer / 1e3:.0f} kB each)", "not measured", ""),
    ]
    header = ("what", "has to be done", "one process does, per second", "cores' worth of work")
    words = f"{gpus:,} GPUs, buckets of {of_gpus.mean:.1f} s: {per_second:,.0f} per second. "
    return f"{words}Commits and calls alone: {served:,.0f} GPUs at most.\n\n" + table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="to 1,000 workers, 8 buckets each")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    measured = json.loads(MEASURED.read_text())
    print(f"## Measured\n\n{_inputs(measured)}\n", flush=True)
    counts = [workers for workers in WORKERS if workers <= 1000 or not options.quick]
    per_worker = 8 if options.quick else BUCKETS_PER_WORKER
    results: dict[str, list[Simulated]] = {}
    for commits, called in (("files", "one file per cell"), ("store", "packs")):
        for kind in kinds(measured, commits):
            results[f"{kind.name}, {called}"] = [run(kind, workers, per_worker=per_worker) for workers in counts]
    print(
        f"## Efficiency, {per_worker} buckets per worker, {MOST_BUCKETS:,} at most\n\n{_scaling(results)}\n", flush=True
    )
    print(f"## Where the single writer saturates\n\n{_saturation(measured, results)}\n", flush=True)
    few = 100 if options.quick else 250
    print(f"## Failures\n\n{_failures(measured, few, 4 * per_worker)}\n", flush=True)
    print(f"## What 10,000 GPUs would meet first\n\n{_most_gpus(measured, results)}\n", flush=True)
    draw(results, options.figure)
    print(f"{options.figure} drawn.")


if __name__ == "__main__":
    main()
