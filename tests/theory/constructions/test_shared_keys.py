"""Theorem 2(1) with one set of keys and values: the same heads as those with their own, and what is refused."""

import jax
import numpy as np
import pytest

from headcount.tasks import max_plus_min, quadratic_basins
from headcount.theory import construct, construct_shared

from ...helpers.refusals import refused
from ...helpers.tolerance import assert_close, in_double


@pytest.mark.parametrize("head_dim", [None, 5])
@pytest.mark.slow
def test_it_answers_as_heads_with_their_own_keys_do(head_dim):
    task = quadratic_basins(length=6)
    own, shared = construct(task, 0.1), construct_shared(task, 0.1, head_dim=head_dim)
    assert shared.promised == own.promised
    assert shared.model.spec.kv_heads == 1
    assert shared.model.attention[0].key.shape[:2] == (1, head_dim or 3)
    tokens = np.random.default_rng(0).uniform(0, 1, (8, 6, 2))
    with jax.enable_x64(True):
        got, want = (jax.vmap(in_double(built.model))(tokens) for built in (shared, own))
    assert_close(got, want)


@pytest.mark.parametrize("head_dim", [1, 0])
def test_keys_too_narrow_for_every_score_are_refused(head_dim):
    with refused("head_dim", str(head_dim), "2"):
        construct_shared(max_plus_min(length=4), 0.1, head_dim=head_dim)
