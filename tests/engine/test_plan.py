"""What a sweep will take, before it is trained."""

import sys
from collections import Counter
from dataclasses import replace

import pytest

from headcount.engine import plan as plan_module
from headcount.engine import plan_sweep, spec_of
from headcount.engine.hardware import CPU_MEMBERS, Hardware, TaskShape, hardware, kernel_sizes, max_members, needs
from headcount.engine.plan import PROCESS_BYTES, PROGRAM_BYTES, task_shape
from headcount.models import ClassTokenSpec
from headcount.tasks import Choice, Classification, sum_of_maxima

from ..helpers.sweeps import CPU, GPU, TASK, TRAIN, Numbers, class_token, labelled_model, swept


def bytes_of(shape, task: TaskShape, machine: Hardware = GPU, members: int = 1) -> int:
    """Of one bucket that has its turn while the other workers have as large ones in hand."""
    held, turn = needs(shape, task, members, machine)
    return machine.workers * held + turn


def test_the_counts_of_a_plan_add_up():
    sweep = swept(heads=[1, 2, 5], seed=range(3))
    settled = [cell.key for cell in sweep.cells if cell.seed == 0 or (spec_of(cell).heads == 5 and cell.length == 4)]
    plan = plan_sweep(sweep, [*settled, "a key of another sweep"], CPU)
    left = [cell for bucket in plan.buckets for cell in bucket.cells]
    assert (plan.cells, plan.settled) == (18, len(settled))
    assert {cell.key for cell in left} == {cell.key for cell in sweep.cells} - set(settled)
    assert plan.settled + len(left) == plan.cells
    assert plan.model_steps == len(left) * TRAIN.steps
    assert plan.programs == len({(bucket.shape, len(bucket.cells)) for bucket in plan.buckets}) == 3
    assert plan.seconds > 0
    nothing = plan_sweep(sweep, [cell.key for cell in sweep.cells], CPU)
    assert (nothing.settled, nothing.buckets, nothing.model_steps, nothing.seconds) == (18, (), 0, 0)


def test_a_cell_stays_in_its_bucket_whatever_is_settled():
    """So an interrupted sweep and its continuation share their programs."""
    sweep = swept(seed=range(20))
    whole = {cell.key: i for i, bucket in enumerate(plan_sweep(sweep, machine=CPU).buckets) for cell in bucket.cells}
    settled = [cell.key for cell in sweep.cells if cell.seed % 3 == 0]
    for bucket in plan_sweep(sweep, settled, CPU).buckets:
        assert len({whole[cell.key] for cell in bucket.cells}) == 1
        assert len(bucket.cells) <= CPU_MEMBERS


def test_a_task_is_asked_once_per_length_however_many_buckets_there_are(monkeypatch):
    asked = []
    monkeypatch.setattr(plan_module, "task_shape", lambda task: asked.append(task.length) or task_shape(task))
    assert len(plan_sweep(swept(heads=[1, 2, 5], seed=range(40)), machine=CPU).buckets) > 10
    assert sorted(asked) == [4, 5]


def test_memory_grows_with_members_side_by_side():
    few, many = (plan_sweep(swept(seed=range(count)), machine=GPU) for count in (2, 20))
    data = (
        8 * (TRAIN.train_examples + TRAIN.validation_examples) * (4 + 1 + 5 + 1)
    )  # tokens of one number, and a target
    assert few.bytes > data
    assert many.bytes - data == 10 * (few.bytes - data)


def test_examples_that_do_not_exist_need_no_memory():
    """Of labelled data at most all examples are kept, however many are asked for; a generated task draws them."""
    numbers = Numbers("candidates")

    def grows(task, model) -> bool:
        few, many = (
            plan_sweep(swept(task, model, train=replace(TRAIN, train_examples=count), length=[4]), machine=CPU).bytes
            for count in (10**5, 10**6)
        )
        return many > few

    assert not grows(numbers, labelled_model(numbers))
    assert grows(TASK, class_token)


def test_a_process_that_compiles_needs_memory_and_one_that_has_nothing_to_do_none():
    sweep = swept(heads=[1], length=[4])
    assert plan_sweep(sweep, machine=CPU).bytes > PROCESS_BYTES + PROGRAM_BYTES
    assert plan_sweep(sweep, [cell.key for cell in sweep.cells], CPU).bytes == 0


def test_a_small_memory_splits_buckets_without_losing_a_cell():
    sweep = swept(heads=[1, 6], seed=range(10))
    one = bytes_of(plan_sweep(sweep, machine=GPU).buckets[0].shape, task_shape(TASK))
    small = replace(GPU, memory=8 * one)
    plan = plan_sweep(sweep, machine=small)
    cells = [cell.key for bucket in plan.buckets for cell in bucket.cells]
    assert Counter(cells) == Counter(cell.key for cell in sweep.cells)
    assert len(plan.buckets) > len(plan_sweep(sweep, machine=GPU).buckets)
    for bucket in plan.buckets:
        assert bytes_of(bucket.shape, task_shape(TASK), members=len(bucket.cells)) <= small.memory / 2
    none = plan_sweep(sweep, machine=replace(GPU, memory=1))
    assert {len(bucket.cells) for bucket in none.buckets} == {1}


def test_several_sequences_per_example_cost_more():
    pairs, candidates = (Numbers(layout) for layout in ("pairs", "candidates"))
    assert task_shape(TASK) == TaskShape(1, 1, 1, TASK.length, TASK.objective)
    assert task_shape(pairs) == TaskShape(3, 1, 4, 3, pairs.objective)
    assert task_shape(candidates)[2:4] == candidates.sequences
    (bucket,) = plan_sweep(swept(pairs, labelled_model(pairs), heads=[1], length=[4], seed=[0]), machine=GPU).buckets
    several, one = (TaskShape(3, 1, sequences, 3, pairs.objective) for sequences in (4, 1))
    assert bytes_of(bucket.shape, several) > bytes_of(bucket.shape, one)


def test_this_machine_is_described():
    machine = hardware()
    assert machine.platform == "cpu"
    assert not machine.side_by_side
    assert machine.memory > 0
    assert machine.workers >= 1
    assert machine.description.startswith("CPU")


def test_compiling_takes_at_least_as_long_as_one_program_and_is_shared_by_workers():
    sweep = swept(heads=[1, 5], length=[4, 5, 6])
    alone, many = (plan_sweep(sweep, machine=replace(GPU, workers=workers)) for workers in (1, 64))
    assert alone.programs == many.programs == 6
    assert alone.compile_seconds == 6 * many.compile_seconds > 0
    assert alone.seconds - many.seconds == pytest.approx(alone.compile_seconds - many.compile_seconds)
    assert 0 < alone.compiled_seconds < alone.seconds


def test_the_fused_back_end_holds_thousands_of_members_and_reuses_programs():
    """It keeps no activations, and an empty slot costs nothing."""
    train = replace(TRAIN, train_examples=8000, validation_examples=2000, batch=256)
    sweep = swept(
        sum_of_maxima(), lambda heads: ClassTokenSpec(heads=heads), train, heads=[4], length=[128], seed=range(3000)
    )
    card = replace(GPU, memory=100 << 30, workers=16, backend="fused")
    (bucket,) = plan_sweep(sweep, machine=card).buckets
    assert bucket.slots == 3000
    assert plan_sweep(sweep, machine=card).bytes < card.memory / 2
    assert len(plan_sweep(sweep, machine=replace(card, backend="reference")).buckets) > 1
    (few,) = plan_sweep(replace(sweep, cells=sweep.cells[:40]), machine=card).buckets
    assert (len(few.cells), few.slots) == (40, 128)


@pytest.mark.parametrize(("steps", "empty"), [(10, 5), (10**9, 0)])
def test_empty_slots_are_trained_in_vain_only_where_that_is_cheaper_than_compiling(steps, empty):
    (bucket,) = plan_sweep(
        swept(train=replace(TRAIN, steps=steps, warmup=0), heads=[1], length=[4], seed=range(3)), machine=GPU
    ).buckets
    assert bucket.slots - len(bucket.cells) == empty


@pytest.mark.parametrize("backend", ["reference", "fused"])
def test_as_many_members_as_fit_beside_the_other_workers_buckets(monkeypatch, backend):
    """Kernels train the buckets of all workers at the same time, each with scratch memory of its own."""
    monkeypatch.setattr(
        sys.modules["headcount.engine.hardware"],
        "_scratch_floats",
        lambda model, members, batch: 10_000 * min(members, 64),
    )
    card = replace(GPU, memory=48 << 20, workers=8, backend=backend)
    sweep = swept(heads=[2], length=[4], seed=range(700))
    shape = plan_sweep(sweep, machine=card).buckets[0].shape
    most = max_members(shape, task_shape(TASK), card)
    assert 1 < most < 700
    assert bytes_of(shape, task_shape(TASK), card, most) <= card.memory / 2
    assert bytes_of(shape, task_shape(TASK), card, most + 1) > card.memory / 2
    data = plan_sweep(sweep, [cell.key for cell in sweep.cells[1:]], card).bytes - sum(
        needs(shape, task_shape(TASK), 1, card)
    )
    assert 0 < plan_sweep(sweep, machine=card).bytes - data <= card.memory / 2


def test_kernels_take_whole_steps_only_where_they_can():
    shape = plan_sweep(swept(heads=[2], length=[4]), machine=CPU).buckets[0].shape

    def taken(shape=shape, backend="fused", **changes):
        return kernel_sizes(shape, task_shape(TASK)._replace(**changes), backend) is not None

    assert taken()
    assert taken(objective=Classification())
    assert not taken(objective=Choice(4))
    assert not taken(backend="reference")
    assert not taken(sequences=2)
    assert not taken(replace(shape, model=class_token(2, layers=2)))
    for train in ({"train_examples": 0}, {"precision": "bfloat16"}):
        assert not taken(replace(shape, train=replace(shape.train, **train)))
