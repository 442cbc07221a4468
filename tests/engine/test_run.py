"""A sweep from start to end: what is stored, what is never trained twice, and what a failure costs."""

import contextlib
import functools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.engine import plan_sweep, run_sweep, spec_of, trainer, versions
from headcount.engine.records import checkpoint_steps, failure
from headcount.engine.train import program
from headcount.errors import InputError, StoreError
from headcount.models import from_arrays
from headcount.store import Outcome, Store
from headcount.tasks import FunctionTask, NearestNeighbour

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.hearing import hearing
from ..helpers.sweeps import CPU, FARTHEST, GPU, STREAM, TASK, TRAIN, class_token, encoder, swept

NEAREST = NearestNeighbour(length=4, dim=3)


def sweep_of_encoders():
    return swept(FARTHEST, encoder, STREAM, heads=[1], rank=[1, 3], length=[4])


@pytest.fixture
def root(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def trained(monkeypatch):
    """The keys of all cells that are really trained from here on, as often as they are."""
    keys, train = Counter(), trainer.BucketTrainer._train

    def counting(trainer, bucket, backend):
        keys.update(cell.key for cell in bucket.cells)
        return train(trainer, bucket, backend)

    monkeypatch.setattr(trainer.BucketTrainer, "_train", counting)
    return keys


def do(sweep, root, machine=CPU, **options):
    with Store.open_for_writing(root) as store:
        return run_sweep(sweep, store, plan=plan_sweep(sweep, store.settled_keys(), machine), **options)


def records_in(root):
    with Store.open_for_reading(root) as store:
        return {record.cell.key: record for record in store.records()}


def rows_in(root):
    with contextlib.closing(sqlite3.connect(root / "results.sqlite")) as connection:
        return {row[0]: row for row in connection.execute("SELECT key, * FROM cells")}


def files_in(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def everything_in(root):
    """What training decides: outcomes, errors, curves, and every weight."""
    with Store.open_for_reading(root) as store:
        return {
            record.cell.key: (
                record.outcome,
                record.metrics,
                record.curve,
                {name: array.tobytes() for name, array in store.weights(record.cell.key).items()},
            )
            for record in store.records()
        }


def after(model_steps: int, then):
    """An `on_steps` that raises once so many model-steps are done."""
    done = []

    def on_steps(count):
        done.append(count)
        if sum(done) > model_steps:
            raise then

    return on_steps


def test_every_cell_is_stored_and_never_trained_again(root, trained):
    sweep, done = swept(), []
    summary = do(sweep, root, command="the command", events=hearing("steps", done.append))
    assert (summary.already_done, summary.outcomes, summary.failed) == (0, {Outcome.FINISHED: 8}, 0)
    assert summary.experiment == sweep.experiment
    assert sum(done) == 8 * TRAIN.steps == plan_sweep(sweep, machine=CPU).model_steps
    stored = records_in(root)
    assert stored.keys() == {cell.key for cell in sweep.cells}
    for record in stored.values():
        errors = [error for _, error in record.curve]
        assert [step for step, _ in record.curve] == list(checkpoint_steps(TRAIN.steps))
        assert set(record.metrics) == {"nmse", "final_nmse", "train_nmse", "baseline", "baseline_noise"}
        assert (record.metrics["nmse"], record.metrics["final_nmse"]) == (min(errors), errors[-1])
        assert record.metrics["baseline"] == 1
        assert record.provenance["versions"] == versions()
    with Store.open_for_reading(root) as store:
        assert store.experiments() == [sweep.experiment]
        (progress,) = store.progress()
        assert (progress.cells, progress.done, progress.runs[0][0]) == (8, 8, "the command")
    before = files_in(root)
    trained.clear()
    again = do(sweep, root, command="the command")
    assert (again.already_done, again.outcomes, trained) == (8, {}, Counter())
    assert files_in(root) == before


def test_more_seeds_train_the_new_cells_alone_and_extend_the_experiment(root, trained):
    few, more = swept(length=[4]), swept(length=[4], seed=(0, 1, 2, 3))
    do(few, root)
    before = rows_in(root)
    trained.clear()
    summary = do(more, root)
    new = {cell.key for cell in more.cells} - {cell.key for cell in few.cells}
    assert trained == Counter(new)
    assert summary.already_done == 4
    stored = rows_in(root)
    assert stored.keys() == before.keys() | new
    assert {key: stored[key] for key in before} == before
    with Store.open_for_reading(root) as store:
        assert store.experiments() == [more.experiment]


def test_a_diverged_cell_is_an_answer(root, trained):
    sweep = swept(length=[4], heads=[2], learning_rate=[0.01, 1e30])
    assert do(sweep, root).outcomes == {Outcome.FINISHED: 2, Outcome.DIVERGED: 2}
    for record in records_in(root).values():
        wild = record.cell.train.learning_rate > 1
        assert record.outcome is (Outcome.DIVERGED if wild else Outcome.FINISHED)
        assert bool(record.metrics) != wild
        assert bool(record.message) == wild
        assert all(np.isfinite(error) for _, error in record.curve)
        missing = pytest.raises(StoreError, match="no stored weights") if wild else contextlib.nullcontext()
        with Store.open_for_reading(root) as store, missing:
            store.weights(record.cell.key)
    trained.clear()
    assert do(sweep, root).already_done == 4
    assert not trained


def test_a_bucket_that_fails_costs_no_other_and_is_tried_again(root, trained, monkeypatch):
    def broken(shape, sizes, *others):
        if sizes.tokens == 5:
            raise ValueError("no luck\nwith many more lines")
        return program(shape, sizes, *others)

    sweep = swept()
    with monkeypatch.context() as patched:
        patched.setattr(trainer, "program", broken)
        summary = do(sweep, root)
    assert (summary.outcomes, summary.failed) == ({Outcome.FINISHED: 4, Outcome.FAILED: 4}, 4)
    failed = {key for key, record in records_in(root).items() if record.outcome is Outcome.FAILED}
    assert failed == {cell.key for cell in sweep.cells if cell.length == 5}
    assert {records_in(root)[key].message for key in failed} == {"ValueError: no luck"}
    before = rows_in(root)
    trained.clear()
    assert do(sweep, root).outcomes == {Outcome.FINISHED: 4}
    assert trained == Counter(failed)
    stored = rows_in(root)
    assert all(stored[key] == before[key] for key in before.keys() - failed)
    assert {record.outcome for record in records_in(root).values()} == {Outcome.FINISHED}


def test_a_task_that_nothing_can_be_learned_from_is_refused_before_anything_is_stored(root):
    constant = FunctionTask(function=lambda tokens: jnp.ones(()), length=4, dim=1)
    with pytest.raises(InputError, match="equal to 1"):
        do(swept(constant, length=[4]), root)
    with Store.open_for_reading(root) as store:
        assert (store.records(), store.experiments()) == ([], [])


@pytest.mark.parametrize("error", [RuntimeError, jax.errors.JaxRuntimeError], ids=["of JAX", "of a kernel"])
def test_a_bucket_that_memory_cannot_hold_is_split(root, monkeypatch, error):
    sizes, train = [], trainer.BucketTrainer._train

    def short_of_memory(trainer, bucket, backend):
        sizes.append(len(bucket.cells))
        if len(bucket.cells) > 2:
            raise error("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return train(trainer, bucket, backend)

    sweep = swept(length=[4])
    with monkeypatch.context() as patched:
        patched.setattr(trainer.BucketTrainer, "_train", short_of_memory)
        assert do(sweep, root).outcomes == {Outcome.FINISHED: 4}
    assert sorted(sizes) == [2, 2, 4]
    do(sweep, root.with_name("at once"))
    assert everything_in(root) == everything_in(root.with_name("at once"))


def test_a_single_model_that_memory_cannot_hold_has_failed(root, monkeypatch):
    sizes, message = [], "RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes."

    def short_of_memory(trainer, bucket, backend):
        sizes.append(len(bucket.cells))
        raise RuntimeError(message)

    monkeypatch.setattr(trainer.BucketTrainer, "_train", short_of_memory)
    assert do(swept(length=[4]), root).outcomes == {Outcome.FAILED: 4}
    assert sorted(sizes) == [1, 1, 1, 1, 2, 2, 4]
    assert {record.message for record in records_in(root).values()} == {f"RuntimeError: {message}"}


# Stops.


@pytest.mark.parametrize(
    "make", [pytest.param(swept, id="stored"), pytest.param(sweep_of_encoders, id="stream", marks=pytest.mark.slow)]
)
def test_a_sweep_interrupted_and_continued_is_the_one_that_was_not(root, trained, make):
    sweep, whole = make(), root.with_name("whole")
    half = len(sweep.cells) // 2
    with pytest.raises(KeyboardInterrupt):
        do(sweep, root, events=hearing("steps", after(half * TRAIN.steps, KeyboardInterrupt)))
    kept = rows_in(root)
    assert len(kept) == half
    trained.clear()
    assert do(sweep, root).already_done == half
    assert trained == Counter({cell.key for cell in sweep.cells} - kept.keys())
    assert {key: rows_in(root)[key] for key in kept} == kept
    do(sweep, whole)
    assert everything_in(root) == everything_in(whole)
    assert len({repr(each) for each in everything_in(root).values()}) == len(sweep.cells), "all differ"


@pytest.mark.slow
def test_a_process_killed_in_the_middle_is_continued_to_the_same_bytes(root):
    """kill -9 while the second of two buckets trains: the first is kept, and nothing tells the two runs apart."""
    script = (
        "import os, signal, sys\n"
        "from tests.helpers.hearing import hearing\n"
        "from tests.engine.test_run import do\nfrom tests.helpers.sweeps import swept\n"
        "total = []\n"
        "def on_steps(count):\n    total.append(count)\n    sum(total) > 16 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "do(swept(), sys.argv[1], command='typed', events=hearing('steps', on_steps))"
    )
    environment = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # as this module compiles
    folder = Path(__file__).parents[2]
    process = subprocess.run([sys.executable, "-c", script, root], cwd=folder, env=environment, check=False)
    assert process.returncode == -signal.SIGKILL
    kept = rows_in(root)
    assert len(kept) == 4
    with Store.open_for_reading(root) as store:
        assert store.experiments() == [swept().experiment], "what was asked for is known before it is done"
        assert [(progress.cells, progress.done) for progress in store.progress()] == [(8, 4)]
    assert do(swept(), root).already_done == 4
    assert {key: rows_in(root)[key] for key in kept} == kept
    do(swept(), root.with_name("whole"))
    assert everything_in(root) == everything_in(root.with_name("whole"))


def test_a_stop_that_is_set_ends_the_run_at_its_next_checkpoint(root):
    stop, done = threading.Event(), []

    def on_steps(count):
        done.append(count)
        stop.set()

    with pytest.raises(KeyboardInterrupt):
        do(swept(), root, events=hearing("steps", on_steps), stop=stop)
    assert len(done) == 1
    assert records_in(root) == {}


def test_what_breaks_because_the_run_stops_is_no_failure(root, monkeypatch):
    stop = threading.Event()

    def killed(*_):
        stop.set()
        raise RuntimeError("the compiler was killed")

    monkeypatch.setattr(trainer, "program", killed)
    with pytest.raises(KeyboardInterrupt):
        do(swept(), root, stop=stop)
    assert records_in(root) == {}


def test_an_interrupt_keeps_a_bucket_that_ends_while_the_run_stops(root, monkeypatch):
    def ending_late(self, bucket, backend):
        if bucket.shape.length == 4:
            raise KeyboardInterrupt
        assert self.job.stop.wait(60)
        return trainer.Trained(tuple(failure(cell, "ended late") for cell in bucket.cells), {})

    monkeypatch.setattr(trainer.BucketTrainer, "_train", ending_late)
    with pytest.raises(KeyboardInterrupt):
        do(swept(), root, replace(CPU, workers=2))
    assert {(r.cell.length, r.message) for r in records_in(root).values()} == {(5, "ended late")}


def test_a_folder_that_stops_taking_results_ends_the_run(root, monkeypatch):
    def full(*_):
        raise StoreError("full")

    monkeypatch.setattr(Store, "commit", full)
    with pytest.raises(StoreError, match="full"):
        do(swept(length=[4]), root)
    assert records_in(root) == {}


def test_on_a_gpu_one_bucket_trains_while_others_are_in_hand(root, monkeypatch):
    training = threading.Lock()

    @functools.cache
    def alone(*shape):
        parts = replace(program(*shape))  # one of its own, whose method is not another test's
        usual = parts.advance

        def advance(*arguments):
            assert training.acquire(blocking=False)
            try:
                return usual(*arguments)
            finally:
                training.release()

        parts.__dict__["advance"] = advance
        return parts

    monkeypatch.setattr(trainer, "program", alone)
    sweep = swept(length=[4], seed=range(3))
    machine = replace(GPU, memory=1 << 13, workers=2)  # one model of 8,028 bytes at a time
    assert len(plan_sweep(sweep, machine=machine).buckets) == len(sweep.cells)
    summary = do(sweep, root, machine)
    assert summary.outcomes == {Outcome.FINISHED: len(sweep.cells)}, records_in(root)


@pytest.mark.parametrize(
    ("task", "model", "train", "heads"),
    [
        (TASK, class_token, TRAIN, 2),
        pytest.param(TASK, class_token, STREAM, 2, marks=pytest.mark.slow),
        pytest.param(FARTHEST, encoder, STREAM, 1, marks=pytest.mark.slow),
        pytest.param(NEAREST, lambda heads: encoder(heads, answered_at="query"), TRAIN, 2, marks=pytest.mark.slow),
    ],
    ids=["stored", "stream", "encoder on a stream", "encoder on stored examples"],
)
def test_stored_weights_give_the_stored_error_in_raw_units(root, task, model, train, heads):
    do(swept(task, model, train, heads=[heads], length=[4]), root)
    tokens, truth = map(np.asarray, task.examples(24, train.validation_examples, train.data_seed).validation)
    answer_all = jax.jit(lambda model, tokens: jax.vmap(model)(tokens))
    with Store.open_for_reading(root) as store:
        for record in store.records():
            assert record.outcome is Outcome.FINISHED
            answers = answer_all(from_arrays(spec_of(record.cell), store.weights(record.cell.key)), tokens)
            error = np.mean((answers - truth) ** 2) / np.mean(np.var(truth, axis=0))
            assert error == pytest.approx(record.metrics["final_nmse"], rel=1e-3)
