"""Records become tables without losing or inventing anything."""

import dataclasses

import numpy as np
import pytest

from headcount.analysis import error_table, experiments, summaries
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.store import Cell, Outcome, Record, TrainSpec


def record(heads=1, length=8, seed=0, rate=0.01, nmse=0.5, outcome=Outcome.FINISHED, task="a") -> Record:
    cell = Cell(
        task={"task": task},
        length=length,
        model=ClassTokenSpec(heads=heads),
        train=TrainSpec(learning_rate=rate),
        seed=seed,
    )
    metrics = {"nmse": nmse} if outcome is Outcome.FINISHED else {}
    return Record(cell=cell, outcome=outcome, metrics=metrics, curve=(), provenance={})


def test_every_error_is_in_its_place():
    records = [record(h, t, s, nmse=h + t / 100 + s / 1000) for h in (1, 3) for t in (8, 16) for s in (0, 1)]
    table = error_table(reversed(records))
    assert (table.heads, table.lengths, table.seeds) == ((1, 3), (8, 16), (0, 1))
    assert table.errors[1, 0, 1] == pytest.approx(3 + 0.08 + 0.001)
    assert table.best[0].tolist() == pytest.approx([1.08, 1.16])


def test_a_seed_counts_with_its_best_learning_rate():
    table = error_table([record(rate=0.01, nmse=0.5), record(rate=0.003, nmse=0.2)])
    assert table.errors.tolist() == [[[0.2]]]


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, Outcome.FAILED])
def test_a_lost_cell_is_nan_and_counted(outcome):
    table = error_table([record(seed=0, nmse=0.3), record(seed=1, outcome=outcome)])
    assert np.isnan(table.errors[0, 0, 1])
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


def of(*models) -> list[Record]:
    """A record of each model."""
    return [
        Record(
            cell=Cell(task={"task": "a"}, length=8, model=model, train=TrainSpec(), seed=0),
            outcome=Outcome.FINISHED,
            metrics={"nmse": 0.5},
            curve=(),
            provenance={},
        )
        for model in models
    ]


def encoders(heads=(1, 2, 4), ranks=(1, 2, 4), **others) -> list[EncoderSpec]:
    return [EncoderSpec(heads=h, rank=r, width=8, **others) for h in heads for r in ranks]


def class_tokens(heads=(1, 2, 4), **others) -> list[ClassTokenSpec]:
    return [ClassTokenSpec(heads=h, **others) for h in heads]


MAPS = {
    "encoders whose head_dim follows rank": (encoders(), {"heads", "rank", "head_dim"}),
    "encoders of one head_dim": (encoders(head_dim=8), {"heads", "rank"}),
    "encoders of one head_dim, full rank among them": (encoders(ranks=(1, 8), head_dim=8), {"heads", "rank"}),
    "class tokens of one head_dim": (
        [ClassTokenSpec(heads=h, head_dim=8, rank=r) for h in (1, 2) for r in (2, 8)],
        {"heads", "rank"},
    ),
    "class tokens of one total": (
        [ClassTokenSpec(heads=h, head_dim=8 // h, rank=r) for h in (1, 2) for r in (2, 4)],
        {"heads", "rank", "head_dim"},
    ),
    "one head count at several ranks": (encoders(heads=(2,)), {"heads", "rank", "head_dim"}),
    "a map with holes": (encoders()[:-1], {"heads", "rank", "head_dim"}),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_sweep_over_heads_and_rank_is_one_experiment(name):
    models, left_out = MAPS[name]
    (found,) = experiments(of(*models))
    assert found.is_map
    assert found.ranks == tuple(sorted({model.rank for model in models}))
    assert len(found.records) == len(models)
    assert set(found.settings["model"]) == set(models[0].as_dict()) - left_out - {"rank"}


LINES = {
    "two head_dims": (class_tokens(head_dim=8) + class_tokens(head_dim=16), [3, 3]),
    "two totals": ([ClassTokenSpec.with_total_dim(t, heads=h) for t in (8, 16) for h in (1, 2)], [2, 1, 1]),
    "one total": ([ClassTokenSpec.with_total_dim(16, heads=h) for h in (1, 2, 4)], [3]),
    "one rank of its own": (class_tokens(rank=4), [3]),
    "two ranks at two head_dims": (class_tokens(head_dim=8, rank=4) + class_tokens(head_dim=16, rank=8), [3, 3]),
    "encoders of one rank": (encoders(ranks=(2,)), [3]),
    "encoders of one total": ([EncoderSpec.with_total_dim(8, heads=h, width=8) for h in (1, 2, 4)], [3]),
    "encoders of one total and head_dim": (
        [EncoderSpec.with_total_dim(8, heads=h, width=8, head_dim=8) for h in (1, 2, 4)],
        [3],
    ),
    "an encoder": (encoders((1,), (1,)), [1]),
}


@pytest.mark.parametrize("name", LINES)
def test_sweeps_over_heads_alone_stay_apart(name):
    models, sizes = LINES[name]
    found = experiments(of(*models))
    assert [len(experiment.records) for experiment in found] == sizes
    assert not any(experiment.is_map for experiment in found)


def test_a_model_of_full_rank_and_full_head_dim_is_in_both_maps():
    tied, full = encoders((1, 2), (1, 8)), encoders((1, 2), (1, 8), head_dim=8)
    found = experiments(of(*dict.fromkeys(tied + full)))
    assert [(one.is_map, len(one.records), one.settings["model"].get("head_dim")) for one in found] == [
        (True, 4, 8),
        (True, 4, None),
    ]


def test_two_maps_at_two_head_dims_are_two():
    found = experiments(of(*encoders(head_dim=2), *encoders(head_dim=4)))
    assert [(one.is_map, len(one.records)) for one in found] == [(True, 9), (True, 9)]


def test_maps_of_other_tasks_and_depths_stay_apart():
    found = experiments(of(*encoders(), *encoders(layers=2)))
    assert [len(experiment.records) for experiment in found] == [9, 9]
