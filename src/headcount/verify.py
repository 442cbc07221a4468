"""Do stored results reproduce? A random sample of cells is trained again and compared, descended ones from their stored
parents.

On the machine and with the versions and the back end that made them, cells reproduce to the last bit on a CPU: anything
else is different. Elsewhere, and on a GPU, where the order of a sum may change, rounding grows over thousands of steps;
there a result is close when it is within a factor of five of the stored one, or of the median of its stored seeds.
"""

import dataclasses
import enum
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .engine import HEADS_QUESTION, Executor, Sweep, run_sweep
from .errors import require
from .events import Events, quiet
from .keys import named_generator
from .store import Experiment, Outcome, Record, Store, json_text
from .store.weights import Weights
from .tasks import AbstractTask

CLOSE_FACTOR = 5.0
"""Two runs of 250 cells of Table 2 on one GPU differed by less than this in all but two, where a seed got stuck."""


ORIGIN = {"device": "unknown", "versions": "unknown", "backend": "reference"}
"""What of the provenance may change the last bits, and what a record without it was made by."""


class Agreement(enum.StrEnum):
    SAME = "same"
    CLOSE = "close"
    DIFFERENT = "different"


@dataclass(frozen=True, kw_only=True)
class Recheck:
    """A stored record, the one that training gave now, and how they agree."""

    stored: Record
    again: Record
    agreement: Agreement

    @property
    def moved(self) -> tuple[str, ...]:
        """What differs between the run that made the record and this one: device, versions, back end."""
        then, now = origin(self.stored), origin(self.again)
        return tuple(f"{name}: {then[name]} then, {now[name]} now" for name in ORIGIN if then[name] != now[name])

    @property
    def stored_backend(self) -> str | None:
        """The back end that made the stored record, where another one trained it now: "reference" or "fused"."""
        then, now = (origin(record)["backend"].split()[0] for record in (self.stored, self.again))
        return None if then == now else then


def origin(record: Record) -> dict[str, Any]:
    """Return what made a record."""
    return {name: record.provenance.get(name, unknown) for name, unknown in ORIGIN.items()}


def sample(records: Iterable[Record], count: int, seed: int) -> list[Record]:
    """Return `count` settled records drawn without replacement, all of them when there are fewer."""
    require(count >= 1, f"at least 1 cell must be verified, got {count}.", what="cells", given=count)
    settled = [record for record in records if record.outcome is not Outcome.FAILED]
    require(len(settled) > 0, "there is no finished cell to verify.")
    drawn = named_generator(seed, "verified cells").permutation(len(settled))[:count]
    return [settled[i] for i in sorted(drawn)]


def verify(
    records: Iterable[Record],
    chosen: Sequence[Record],
    task_of: Callable[[dict], AbstractTask],
    *,
    weights_of: Callable[[str], Weights],
    events: Events = quiet,
    stop: threading.Event | None = None,
    executor: Executor | None = None,
) -> list[Recheck]:
    """Train the cells of `chosen` again in a temporary folder, and compare; see `run_sweep` for `events` and the rest.

    Args:
        records: All stored records, for the other seeds of a chosen one.
        chosen: Those to be trained again.
        task_of: Gives the task of a stored spec.
        weights_of: Gives the stored weights of a cell by its key: a descended model is trained again from its parent.
    """
    with (
        tempfile.TemporaryDirectory(prefix="headcount-verify-") as folder,
        Store.open_for_writing(folder) as store,
    ):
        for sweep in sweeps_of(chosen, task_of):
            run_sweep(sweep, store, events=events, stop=stop, weights_of=weights_of, executor=executor)
        again = {record.cell.key: record for record in store.records()}
    return [_compare(record, again[record.cell.key], _siblings(record, records)) for record in chosen]


def sweeps_of(chosen: Sequence[Record], task_of: Callable[[dict], AbstractTask]) -> list[Sweep]:
    """Return the cells to be trained again, one sweep per task."""
    by_task: dict[str, list[Record]] = {}
    for record in chosen:
        by_task.setdefault(json_text(record.cell.task), []).append(record)
    return [_sweep(task_of(group[0].cell.task), group) for group in by_task.values()]


def _sweep(task: AbstractTask, records: list[Record]) -> Sweep:
    places = {record.cell.key: (record.cell.key,) for record in records}
    experiment = Experiment(name=task.name, question=HEADS_QUESTION, task=task.name, axes=("cell",), places=places)
    return Sweep(experiment=experiment, tasks=(task,), cells=tuple(record.cell for record in records))


def _siblings(record: Record, records: Iterable[Record]) -> list[float]:
    """Return the errors of all seeds of a record's model."""
    like = dataclasses.replace(record.cell, seed=0)
    return [
        other.error
        for other in records
        if other.outcome is Outcome.FINISHED and dataclasses.replace(other.cell, seed=0) == like
    ]


def _compare(stored: Record, again: Record, siblings: list[float]) -> Recheck:
    if (stored.outcome, stored.metrics, stored.curve) == (again.outcome, again.metrics, again.curve):
        agreement = Agreement.SAME
    elif stored.outcome is Outcome.FINISHED and again.outcome is Outcome.FINISHED:
        then, now = stored.error, again.error
        near = any(max(now, other) <= CLOSE_FACTOR * min(now, other) for other in (then, statistics.median(siblings)))
        repeatable = origin(stored) == origin(again) and str(origin(again)["device"]).startswith("CPU")
        agreement = Agreement.CLOSE if near and not repeatable else Agreement.DIFFERENT
    else:
        agreement = Agreement.DIFFERENT
    return Recheck(stored=stored, again=again, agreement=agreement)
