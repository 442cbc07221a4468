"""A sweep from start to end: what is stored, what is never trained twice, and what a failure costs."""

import contextlib
import sqlite3
import threading
from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._errors import InputError
from headcount.engine import Hardware, grid, hardware, plan_sweep, run, run_sweep
from headcount.engine.hardware import Sizes, member_bytes
from headcount.engine.run import checkpoint_steps
from headcount.engine.train import program
from headcount.models import ClassTokenSpec, EncoderSpec, from_arrays
from headcount.store import Outcome, Store, TrainSpec
from headcount.tasks import FarthestPoint, FunctionTask, NearestNeighbour, max_plus_min

TASK = max_plus_min(length=4)
TRAIN = TrainSpec(steps=30, batch=8, train_examples=40, validation_examples=20)
PRETEND_GPU = Hardware("gpu", "pretend", 1 << 30, 1, side_by_side=True)


def tiny(heads: int) -> ClassTokenSpec:
    return ClassTokenSpec(heads=heads, head_dim=2, hidden=4)


def sweep_of(*, heads=(1, 2), lengths=(4, 5), seeds=(0, 1), train=TRAIN, **others):
    return grid(TASK, heads=heads, lengths=lengths, seeds=seeds, model=tiny, train=train, **others)


FARTHEST = FarthestPoint(length=4, dim=3)
STREAM = replace(TRAIN, steps=12, train_examples=0)


def tiny_encoder(heads: int, **changes) -> EncoderSpec:
    return EncoderSpec(**({"heads": heads, "rank": 1, "width": 3, "hidden": 4} | changes))


def sweep_of_encoders():
    return grid(FARTHEST, heads=[1], ranks=[1, 3], seeds=[0, 1], model=tiny_encoder, train=STREAM)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def quickly():
    """For programs that run so shortly that compiling them is all they cost."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def trained(monkeypatch):
    """The keys of all cells that are really trained from here on, as often as they are."""
    keys, train = Counter(), run.BucketTrainer._train

    def counting(workshop, bucket):
        keys.update(cell.key for cell in bucket.cells)
        return train(workshop, bucket)

    monkeypatch.setattr(run.BucketTrainer, "_train", counting)
    return keys


def do(sweep, root, **options):
    with Store.open_for_writing(root) as store:
        return run_sweep(sweep, store, **options)


def records_in(root):
    with Store.open_for_reading(root) as store:
        return {record.cell.key: record for record in store.records()}


def rows_in(root):
    with contextlib.closing(sqlite3.connect(root / "results.sqlite")) as connection:
        return {row[0]: row for row in connection.execute("SELECT * FROM cells")}


def test_every_cell_is_stored_and_never_trained_again(root, trained):
    sweep = sweep_of()
    summary = do(sweep, root, command="the command")
    assert (summary.already_done, summary.outcomes, summary.failed) == (0, {Outcome.FINISHED: 8}, 0)
    found = records_in(root)
    assert found.keys() == {cell.key for cell in sweep.cells}
    for record in found.values():
        assert [step for step, _ in record.curve] == list(checkpoint_steps(TRAIN.steps))
        errors = [error for _, error in record.curve]
        assert record.metrics["nmse"] == min(errors)
        assert record.metrics["final_nmse"] == errors[-1]
        assert record.provenance["versions"] == run.versions()
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    trained.clear()
    again = do(sweep, root, command="the command")
    assert (again.already_done, again.outcomes, trained) == (8, {}, Counter())
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_more_seeds_train_the_new_cells_alone(root, trained):
    few, more = sweep_of(lengths=[4]), sweep_of(lengths=[4], seeds=(0, 1, 2))
    do(few, root)
    before = rows_in(root)
    trained.clear()
    summary = do(more, root)
    new = {cell.key for cell in more.cells} - {cell.key for cell in few.cells}
    assert trained == Counter(new)
    assert summary.already_done == 4
    after = rows_in(root)
    assert after.keys() == before.keys() | new
    assert {key: after[key] for key in before} == before


def test_a_diverged_cell_is_an_answer(root, trained):
    sweep = sweep_of(lengths=[4], heads=[2], learning_rates=[0.01, 1e30])
    summary = do(sweep, root)
    assert summary.outcomes == {Outcome.FINISHED: 2, Outcome.DIVERGED: 2}
    for record in records_in(root).values():
        wild = record.cell.train.learning_rate > 1
        assert record.outcome is (Outcome.DIVERGED if wild else Outcome.FINISHED)
        assert bool(record.metrics) != wild
        assert ("stopped being finite" in record.message) == wild
        assert all(np.isfinite(error) for _, error in record.curve)
        assert (root / "weights" / f"{record.cell.key}.safetensors").exists() != wild
    trained.clear()
    assert do(sweep, root).already_done == 4
    assert not trained


def test_a_bucket_that_fails_costs_no_other_and_is_tried_again(root, trained, monkeypatch):
    def broken(shape, *others):
        if shape.length == 5:
            raise ValueError("no luck\nwith many more lines")
        return program(shape, *others)

    sweep = sweep_of()
    with monkeypatch.context() as patched:
        patched.setattr(run, "program", broken)
        summary = do(sweep, root)
    assert summary.outcomes == {Outcome.FINISHED: 4, Outcome.FAILED: 4}
    assert summary.failed == 4
    failed = {key for key, record in records_in(root).items() if record.outcome is Outcome.FAILED}
    assert failed == {cell.key for cell in sweep.cells if cell.length == 5}
    assert {records_in(root)[key].message for key in failed} == {"ValueError: no luck"}
    before = rows_in(root)
    trained.clear()
    assert do(sweep, root).outcomes == {Outcome.FINISHED: 4}
    assert trained == Counter(failed)
    after = rows_in(root)
    assert {key: after[key] for key in before if key not in failed} == {
        key: before[key] for key in before if key not in failed
    }
    assert {record.outcome for record in records_in(root).values()} == {Outcome.FINISHED}


def test_a_task_that_nothing_can_be_learned_from_is_refused(root):
    constant = FunctionTask(function=lambda tokens: jnp.ones(()), length=4, dim=1)
    with pytest.raises(InputError, match="all equal to 1"):
        do(grid(constant, heads=[1], seeds=[0, 1], model=tiny, train=TRAIN), root)
    assert records_in(root) == {}


def test_a_bucket_that_memory_cannot_hold_is_split(root, monkeypatch):
    sizes, train = [], run.BucketTrainer._train

    def short_of_memory(workshop, bucket):
        sizes.append(len(bucket.cells))
        if len(bucket.cells) > 1:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return train(workshop, bucket)

    sweep = sweep_of(lengths=[4])
    with monkeypatch.context() as patched:
        patched.setattr(run.BucketTrainer, "_train", short_of_memory)
        assert do(sweep, root).outcomes == {Outcome.FINISHED: 4}
    assert sorted(sizes) == [1, 1, 1, 1, 2, 2, 4]
    do(sweep, root.with_name("at once"))
    errors = [{key: record.metrics for key, record in records_in(r).items()} for r in (root, root.with_name("at once"))]
    assert errors[0] == errors[1]


def test_a_single_model_that_memory_cannot_hold_has_failed(root, monkeypatch):
    def short_of_memory(workshop, bucket):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    monkeypatch.setattr(run.BucketTrainer, "_train", short_of_memory)
    assert do(sweep_of(), root).outcomes == {Outcome.FAILED: 8}
    assert {r.message for r in records_in(root).values()} == {
        "RuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes."
    }


def test_an_interrupt_keeps_the_buckets_that_were_done(root, trained):
    done = []

    def interrupted(model_steps):
        done.append(model_steps)
        if sum(done) > 4 * TRAIN.steps:
            raise KeyboardInterrupt

    sweep = sweep_of()
    one_worker = replace(hardware(), workers=1)
    with pytest.raises(KeyboardInterrupt):
        do(sweep, root, plan=plan_sweep(sweep, machine=one_worker), on_steps=interrupted)
    kept = rows_in(root)
    assert len(kept) == 4
    trained.clear()
    assert do(sweep, root).already_done == 4
    assert trained == Counter({cell.key for cell in sweep.cells} - kept.keys())
    assert {key: rows_in(root)[key] for key in kept} == kept


def test_what_breaks_because_the_run_stops_is_no_failure(root, monkeypatch):
    stop = threading.Event()

    def killed(*_):
        stop.set()
        raise RuntimeError("the compiler was killed")

    monkeypatch.setattr(run, "program", killed)
    with pytest.raises(KeyboardInterrupt):
        do(sweep_of(), root, stop=stop)
    assert records_in(root) == {}


def test_on_a_gpu_one_bucket_trains_while_others_are_in_hand(root, quickly, monkeypatch):
    training = threading.Lock()

    def alone(shape, *sizes):
        parts = program(shape, *sizes)

        def advance(states, members, data, steps):
            if steps == 0:
                return parts.advance(states, members, data, steps)
            assert training.acquire(blocking=False)
            try:
                return parts.advance(states, members, data, steps)
            finally:
                training.release()

        return parts._replace(advance=advance)

    monkeypatch.setattr(run, "program", alone)
    sweep = sweep_of(lengths=(4, 5, 6))
    summary = do(sweep, root, plan=plan_sweep(sweep, machine=replace(PRETEND_GPU, workers=3)))
    assert summary.outcomes == {Outcome.FINISHED: len(sweep.cells)}
    assert all(record.outcome is Outcome.FINISHED for record in records_in(root).values())


def test_an_interrupt_keeps_a_bucket_that_ends_while_the_run_stops(root, monkeypatch):
    def ending_late(workshop, bucket):
        if bucket.shape.length == 4:
            raise KeyboardInterrupt
        assert workshop.stop.wait(60)
        return run.Trained(tuple(run._failure(cell, "ended late") for cell in bucket.cells), {})

    monkeypatch.setattr(run.BucketTrainer, "_train", ending_late)
    sweep = sweep_of()
    with pytest.raises(KeyboardInterrupt):
        do(sweep, root, plan=plan_sweep(sweep, machine=replace(hardware(), workers=2)))
    assert {(r.cell.length, r.message) for r in records_in(root).values()} == {(5, "ended late")}


def test_every_model_step_is_counted(root):
    done = []
    do(sweep_of(), root, on_steps=done.append)
    assert sum(done) == 8 * TRAIN.steps == plan_sweep(sweep_of()).model_steps


def encoder_for_the_query(heads: int) -> EncoderSpec:
    return tiny_encoder(heads, answered_at="query")


@pytest.mark.parametrize(
    ("task", "heads", "model", "train"),
    [
        (TASK, [1, 2], tiny, TRAIN),
        (TASK, [2], tiny, STREAM),
        (FARTHEST, [1], tiny_encoder, STREAM),
        (NearestNeighbour(length=4, dim=3), [1], encoder_for_the_query, replace(STREAM, train_examples=40)),
    ],
    ids=["stored", "stream", "encoder on a stream", "encoder on stored examples"],
)
def test_stored_weights_give_the_stored_error_in_raw_units(root, quickly, task, heads, model, train):
    do(grid(task, heads=heads, seeds=[0, 1], model=model, train=train), root)
    assert {record.outcome for record in records_in(root).values()} == {Outcome.FINISHED}
    data = task.dataset(40, train.validation_examples, train.data_seed)
    tokens, truth = np.asarray(data.validation_tokens), np.asarray(data.validation_targets)
    answer_all = jax.jit(lambda model, tokens: jax.vmap(model)(tokens))
    with Store.open_for_reading(root) as store:
        for record in store.records():
            model = from_arrays(record.cell.model, store.weights(record.cell.key))
            answers = answer_all(model, tokens)
            error = np.mean((answers - truth) ** 2) / np.mean(np.var(truth, axis=0))
            assert error == pytest.approx(record.metrics["final_nmse"], rel=1e-3)


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


def test_a_stream_is_the_same_stream_again(root, quickly):
    other = root.with_name("again")
    do(sweep_of_encoders(), root)
    do(sweep_of_encoders(), other)
    assert everything_in(root) == everything_in(other)
    assert len({repr(found) for found in everything_in(root).values()}) == 4, "seeds and ranks differ"


def test_a_sweep_of_encoders_interrupted_and_continued_is_the_one_that_was_not(root, quickly, trained):
    sweep, whole, done = sweep_of_encoders(), root.with_name("whole"), []

    def interrupted(model_steps):
        done.append(model_steps)
        if sum(done) > 2 * STREAM.steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(sweep, root, plan=plan_sweep(sweep, machine=replace(hardware(), workers=1)), on_steps=interrupted)
    kept = rows_in(root)
    assert len(kept) == 2
    trained.clear()
    assert do(sweep, root).already_done == 2
    assert trained == Counter({cell.key for cell in sweep.cells} - kept.keys())
    do(sweep, whole)
    assert everything_in(root) == everything_in(whole)


def test_the_counts_of_a_plan_add_up():
    sweep = sweep_of(heads=[1, 2, 5], seeds=range(3))
    settled = [cell.key for cell in sweep.cells if cell.seed == 0 or (cell.model.heads == 5 and cell.length == 4)]
    plan = plan_sweep(sweep, [*settled, "a key of another sweep"])
    left = [cell for bucket in plan.buckets for cell in bucket.cells]
    assert (plan.cells, plan.settled) == (18, len(settled))
    assert {cell.key for cell in left} == {cell.key for cell in sweep.cells} - set(settled)
    assert plan.settled + len(left) == plan.cells
    assert plan.model_steps == len(left) * TRAIN.steps
    assert plan.programs == len({(bucket.shape, len(bucket.cells)) for bucket in plan.buckets}) == 3
    assert plan.seconds > 0
    nothing = plan_sweep(sweep, [cell.key for cell in sweep.cells])
    assert (nothing.settled, nothing.buckets, nothing.model_steps, nothing.seconds) == (18, (), 0, 0)


def test_memory_grows_with_members_side_by_side():
    few, many = (plan_sweep(sweep_of(seeds=range(count)), machine=PRETEND_GPU) for count in (2, 20))
    data = 8 * (40 + 20) * (4 + 5)
    assert few.bytes > data
    assert many.bytes - data == 10 * (few.bytes - data)


def test_a_small_memory_splits_buckets_without_losing_a_cell():
    sweep = sweep_of(heads=[1, 6], seeds=range(10))
    one = member_bytes(plan_sweep(sweep, machine=PRETEND_GPU).buckets[0].shape, Sizes(1, 1))
    small = replace(PRETEND_GPU, memory=8 * one)
    plan = plan_sweep(sweep, machine=small)
    cells = [cell.key for bucket in plan.buckets for cell in bucket.cells]
    assert Counter(cells) == Counter(cell.key for cell in sweep.cells)
    assert len(plan.buckets) > len(plan_sweep(sweep, machine=PRETEND_GPU).buckets)
    for bucket in plan.buckets:
        assert len(bucket.cells) * member_bytes(bucket.shape, Sizes(1, 1)) <= small.memory / 2
    none = plan_sweep(sweep, machine=replace(PRETEND_GPU, memory=1))
    assert {len(bucket.cells) for bucket in none.buckets} == {1}
