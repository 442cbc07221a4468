"""What is asked of the kernels beside XLA's stream, as far as that can be seen without a GPU."""

import jax
import jax.numpy as jnp
import pytest

from headcount.backends import advance
from headcount.backends.advance import ModelSizes, Moving, Step

SIZES = ModelSizes(
    length=3, dim=2, code=5, hidden=7, heads=4, groups=2, rank=6, head_dim=8, outputs=1, positions="none", masks=False,
    beta=1.0,
)  # fmt: skip
STEP = Step(labels=False, clip=1.0, second_moment_decay=0.999, weight_decay=0.0)
MEMBERS, ROOM, BATCH, EXAMPLES, PARAMETERS = 3, 4, 5, 11, 9


class Library:
    """Says what it is asked."""

    def __init__(self):
        self.asked = []

    def headcount_kernels_gpu_work(self, members, batch, length):
        return members * batch * length

    def headcount_kernels_gpu_together(self, work):
        self.asked.append(work)

    def headcount_kernels_gpu_scratch(self, *sizes):
        self.asked.append(sizes)
        return 123


@pytest.fixture
def library(monkeypatch):
    kernels = Library()
    monkeypatch.setattr(advance, "_library", lambda: kernels)
    advance.scratch_floats.cache_clear()
    yield kernels
    advance.scratch_floats.cache_clear()


def test_the_work_of_all_calls_is_said_at_once(library):
    advance.share([(1, 2, 3), (4, 5, 6)])
    assert library.asked == [1 * 2 * 3 + 4 * 5 * 6]


def test_a_call_has_scratch_memory_for_its_members_and_keeps_the_shapes_of_what_moves(library):
    moving = Moving(*[jnp.zeros((MEMBERS, PARAMETERS))] * 3)
    whole = jnp.zeros(MEMBERS, jnp.int32)
    given = (moving, jnp.zeros(MEMBERS), whole, whole, jnp.int32(1), jnp.zeros((MEMBERS, ROOM)))
    given += (jnp.zeros((MEMBERS, ROOM, BATCH), jnp.int32), jnp.zeros((EXAMPLES, 3, 2)), jnp.zeros((EXAMPLES, 1)))
    result = jax.eval_shape(lambda *all_of_it: advance.advance_aside(*all_of_it, sizes=SIZES, step=STEP), *given)
    assert [each.shape for each in (*result.moving, result.totals)] == [(MEMBERS, PARAMETERS)] * 3 + [(MEMBERS,)]
    assert result.scratch.shape == (123,)
    assert library.asked == [(3, 2, 5, 7, 4, 2, 6, 8, 1, 0, MEMBERS, BATCH)]
