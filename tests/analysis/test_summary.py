"""Records become tables without losing or inventing anything."""

import dataclasses

import numpy as np
import pytest

from headcount.analysis import error_table, experiments, summaries
from headcount.models import ModelSpec
from headcount.store import Cell, Outcome, Record, TrainSpec


def record(heads=1, length=8, seed=0, rate=0.01, nmse=0.5, outcome=Outcome.FINISHED, task="a") -> Record:
    cell = Cell(
        task={"task": task},
        length=length,
        model=ModelSpec(heads=heads),
        train=TrainSpec(learning_rate=rate),
        seed=seed,
    )
    metrics = {"nmse": nmse} if outcome is Outcome.FINISHED else {}
    return Record(cell=cell, outcome=outcome, metrics=metrics, curve=(), provenance={})


def test_every_error_is_in_its_place():
    records = [record(h, t, s, nmse=h + t / 100 + s / 1000) for h in (1, 3) for t in (8, 16) for s in (0, 1)]
    table = error_table(reversed(records))
    assert (table.heads, table.lengths, table.seeds) == ((1, 3), (8, 16), (0, 1))
    assert table.nmse[1, 0, 1] == pytest.approx(3 + 0.08 + 0.001)
    assert table.best[0].tolist() == pytest.approx([1.08, 1.16])


def test_a_seed_counts_with_its_best_learning_rate():
    table = error_table([record(rate=0.01, nmse=0.5), record(rate=0.003, nmse=0.2)])
    assert table.nmse.tolist() == [[[0.2]]]


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, Outcome.FAILED])
def test_a_lost_cell_is_nan_and_counted(outcome):
    table = error_table([record(seed=0, nmse=0.3), record(seed=1, outcome=outcome)])
    assert np.isnan(table.nmse[0, 0, 1])
    (summary,) = summaries(table)
    assert (summary.minimum, summary.median, summary.seeds, summary.lost) == (0.3, 0.3, 1, 1)


def test_a_cell_without_any_seed_has_no_statistics():
    (summary,) = summaries(error_table([record(outcome=Outcome.DIVERGED)]))
    assert np.isnan(summary.minimum)
    assert summary.lost == 1


def test_experiments_are_told_apart_by_everything_but_heads_length_seed_and_rate():
    one = [record(1), record(2, length=16), record(2, seed=3, rate=0.1)]
    other = [
        record(task="b"),
        dataclasses.replace(one[0], cell=dataclasses.replace(one[0].cell, train=TrainSpec(steps=7))),
    ]
    found = experiments(one + other)
    assert [len(experiment.records) for experiment in found] == [3, 1, 1]
    assert found[0].settings["task"] == {"task": "a"}
