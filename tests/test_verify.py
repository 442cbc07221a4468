"""Stored cells come out again; what was tampered with, or made elsewhere, is told apart."""

import dataclasses
import json

import numpy as np
import pytest

from headcount.engine import run_sweep, spec_of
from headcount.errors import InputError
from headcount.store import Outcome, Store
from headcount.tasks import (
    BiasedNearestNeighbour,
    FarthestPoint,
    FunctionTask,
    InContextRegression,
    NearestNeighbour,
    max_plus_min,
    sum_of_maxima,
)
from headcount.tasks.find import find_task, task_of_spec
from headcount.verify import Agreement, Recheck, sample, sweeps_of, verify

from .helpers.compiling import compile_quickly  # noqa: F401
from .helpers.refusals import refused
from .helpers.sweeps import swept


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Two heads, two seeds of a task that has a name."""
    with Store.open_for_writing(tmp_path_factory.mktemp("results")) as store:
        run_sweep(swept(length=[4]), store)
        return store.records()


def with_error(record, nmse):
    return dataclasses.replace(record, metrics=record.metrics | {"nmse": nmse})


def test_an_untouched_store_comes_out_the_same(records):
    found = verify(records, records, task_of_spec, weights_of=pytest.fail)
    assert {recheck.agreement for recheck in found} == {Agreement.SAME}
    assert [recheck.moved for recheck in found] == [()] * 4


def elsewhere(record, nmse):
    """The record as another machine might have made it, with another error."""
    return dataclasses.replace(with_error(record, nmse), provenance={"device": "another machine"})


@pytest.mark.parametrize(
    ("factor", "agreement"), [(4.5, Agreement.CLOSE), (100.0, Agreement.DIFFERENT), (0.01, Agreement.DIFFERENT)]
)
def test_an_error_from_elsewhere_is_close_within_a_factor_of_five_and_different_beyond(records, factor, agreement):
    changed = elsewhere(records[0], factor * records[0].metrics["nmse"])
    (recheck,) = verify([changed], [changed], task_of_spec, weights_of=pytest.fail)
    assert recheck.agreement is agreement


def test_a_seed_that_was_stuck_elsewhere_and_comes_through_here_is_close(records):
    first, second = (record for record in records if spec_of(record.cell).heads == 1)
    stuck = elsewhere(first, 1e4 * first.metrics["nmse"])
    third = dataclasses.replace(second, cell=dataclasses.replace(second.cell, seed=2))
    (recheck,) = verify([stuck, second, third], [stuck], task_of_spec, weights_of=pytest.fail)
    assert recheck.agreement is Agreement.CLOSE


def test_on_the_same_processor_and_versions_only_equal_is_the_same(records):
    changed = with_error(records[0], records[0].metrics["nmse"] * (1 + 1e-6))
    (recheck,) = verify([changed], [changed], task_of_spec, weights_of=pytest.fail)
    assert recheck.agreement is Agreement.DIFFERENT


def test_a_finished_cell_that_had_diverged_is_different(records):
    diverged = dataclasses.replace(records[0], outcome=Outcome.DIVERGED, metrics={}, curve=())
    (recheck,) = verify([diverged], [diverged], task_of_spec, weights_of=pytest.fail)
    assert recheck.agreement is Agreement.DIFFERENT


def test_another_machine_and_other_versions_are_named(records):
    then = {"device": "another machine", "versions": {"jax": "0.0.1"}}
    recheck = Recheck(
        stored=dataclasses.replace(records[0], provenance=then), again=records[0], agreement=Agreement.SAME
    )
    device, versions = recheck.moved
    assert device.startswith("device: another machine then")
    assert "0.0.1" in versions


def test_another_back_end_is_named_and_its_result_is_close(records):
    changed = with_error(records[0], 1.01 * records[0].metrics["nmse"])
    fused = dataclasses.replace(changed, provenance=changed.provenance | {"backend": "fused 0.1.0, AVX2"})
    (recheck,) = verify([fused], [fused], task_of_spec, weights_of=pytest.fail)
    assert recheck.agreement is Agreement.CLOSE
    assert recheck.moved == ("backend: fused 0.1.0, AVX2 then, reference now",)
    assert recheck.stored_backend == "fused"


def test_a_record_without_a_back_end_is_the_references(records):
    origin = {name: value for name, value in records[0].provenance.items() if name != "backend"}
    older = dataclasses.replace(records[0], provenance=origin)
    (recheck,) = verify([older], [older], task_of_spec, weights_of=pytest.fail)
    assert (recheck.agreement, recheck.moved, recheck.stored_backend) == (Agreement.SAME, (), None)


def test_a_sample_is_drawn_by_its_seed_without_repeats_and_without_failures(records):
    assert sample(records, 2, 0) == sample(records, 2, 0)
    assert len({tuple(r.cell.key for r in sample(records, 2, seed)) for seed in range(20)}) > 1
    assert sample(records, 99, 0) == records
    failed = [dataclasses.replace(record, outcome=Outcome.FAILED) for record in records]
    assert sample([*failed[:3], records[3]], 4, 0) == [records[3]]
    with pytest.raises(InputError):
        sample(failed, 1, 0)
    with refused("0"):
        sample(records, 0, 0)


def test_every_task_of_the_sample_is_one_sweep(records):
    other = [dataclasses.replace(r, cell=dataclasses.replace(r.cell, task={"task": "other"})) for r in records[:2]]
    tasks = {"max-plus-min": max_plus_min(), "other": sum_of_maxima()}
    one, two = sweeps_of([*records, *other], lambda spec: tasks[spec["task"]])
    assert [cell.key for cell in one.cells] == [record.cell.key for record in records]
    assert [cell.key for cell in two.cells] == [record.cell.key for record in other]
    assert one.experiment.places.keys() == {cell.key for cell in one.cells}


def stored(task) -> dict:
    """A task's spec as a results folder gives it back."""
    return json.loads(json.dumps(task.spec()))


@pytest.mark.parametrize(
    "task",
    [
        max_plus_min(windows=[(0, 0.5), (0.5, 1)]),
        sum_of_maxima(intrinsic_dim=2, directions="gaussian", dim=3),
        NearestNeighbour(length=4, dim=3),
        NearestNeighbour(length=4, dim=3, points="orthogonal"),
        NearestNeighbour(length=5, dim=3, points="doubled"),
        FarthestPoint(length=4, dim=3),
        FarthestPoint(length=2, dim=3, points="orthogonal"),
        BiasedNearestNeighbour(dim=3, terms=5),
        InContextRegression(inputs=2, noise=0.5, length=4),
    ],
)
def test_a_preset_is_made_again_from_its_spec(task):
    again = task_of_spec(stored(task))
    assert stored(again) == stored(task)
    one, other = (each.examples(20, 20).train.targets for each in (task, again.at(task.length)))
    assert np.array_equal(one, other)


def test_a_task_of_ones_own_must_be_named_and_must_be_the_same(tmp_path):
    task = FunctionTask(function=lambda tokens: tokens.sum(), length=8, dim=2, name="mine")
    spec = stored(task)
    with refused("mine"):
        task_of_spec(spec)
    file = tmp_path / "mine.py"
    file.write_text(
        "from headcount import FunctionTask\n"
        'right = FunctionTask(function=lambda tokens: tokens.sum(), length=8, dim=2, name="mine")\n'
        'wrong = FunctionTask(function=lambda tokens: tokens.max(), length=8, dim=2, name="mine")\n'
    )
    assert stored(task_of_spec(spec, f"{file}:right")) == spec
    with refused("code", "measure"):
        task_of_spec(spec, f"{file}:wrong")


def test_arrays_are_made_again_with_the_settings_they_were_measured_with(tmp_path):
    path = tmp_path / "data.npz"
    generator = np.random.default_rng(0)
    np.savez(path, x=generator.standard_normal((120, 8, 2)), y=generator.standard_normal(120))
    spec = stored(find_task(path, shorter="leading", validation_fraction=0.4))
    assert stored(task_of_spec(spec, str(path))) == spec


def test_arrays_with_labels_are_made_again_with_labels(tmp_path):
    path, generator = tmp_path / "data.npz", np.random.default_rng(0)
    np.savez(path, x=generator.standard_normal((120, 8, 2)), y=generator.integers(0, 3, 120))
    with_labels, without = (stored(find_task(path, labels=labels)) for labels in (True, False))
    again = task_of_spec(with_labels, str(path))
    assert stored(again) == with_labels
    assert again.classes == (0, 1, 2)
    assert stored(task_of_spec(without, str(path))) == without


def test_a_table_is_read_again_with_its_columns(tmp_path):
    path, generator = tmp_path / "data.csv", np.random.default_rng(0)
    rows = [f"{row // 3},{token},{row // 3 % 7}" for row, token in enumerate(generator.integers(0, 5, 360))]
    path.write_text("\n".join(["who,token,kind", *rows]))
    options = {"targets": "kind", "sequence": "who"}
    spec = stored(find_task(path, **options, vocabulary=9, answered_at="query", labels=True))
    assert stored(task_of_spec(spec, str(path), **options)) == spec
    with refused("data.csv", "targets"):
        task_of_spec(spec, str(path))
