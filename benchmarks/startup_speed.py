"""CPU seconds until light verbs are done, next to `python -c pass` and `import jax` on the same machine.

python benchmarks/startup_speed.py
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from headcount.store import Cell, Experiment, Outcome, Record, Store, TrainSpec

TURNS = 7
TARGETS = {"headcount --version": 0.3, "headcount --help": 0.3, "headcount status": 0.5}
RUN = "import sys; from headcount.cli import main; sys.argv = ['headcount', *sys.argv[1:]]; main()"


def cpu_seconds(*command: str) -> float:
    """User and system time of a process and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def some_results(folder: Path, cells: int = 1000) -> None:
    """A folder of as many finished cells."""
    train = TrainSpec()
    made = [Cell(task={"task": "own"}, length=8, model={"kind": "any"}, train=train, seed=i) for i in range(cells)]
    experiment = Experiment(
        name="own",
        question="How many attention heads does this task need?",
        task="own",
        axes=("heads", "length", "seed"),
        places={cell.key: (1, 8, cell.seed) for cell in made},
        settings={"task": {"task": "own"}, "model": {}, "train": {}},
    )
    records = [
        Record(cell=cell, outcome=Outcome.FINISHED, metrics={"nmse": 0.1}, curve=(), provenance={}) for cell in made
    ]
    with Store.open_for_writing(folder) as store:
        store.begin(experiment, "headcount measure own")
        store.commit(records)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        some_results(Path(folder))
        commands = {
            "python -c pass": ("-c", "pass"),
            "import jax": ("-c", "import jax"),
            "headcount --version": ("-c", RUN, "--version"),
            "headcount --help": ("-c", RUN, "--help"),
            "headcount status": ("-c", RUN, "status", folder),
            "headcount show": ("-c", RUN, "show", folder),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(TURNS):  # in turn, so that a busy moment hits all of them
            for name, arguments in commands.items():
                times[name].append(cpu_seconds(sys.executable, *arguments))
    for name, seconds in times.items():
        target = f"  target {TARGETS[name]:g} s" if name in TARGETS else ""
        print(f"{name:22s} {statistics.median(seconds):.3f} s of CPU, median of {TURNS}{target}")


if __name__ == "__main__":
    main()
