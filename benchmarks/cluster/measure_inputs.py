"""Measure what `simulate.py` reads: bucket times, bytes per bucket, commits, calls of Ray.

python benchmarks/cluster/measure_inputs.py                        # all of it but the GPU's bucket times
python benchmarks/cluster/measure_inputs.py --only commits,calls   # some of it; the rest stays as it was stored
python benchmarks/cluster/measure_inputs.py --gpu-folder DIR       # bucket times of a results folder made on a GPU

Everything goes to `measured.json` beside this file, each part with the time, the command and the load average under
which it was measured. Bucket times are CPU seconds of one core, which other processes hardly change; commits and calls
wait for the disk and for other processes, so they are wall seconds: medians, and only good as ratios on a busy machine.
"""

import argparse
import datetime
import json
import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "measured.json"
HERE = Path(__file__).parent


def gpu_buckets(folder: Path) -> dict[str, Any]:
    """Bucket times as a results folder has them: cells trained together share their seconds and the time they ended."""
    groups: dict[tuple[str, float, str], int] = {}
    devices: set[str] = set()
    with closing(sqlite3.connect(f"file:{folder / 'results.sqlite'}?mode=ro", uri=True)) as file:
        commands = [command for (command,) in file.execute("SELECT command FROM runs ORDER BY id")]
        rows = file.execute("SELECT provenance FROM cells WHERE outcome != 'failed'").fetchall()
    for (text,) in rows:
        provenance = json.loads(text)
        if provenance["device"].startswith("CPU"):
            continue
        devices.add(provenance["device"])
        together = (provenance["device"], provenance["seconds"], provenance["finished"])
        groups[together] = groups.get(together, 0) + 1
    if not groups:
        sys.exit(f"{folder} holds no cell that a GPU has trained; pass a folder made by a run on a GPU.")
    return {
        "command": commands[0],
        "device": ", ".join(sorted(devices)),
        "buckets": [
            {"cells": cells, "seconds": round(cells * seconds, 3)} for (_, seconds, _), cells in sorted(groups.items())
        ],
    }


def _in_process(part: str) -> dict[str, Any]:
    """Measured in a process of its own: it is held to one core, or holds Ray's."""
    command = [sys.executable, str(HERE / f"{part}.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}; measured.json is as it was.")
    return json.loads(done.stdout.splitlines()[-1])


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "buckets": lambda: _in_process("measure_buckets"),
    "commits": lambda: _in_process("measure_commits"),
    "calls": lambda: _in_process("measure_calls"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"comma-separated, of {', '.join(PARTS)}")
    parser.add_argument("--gpu-folder", type=Path, help="read bucket times from this results folder, measure nothing")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    chosen = {"gpu_buckets": lambda: gpu_buckets(options.gpu_folder)} if options.gpu_folder else PARTS
    asked = tuple(chosen) if options.gpu_folder else tuple(options.only.split(","))
    if unknown := sorted(set(asked) - set(chosen)):
        sys.exit(f"--only {','.join(unknown)}: choose from {', '.join(PARTS)}.")
    for part in asked:
        print(f"measuring {part} ..", file=sys.stderr, flush=True)
        origin = {
            "measured": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
            "load": round(os.getloadavg()[0], 1),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        stored[part] = chosen[part]() | {"origin": origin}
        STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    print(f"{', '.join(asked)}: stored in {STORED}")


if __name__ == "__main__":
    main()
