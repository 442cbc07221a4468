"""Folders and tasks for commands, and training that takes no time."""

from pathlib import Path

import numpy as np
import pytest

from headcount.engine import RunSummary
from headcount.store import Outcome
from headcount.studies.base import Scale
from headcount.studies.registry import STUDIES

from ..helpers import fabricated


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """No command touches the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADCOUNT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("headcount.engine.run.program", lambda *_: pytest.fail("trained"))


@pytest.fixture
def broken_training(monkeypatch):
    def fail(*_):
        raise ValueError("no luck")

    monkeypatch.setattr("headcount.engine.run.program", fail)


class Pretended:
    """Training that takes no time: `metrics` gives those of a cell by its coordinates. `sweeps` are those asked for."""

    def __init__(self):
        self.sweeps = []
        self.metrics = lambda at: {"nmse": fabricated.sharp(at), "final_nmse": fabricated.sharp(at), "baseline": 1.0}

    def run_sweep(self, sweep, store, *, command="", **_):
        self.sweeps.append(sweep)
        experiment = store.begin(sweep.experiment, command)
        settled = store.settled_keys()
        left = fabricated.Sweep(sweep.experiment, tuple(cell for cell in sweep.cells if cell.key not in settled))
        store.commit(fabricated.graded(left, self.metrics))
        return RunSummary(
            experiment=experiment,
            already_done=len(sweep.cells) - len(left.cells),
            outcomes={Outcome.FINISHED: len(left.cells)} if left.cells else {},
            seconds=0.0,
        )

    @property
    def keys(self) -> list[str]:
        return [cell.key for cell in self.sweeps[-1].cells]

    @property
    def models(self) -> list[dict]:
        return [cell.model for cell in self.sweeps[-1].cells]


@pytest.fixture
def pretended(monkeypatch) -> Pretended:
    pretended = Pretended()
    monkeypatch.setattr("headcount.measuring.run_sweep", pretended.run_sweep)
    return pretended


@pytest.fixture
def own(tmp_path) -> Path:
    """A user's own experiment, one cell of which is missing."""
    made = fabricated.sweep()
    return fabricated.write(tmp_path / "results", fabricated.finished(made)[:-1], {"headcount measure own": made})


@pytest.fixture
def table5(tmp_path) -> Path:
    """A study, five of whose ten cells are there."""
    made = STUDIES["table5"].sweep(Scale.SMOKE)
    command = "headcount reproduce table5 --scale smoke"
    return fabricated.write(tmp_path / "table5", fabricated.finished(made)[:5], {command: made})


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """Data of all kinds, most of them bad, and a Python file of tasks."""
    where, generator = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    x, y = generator.normal(size=(120, 8, 2)), generator.normal(size=120)
    ragged = np.array([np.zeros((1 + i % 3, 2)) for i in range(120)], dtype=object)
    kinds = {
        "good": (x, y),
        "nan": (x, np.where(np.arange(120) == 7, np.nan, y)),
        "constant": (x, np.ones(120)),
        "few": (x[:9], y[:9]),
        "objects": (x.astype(object), y),
        "ragged": (ragged, y),
    }
    for name, (tokens, targets) in kinds.items():
        np.savez(where / f"{name}.npz", x=tokens, y=targets)
    (where / "mine.py").write_text(
        "import jax.numpy as jnp\nimport headcount as hc\n"
        "def task_of(function):\n    return hc.FunctionTask(function=function, length=8, dim=1, name='mine')\n"
        "def broken(tokens):\n    raise KeyError('my mistake')\n"
        "task, other = task_of(lambda tokens: jnp.max(tokens)), task_of(lambda tokens: jnp.min(tokens))\n"
        "constant = task_of(lambda tokens: jnp.ones(()))\n"
        "def mistaken():\n    return task_of(broken)\n"
    )
    return where
