"""Training that takes no time."""

from headcount.engine import RunSummary
from headcount.models.base import HeadElimination
from headcount.store import Cell, Outcome

from . import fabricated


class Pretended:
    """Training that takes no time: `metrics` gives those of a cell by its coordinates. `sweeps` are those asked for,
    and `executors` what should train them.

    Trained models look as if they had `distinct` heads, and copies of them.
    """

    def __init__(self):
        self.sweeps, self.executors = [], []
        self.distinct = 4
        self.metrics = lambda at: {"nmse": fabricated.sharp(at), "final_nmse": fabricated.sharp(at), "baseline": 1.0}

    def run_sweep(self, sweep, store, *, command="", executor=None, on_commit=lambda records: None, **_):
        self.sweeps.append(sweep)
        self.executors.append(executor)
        experiment = store.begin(sweep.experiment, command)
        settled = store.settled_keys()
        left = fabricated.Sweep(sweep.experiment, tuple(cell for cell in sweep.cells if cell.key not in settled))
        records = fabricated.graded(left, self.metrics)
        store.commit(records)
        on_commit(records)
        return RunSummary(
            experiment=experiment,
            already_done=len(sweep.cells) - len(left.cells),
            outcomes={Outcome.FINISHED: len(left.cells)} if left.cells else {},
            seconds=0.0,
        )

    def elimination(self, cell: Cell, *_) -> HeadElimination:
        heads = cell.model["heads"]
        return HeadElimination(
            tuple(range(heads - 1)), tuple(1e-6 if left >= self.distinct else 0.5 for left in range(heads - 1, 0, -1))
        )

    @property
    def cells(self) -> list[Cell]:
        """The cells of all sweeps, in the order they were asked for."""
        return [cell for sweep in self.sweeps for cell in sweep.cells]

    @property
    def keys(self) -> list[str]:
        return [cell.key for cell in self.sweeps[-1].cells]

    @property
    def models(self) -> list[dict]:
        return [cell.model for cell in self.sweeps[-1].cells]
