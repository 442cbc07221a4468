"""The simulated cluster against closed forms, under the dispatch of a real run."""

import math
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headcount.engine.hardware import Hardware

CORE = Hardware("cpu", "one core", 1 << 32, 1, side_by_side=False)
GPU = Hardware("gpu", "a GPU", 1 << 37, 16, side_by_side=True)


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks" / "cluster")


def run(seconds, workers, machine=CORE, programs=1, **costs):
    from virtual import Costs, simulate, timed

    buckets = timed(seconds, programs=programs)
    return simulate(buckets, workers, costs=Costs(**costs), machine=machine, per_node=8)


PHASES = (Phase.explicit, Phase.generate)
times = st.lists(st.floats(0.1, 5.0), min_size=1, max_size=30)


@settings(max_examples=15, deadline=None, phases=PHASES)
@given(times)
def test_one_worker_takes_the_sum(seconds):
    ended = run(seconds, 1)
    assert math.isclose(ended.seconds, sum(seconds), rel_tol=1e-9)
    assert ended.buckets == len(seconds)


@settings(max_examples=25, deadline=None, phases=PHASES)
@given(times, st.integers(1, 12), st.sampled_from([CORE, GPU]))
def test_workers_take_between_the_lower_and_the_list_scheduling_bound(seconds, workers, machine):
    """Graham's bound holds for a bucket that waits in a queue, not for one that a worker has in hand already; and where
    no worker waits for the program of a neighbour."""
    ended = run(seconds, workers, machine, programs=len(seconds))
    least, longest = sum(seconds) / workers, max(seconds)
    assert ended.seconds >= max(least, longest) - 1e-9
    if machine is CORE:
        assert ended.seconds <= least + longest * (1 - 1 / workers) + 1e-9


def test_the_writer_saturates_at_one_bucket_per_commit():
    """Below that only the last buckets wait for their commits: a worker has its next bucket before."""
    saturated, idle = (run([1.0] * 400, workers, programs=400, commit=0.05) for workers in (100, 10))
    assert saturated.seconds == pytest.approx(1.0 + 400 * 0.05)
    assert idle.seconds == pytest.approx(400 / 10 + 10 * 0.05)


@pytest.mark.parametrize("programs", [1, 10])
def test_no_gpu_has_more_in_hand_than_its_share(programs):
    """A GPU may have 16 buckets in hand; as many buckets as GPUs take as long as one, and the news of its program."""
    assert run([1.0] * 10, 10, GPU, programs).seconds <= 2.5


def test_compiling_is_paid_once_per_node_and_program_then_read():
    ended = run([10.0] * 8, 1, programs=2, compile=3.0, read=1.0)
    assert ended.seconds == pytest.approx(80.0 + 2 * 3.0)
    with_start = run([10.0] * 8, 1, programs=2, compile=3.0, startup=5.0)
    assert with_start.seconds == pytest.approx(91.0)


@pytest.mark.parametrize("node_lost", [False, True])
def test_deaths_cost_what_memoryless_restarts_cost(node_lost):
    """A bucket of s seconds takes M (exp(s / M) - 1) seconds on average where workers live M seconds on average."""
    seconds, mtbf = 10.0, 20.0
    ended = run([seconds] * 800, 20, worker_mtbf=mtbf, node_lost=node_lost)
    assert ended.buckets == 800
    assert ended.failed == 0
    spent = ended.useful + ended.wasted
    assert spent / 800 == pytest.approx(mtbf * math.expm1(seconds / mtbf), rel=0.1)


def test_a_bucket_that_no_worker_survives_is_given_up():
    ended = run([100.0], 2, worker_mtbf=1.0)
    assert (ended.buckets, ended.failed) == (1, 1)
