"""What the live page costs: time to its first content, training with 20 viewers, and a folder of 10,000 cells.

python benchmarks/live_page.py [--turns 5] [--only first|viewers|cells]

Turns with and without viewers alternate, and the ratio is that of their medians: it means something on a machine that
does nothing else. CPU seconds of training, server and viewers are printed next to it; they mean something on any. The
20 viewers are connections of one process, which reads every event and fetches the page when its results change; a
browser draws them as well, at its own cost.
"""

import argparse
import asyncio
import contextlib
import gzip
import importlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx

import headcount
from headcount.events import Event
from headcount.serve.folder import Folder
from headcount.serve.pages import rendered
from headcount.store import Cell, Experiment, Outcome, Record, Store, TrainSpec
from headcount.store.live import LiveWriter

VIEWERS = 20
CELLS = {"heads": range(1, 11), "length": range(8, 88, 8), "seed": range(100)}
BARS = {"first content": 2.0, "slowdown": 1.05}


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of `headcount serve`, in a process of its own."""
    command = [sys.executable, "-m", "headcount", "serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def seconds_to_first_content(folder: Path) -> float:
    """From starting the server to the first event that shows how far a run is."""
    Store.open_for_writing(folder).close()
    with LiveWriter(folder, "headcount measure mine") as writer:
        writer(Event("round", "12 heads", total=3200))
        writer(Event("steps", done=160))
        time.sleep(0.6)
        began = time.monotonic()
        with served(folder) as address, httpx.stream("GET", f"{address}events/", timeout=30) as response:
            for line in response.iter_lines():
                if "160 of 3,200 model-steps" in line:
                    return time.monotonic() - began
    raise AssertionError("no content came")


class Turn(NamedTuple):
    """Seconds of a sweep, and CPU seconds of training, of the viewers and of the server."""

    wall: float
    training: float
    viewers: float = 0.0
    server: float = 0.0


def train(folder: Path) -> Turn:
    """A sweep of some buckets, as `headcount measure` trains it; programs are compiled before."""
    import headcount as hc
    from headcount.engine import run_sweep

    axes = {"heads": [1, 2, 3, 4, 6], "length": [8, 16], "seed": list(range(4))}
    spec = hc.TrainSpec(steps=3000, train_examples=4000, validation_examples=500)
    plan = hc.sweep(
        hc.find_task("sum-of-maxima"), axes=axes, model=lambda heads: hc.ClassTokenSpec(heads=heads), train=spec
    )
    with Store.open_for_writing(folder) as store, LiveWriter(folder) as live:
        live(Event("round", total=120_000))
        began, cpu = time.monotonic(), time.process_time()
        run_sweep(plan, store, events=live)
        return Turn(time.monotonic() - began, time.process_time() - cpu)


def children_cpu() -> float:
    """CPU seconds of the processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train_with_viewers(folder: Path) -> Turn:
    """The same, while 20 viewers follow the folder."""
    Store.open_for_writing(folder).close()
    before = children_cpu()
    with served(folder) as address:
        viewers = subprocess.Popen([sys.executable, __file__, "--follow", address], stdout=subprocess.PIPE, text=True)
        assert viewers.stdout is not None
        viewers.stdout.readline()  # all are connected
        try:
            turn = train(folder)
        finally:
            viewers.terminate()
            viewers.wait()
        between = children_cpu()
    return turn._replace(viewers=between - before, server=children_cpu() - between)


async def follow(address: str) -> None:
    """What 20 open pages do, without drawing."""
    events = 0

    async def viewer(client: httpx.AsyncClient) -> None:
        nonlocal events
        async with client.stream("GET", f"{address}events/") as response:
            name = ""
            async for line in response.aiter_lines():
                name = line.removeprefix("event: ") if line.startswith("event: ") else name
                if line.startswith("data: "):
                    events += 1
                    if name == "report":
                        await client.get(f"{address}folder/")

    limits = httpx.Limits(max_connections=4 * VIEWERS)
    async with httpx.AsyncClient(timeout=None, limits=limits) as client:
        tasks = [asyncio.create_task(viewer(client)) for _ in range(VIEWERS)]
        while events < VIEWERS:
            await asyncio.sleep(0.05)
        print("connected", flush=True)
        await asyncio.gather(*tasks)


def slowdown(root: Path, turns: int) -> tuple[list[Turn], list[Turn]]:
    """The turns without viewers, and with."""
    train(root / "warm")
    alone, watched = [], []
    for turn in range(turns):
        alone.append(train(root / f"alone{turn}"))
        watched.append(train_with_viewers(root / f"watched{turn}"))
        print(f"turn {turn + 1}: {alone[-1]}, {watched[-1]}", flush=True)
    return alone, watched


def many_cells(folder: Path) -> None:
    """A folder of 10,000 finished cells with curves."""
    cells, places = [], {}
    for heads in CELLS["heads"]:
        for length in CELLS["length"]:
            for seed in CELLS["seed"]:
                cell = Cell(task={"task": "own"}, length=length, model={"heads": heads}, train=TrainSpec(), seed=seed)
                cells.append(cell)
                places[cell.key] = (heads, length, seed)
    experiment = Experiment(
        name="own",
        question="How many attention heads does this task need?",
        task="own",
        axes=tuple(CELLS),
        places=places,
        settings={"task": {"task": "own"}, "model": {}, "train": {}},
    )

    def record(cell: Cell) -> Record:
        error = (1e-4 if cell.model["heads"] > 3 else 2e-2) * (1 + 0.01 * cell.seed)
        curve = tuple((150 * i, error * (1 + 100 * 0.5**i)) for i in range(21))
        metrics = {"nmse": error, "final_nmse": error, "train_nmse": error, "baseline": 1.0, "baseline_noise": 0.01}
        return Record(cell=cell, outcome=Outcome.FINISHED, metrics=metrics, curve=curve, provenance={"seconds": 1.0})

    with Store.open_for_writing(folder) as store:
        store.begin(experiment, "headcount measure own")
        store.commit(map(record, cells))


def page_of_many_cells(folder: Path) -> dict[str, float]:
    """Seconds to read and to draw 10,000 cells, and the bytes of the page."""
    many_cells(folder)
    importlib.import_module("headcount.report.render.html")  # takes a second, once
    shown = Folder(folder, "")
    began = time.monotonic()
    shown.look()
    looked = time.monotonic()
    shown.update(draw=False)
    read = time.monotonic()
    shown.update(draw=True)
    html = rendered("folder", base="/token", root="results", title="results", events="", folder=shown, now="")
    drawn = time.monotonic()
    assets = sum(
        path.stat().st_size
        for room in ("report", "serve")
        for path in Path(headcount.__file__).parent.joinpath(room, "assets").iterdir()
    )
    times = {"look_seconds": looked - began, "read_seconds": read - looked, "draw_seconds": drawn - read}
    sizes = {"page_bytes": len(html.encode()), "assets_bytes": assets}
    return times | sizes | {"page_gzip_bytes": len(gzip.compress(html.encode()))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", choices=["first", "viewers", "cells"])
    parser.add_argument("--follow", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.follow:
        with contextlib.suppress(httpx.HTTPError, KeyboardInterrupt):
            asyncio.run(follow(given.follow))
        return
    wanted = [given.only] if given.only else ["first", "cells", "viewers"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if "first" in wanted:
            times = [seconds_to_first_content(root / f"first{turn}") for turn in range(given.turns)]
            median, bar = statistics.median(times), BARS["first content"]
            print(f"first content after starting the server: {median:.2f} s, median of {given.turns}; bar {bar:g} s")
        if "cells" in wanted:
            print("10,000 cells: " + json.dumps(page_of_many_cells(root / "many"), indent=1))
        if "viewers" in wanted:
            alone, watched = slowdown(root, given.turns)
            for name in ("wall", "training"):
                medians = [statistics.median(getattr(turn, name) for turn in turns) for turns in (alone, watched)]
                bar = f"; bar {BARS['slowdown']:g}" if name == "wall" else ""
                print(f"{name} seconds alone {medians[0]:.2f}, with {VIEWERS} viewers {medians[1]:.2f}: "
                      f"ratio {medians[1] / medians[0]:.3f}{bar}")  # fmt: skip


if __name__ == "__main__":
    main()
