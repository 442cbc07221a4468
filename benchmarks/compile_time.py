"""Where the time of one command goes: imports, tracing, lowering, compiling by program, training, storing, the report.

python benchmarks/compile_time.py                               # table2 at smoke scale, cold and warm
python benchmarks/compile_time.py reproduce table2 --scale paper  # one H200: the bar is 45 s cold, 20 s warm
python benchmarks/compile_time.py measure sum-of-maxima --intrinsic-dim 4 --steps 2000

The command is run in two fresh processes with one cache folder that is empty at first, each time into a new results
folder. "cold" compiles every program, "warm" reads from disk those that JAX kept there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/core/compile/backend_compile_duration": "compiling",
}
READ = "/jax/compilation_cache/cache_hits"
LISTED = 12
"""Programs that are listed one by one; the others are added up."""


class Watch:
    """Listens to JAX, and to the parts of headcount that a run goes through; threads may speak at once."""

    def __init__(self, began: float):
        self.began, self.lock = began, threading.Lock()
        self.spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.programs: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.read = 0

    def now(self) -> float:
        return time.time() - self.began

    def on_span(self, event: str, start_time: float, end_time: float, **named: Any) -> None:
        kind = EVENTS.get(event)
        if kind is None:
            return
        name = str(named.get("fun_name", "?")).removeprefix("jit_").removeprefix("jit(").removesuffix(")")
        with self.lock:
            self.spans[kind].append((start_time - self.began, end_time - self.began))
            self.programs[name][kind] += end_time - start_time
            self.programs[name]["count"] += kind == "compiling"

    def on_event(self, event: str, **_: Any) -> None:
        self.read += event == READ

    def timed(self, kind: str, owner: Any, name: str) -> None:
        """Put a clock around a method or function."""
        whole: Callable = getattr(owner, name)

        def clocked(*positional: Any, **named: Any) -> Any:
            start = self.now()
            try:
                return whole(*positional, **named)
            finally:
                with self.lock:
                    self.spans[kind].append((start, self.now()))

        setattr(owner, name, clocked)


def wall(spans: list[tuple[float, float]]) -> float:
    """Seconds during which at least one of the spans was open."""
    total, reached = 0.0, 0.0
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def observe(command: list[str], out: Path, results: Path) -> None:
    """Run the command in this process and write down what it did."""
    began = process_start()
    import jax
    import jax.monitoring

    watch = Watch(began)
    jax.monitoring.register_event_time_span_listener(watch.on_span)
    jax.monitoring.register_event_listener(watch.on_event)
    import headcount.cli.measure
    import headcount.papers.cli.reproduce
    from headcount.cli import main
    from headcount.engine.data import PreparedExamples
    from headcount.engine.trainer import BucketTrainer
    from headcount.store import Store

    imported = watch.now()
    jax.devices()
    started = watch.now()
    watch.timed("data", PreparedExamples, "of")
    watch.timed("buckets", BucketTrainer, "train")
    watch.timed("storing", Store, "commit")
    watch.timed("sweep", headcount.papers.cli.reproduce, "run")
    watch.timed("sweep", headcount.cli.measure, "measure_task")
    sys.argv = ["headcount", *command, "--out", str(out)]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
    ended = watch.now()
    with Store.open_for_reading(out) as store:
        records = store.records()
    trained = watch.spans["buckets"]
    results.write_text(
        json.dumps(
            {
                "device": str(jax.devices()[0].device_kind),
                "total": ended,
                "imports": imported,
                "device start": started - imported,
                "first bucket begins": min((start for start, _ in trained), default=0.0),
                "last program ready": max((end for _, end in watch.spans["compiling"]), default=0.0),
                "last bucket ends": max((end for _, end in trained), default=0.0),
                "cells": len(records),
                "training": sum(record.provenance.get("seconds", 0.0) for record in records),
                "wall": {kind: wall(spans) for kind, spans in watch.spans.items()},
                "added up": {kind: sum(end - start for start, end in spans) for kind, spans in watch.spans.items()},
                "after the sweep": ended - max((end for _, end in watch.spans["sweep"]), default=ended),
                "read": watch.read,
                "programs": watch.programs,
            }
        )
    )


def process_start() -> float:
    """When this process began; where the system does not say so, now."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return time.time()
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def described(name: str, seen: dict) -> str:
    """The breakdown of one run as text."""
    programs: dict[str, dict[str, float]] = seen["programs"]
    compiled = {each: parts for each, parts in programs.items() if parts.get("count")}
    count = int(sum(parts["count"] for parts in compiled.values()))
    total, over, added = seen["total"], seen["wall"], seen["added up"]
    lines = [
        f"{name}: {total:.1f} s, {seen['cells']} models, {count} programs of which {seen['read']} read from disk"
        f" ({seen['device']})",
        f"  {seen['imports']:6.1f} s  imports",
        f"  {seen['device start']:6.1f} s  device start",
    ]
    for kind in ("data", "tracing", "lowering", "compiling", "storing"):
        lines.append(f"  {over.get(kind, 0):6.1f} s  {kind} ({added.get(kind, 0):.1f} s added up over threads)")
    lines += [
        f"  {seen['training']:6.1f} s  training, added up over buckets",
        f"  {seen['after the sweep']:6.1f} s  after the sweep: analysis and report",
        *(
            f"  at {seen[moment]:6.1f} s  {moment}"
            for moment in ("first bucket begins", "last program ready", "last bucket ends")
        ),
        "  programs, seconds added up over threads:",
        f"    {'count':>5} {'tracing':>8} {'lowering':>8} {'compiling':>9}  name",
    ]
    ranked = sorted(compiled.items(), key=lambda entry: -entry[1].get("compiling", 0))
    rows = [*ranked[:LISTED]]
    if ranked[LISTED:]:
        others: dict[str, float] = defaultdict(float)
        for _, parts in ranked[LISTED:]:
            for part, value in parts.items():
                others[part] += value
        rows.append((f"{len(ranked) - LISTED} other names", others))
    for each, parts in rows:
        spent = (parts.get(part, 0.0) for part in ("tracing", "lowering", "compiling"))
        lines.append("    {:5d} {:8.2f} {:8.2f} {:9.2f}  {}".format(int(parts["count"]), *spent, each))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write everything that was seen to this file")
    parser.add_argument("--cold-only", action="store_true", help="one run, from an empty cache")
    parser.add_argument("--observe", nargs=2, type=Path, metavar=("OUT", "FILE"), help=argparse.SUPPRESS)
    arguments, command = parser.parse_known_args()
    command = command or ["reproduce", "table2", "--scale", "smoke"]
    if arguments.observe:
        observe(command, *arguments.observe)
        return
    everything = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"HEADCOUNT_CACHE": str(Path(folder) / "cache")}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        for name in ("cold",) if arguments.cold_only else ("cold", "warm"):
            seen = Path(folder) / f"{name}.json"
            child = [sys.executable, __file__, "--observe", str(Path(folder) / name), str(seen), *command]
            subprocess.run(child, env=environment, check=True, stdout=subprocess.DEVNULL)
            everything[name] = json.loads(seen.read_text())
            print(described(name, everything[name]), flush=True)
        kept = [path.stat().st_size for path in (Path(folder) / "cache").rglob("*") if path.is_file()]
        print(f"on disk: {len(kept)} files, {sum(kept) / 2**20:.1f} MiB")
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
