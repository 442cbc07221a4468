"""From a task to an answer: the sweep, the store and the analysis joined."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .analysis import (
    Answer,
    Bottleneck,
    ErrorTable,
    RankTable,
    answer_from_table,
    bottleneck,
    error_table,
    experiments,
    rank_table,
)
from .engine import RunSummary, Sweep, grid, run_sweep
from .models import AbstractSpec
from .store import Record, Store, TrainSpec
from .tasks import AnyTask


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What `measure` found: the answer, the errors it rests on, and how the run went.

    Of a sweep over heads and rank the answer is a `Bottleneck`, and the errors are a `RankTable`.
    """

    answer: Answer | Bottleneck
    table: ErrorTable | RankTable
    run: RunSummary
    records: tuple[Record, ...]

    def __str__(self) -> str:
        return self.answer.sentence


def measure(
    task: AnyTask,
    *,
    out: Path | str,
    heads: Sequence[int] = range(1, 7),
    ranks: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    seeds: int = 4,
    learning_rates: Sequence[float] | None = None,
    model: Callable[[int], AbstractSpec] | None = None,
    train: TrainSpec | None = None,
) -> Measurement:
    """How many heads `task` needs, by training every combination and keeping the results in the folder `out`.

    With several `ranks` the question is which of the two it is short of, heads or rank. Calling it again continues:
    what `out` holds is not trained again.
    """
    sweep = grid(
        task,
        heads=heads,
        ranks=ranks,
        lengths=lengths,
        seeds=range(seeds),
        learning_rates=learning_rates,
        model=model,
        train=train,
    )
    with Store.open_for_writing(Path(out)) as store:
        return measure_sweep(sweep, store)


def measure_sweep(
    sweep: Sweep,
    store: Store,
    *,
    command: str = "",
    on_steps: Callable[[int], None] = lambda model_steps: None,
    stop: threading.Event | None = None,
) -> Measurement:
    """Train what is missing of a sweep, and answer from the records of its cells."""
    run = run_sweep(sweep, store, command=command, on_steps=on_steps, stop=stop)
    wanted = {cell.key for cell in sweep.cells}
    records = tuple(record for record in store.records() if record.cell.key in wanted)
    if experiments(records)[0].is_map:
        errors = rank_table(records)
        return Measurement(answer=bottleneck(errors), table=errors, run=run, records=records)
    table = error_table(records)
    return Measurement(answer=answer_from_table(table), table=table, run=run, records=records)
