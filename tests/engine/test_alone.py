"""On a CPU a cell's numbers are its own to the last bit, whoever is trained beside it.

Compiled as for a user: what the compiler would do to a bucket of one is the point.
"""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from headcount.engine import grid, plan_sweep, run_sweep
from headcount.engine.hardware import Hardware
from headcount.engine.labelled import LABELLED_TRAIN, labelled_encoder
from headcount.engine.train import sequential_map
from headcount.store import Store
from headcount.tasks import ImageTask

from ..tasks.labelled import some_images
from ..tolerance import assert_trees_equal

CPU = Hardware("cpu", "pretend CPU", 2**33, 1, side_by_side=False)
TRAIN = replace(LABELLED_TRAIN, steps=20, batch=16, validation_examples=40)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_members_take_turns_in_a_loop_that_no_compiler_unrolls(count):
    members = {"weight": jnp.arange(3.0 * count).reshape(count, 3)}
    begun = jnp.ones(count, bool)

    def one(member):
        return {"sum": jnp.sum(member["weight"]), "twice": 2 * member["weight"]}

    compiled = jax.jit(functools.partial(sequential_map, one)).lower(members, begun).compile()
    assert " while(" in compiled.as_text()
    assert_trees_equal(compiled(members, begun), jax.lax.map(one, members))


@pytest.mark.slow  # only models as deep as the published ones showed it, and those take long to compile
def test_images_learned_alone_and_beside_another_seed(tmp_path):
    task = ImageTask(some_images())

    def first_of(seeds: int):
        sweep = grid(task, heads=[2], seeds=range(seeds), model=lambda h: labelled_encoder(task.form, h), train=TRAIN)
        with Store.open_for_writing(tmp_path / f"{seeds}") as store:
            run_sweep(sweep, store, plan=plan_sweep(sweep, machine=CPU))
            (record,) = [record for record in store.records() if record.cell.seed == 0]
        return record.metrics, record.curve

    assert first_of(1) == first_of(2)
