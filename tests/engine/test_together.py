"""Threads that train at the same time: who is advanced with whom, and what a failure costs the others."""

import contextlib
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.backends.advance import Aside, Moving
from headcount.engine import together
from headcount.engine.buckets import shape_of
from headcount.engine.data import PreparedExamples, StoredTokens
from headcount.engine.plan import task_shape
from headcount.engine.steps import Member, TrainState
from headcount.engine.together import StepsRequest, Together
from headcount.engine.train import program
from headcount.engine.whole_steps import WholeSteps
from headcount.store import TrainSpec

from ..helpers.sweeps import TASK, class_token, swept

PATIENCE = 20


class RefusedError(Exception):
    pass


@dataclass(frozen=True)
class Kernel(WholeSteps):
    """One of the test: it has a name."""

    name: str = ""


def kernel_of(name: str, kind: type[Kernel] = Kernel) -> Kernel:
    sizes = class_token().step_sizes(length=3, dim=1, outputs=1)
    assert sizes is not None
    return kind(sizes, TrainSpec(batch=2, warmup=1), labels=False, name=name)


def request(name: str, members: int = 1, steps: int = 1) -> StepsRequest:
    nothing: Any = None
    states = TrainState(nothing, nothing, jnp.zeros(members, jnp.int32), nothing)
    return StepsRequest(kernel_of(name), states, Member(*[nothing] * 5), object.__new__(StoredTokens), steps)


def result_for(asked: StepsRequest) -> tuple[Moving, Any]:
    """One that says whose it is, by the last letter of the name."""
    assert isinstance(asked.kernel, Kernel)
    whose = jnp.full(len(asked.states.step), float(ord(asked.kernel.name[-1])))
    return Moving(*[whose[:, None]] * 3), whose


def whose(result: tuple[Moving, Any], seconds: float) -> str:
    return chr(int(result[1][0]))


@pytest.fixture
def served(monkeypatch):
    """The names that were advanced together, call by call; a name that begins with "bad" is refused."""
    calls: list[list[str]] = []

    def advance(requests):
        names = [each.kernel.name for each in requests]
        calls.append(names)
        if any(name.startswith("bad") for name in names):
            raise RefusedError(next(name for name in names if name.startswith("bad")))
        return [result_for(each) for each in requests]

    monkeypatch.setattr(together, "advance_together", advance)
    return calls


def meet(names: list[str], turns: dict[str, int] | None = None) -> dict[str, list[Any]]:
    """Threads that all train before one of them asks, each for some turns: what each of them got."""
    meeting, all_here = Together(), threading.Barrier(len(names), timeout=PATIENCE)
    got: dict[str, list[Any]] = {name: [] for name in names}

    def train(place: int, name: str) -> None:
        with meeting.training():
            all_here.wait()
            for _ in range((turns or {}).get(name, 1)):
                try:
                    got[name].append(whose(*meeting.advance(request(name, members=len(names) - place))))
                except RefusedError as error:
                    got[name].append(error)
                    return

    with ThreadPoolExecutor(len(names)) as pool:
        for future in [pool.submit(train, place, name) for place, name in enumerate(names)]:
            future.result(PATIENCE)
    return got


def test_all_are_advanced_in_one_call_the_largest_first(served):
    assert meet(["a", "b", "c"]) == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert served == [["a", "b", "c"]]


def test_whoever_leaves_is_waited_for_no_longer(served):
    got = meet(["a", "b"], {"a": 3, "b": 1})
    assert got == {"a": ["a"] * 3, "b": ["b"]}
    assert served == [["a", "b"], ["a"], ["a"]]


def test_one_that_fails_costs_no_other_its_result(served):
    got = meet(["a", "bad", "c"], {"a": 2, "c": 2})
    assert (got["a"], got["c"]) == (["a", "a"], ["c", "c"])
    (error,) = got["bad"]
    assert isinstance(error, RefusedError)
    assert served == [["a", "bad", "c"], ["a"], ["bad"], ["c"], ["a", "c"]]


def test_each_that_fails_has_its_own_error(served):
    got = meet(["bad 1", "bad 2"])
    assert {name: [str(error) for error in errors] for name, errors in got.items()} == {
        "bad 1": ["bad 1"],
        "bad 2": ["bad 2"],
    }


def test_one_who_stops_before_asking_holds_nobody_up(served):
    meeting, joined, leave = Together(), threading.Event(), threading.Event()

    def stopping() -> None:
        with contextlib.suppress(KeyboardInterrupt), meeting.training():
            joined.set()
            assert leave.wait(PATIENCE)
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool, meeting.training():
        stopped = pool.submit(stopping)
        assert joined.wait(PATIENCE)
        threading.Timer(0.05, leave.set).start()
        assert whose(*meeting.advance(request("a"))) == "a"
        stopped.result(PATIENCE)
    assert served == [["a"]]


def test_one_who_joins_late_is_served_with_the_next(served, monkeypatch):
    meeting, begun, joined = Together(), threading.Event(), threading.Event()
    advance = together.advance_together

    def slowly(requests):
        begun.set()
        assert joined.wait(PATIENCE)
        return advance(requests)

    monkeypatch.setattr(together, "advance_together", slowly)

    def late() -> Any:
        assert begun.wait(PATIENCE)
        with meeting.training():
            joined.set()
            return whose(*meeting.advance(request("late")))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(late)
        with meeting.training():
            got = [whose(*meeting.advance(request("first", members=2))) for _ in range(2)]
        assert (got, future.result(PATIENCE)) == (["t", "t"], "e")
    assert served == [["first"], ["first", "late"]]


def test_seconds_are_shared_by_members_and_steps(served, monkeypatch):
    clock = iter([0.0, 12.0])
    monkeypatch.setattr(together.time, "monotonic", lambda: next(clock))
    requests = [request("a", members=3, steps=1), request("b", members=1, steps=3)]
    Together()._serve(requests)
    assert [each.outcome.result()[1] for each in requests] == [6.0, 6.0]


# What is worked on.


MOVED: list[weakref.ref] = []


class Adding(Kernel):
    """Adds 1 to the weights per call and uses up what it is given; "bad" refuses the second call."""

    def draw_steps(self, states, members, stored, done):
        return (jnp.asarray(done),) * 3

    def aside(self, moving, totals, done, *_):
        if self.name == "bad" and done == 1:
            raise RefusedError
        moved = moving._replace(weights=moving.weights + 1)
        MOVED.append(weakref.ref(moved.weights))
        moving.weights.delete()
        return Aside(moved, totals, jnp.zeros(1))


@pytest.fixture
def course():
    cells = swept(heads=(2,), length=(4,)).cells
    shape = shape_of(cells[0])
    parts = program(shape.program, task_shape(TASK), True, "reference")
    data = PreparedExamples().prepared(TASK, shape.length, shape.model, shape.train).data
    assert isinstance(data.train, StoredTokens)
    return *parts.start(cells, data), data.train


@pytest.fixture
def joined(monkeypatch):
    """The tokens that were joined, one step per call."""
    tokens = []
    monkeypatch.setattr(together, "share", lambda _: None)
    monkeypatch.setattr(together, "join", lambda token: tokens.append(token) or token)
    monkeypatch.setattr(together, "FUSED_STEPS", 1)
    return tokens


def test_a_failure_holds_no_memory_while_each_is_tried_alone(course, joined):
    MOVED.clear()
    error = together._settle([StepsRequest(kernel_of(name, Adding), *course, 3) for name in ("good", "bad")])
    assert isinstance(error, RefusedError)
    assert len(MOVED) == 3
    assert [array() for array in MOVED] == [None] * 3


def test_a_failure_ends_after_a_join_and_leaves_the_states_as_they_were(course, joined):
    states, *_ = course
    before = [np.array(leaf) for leaf in jax.tree.leaves(states)]
    good, bad = (StepsRequest(kernel_of(name, Adding), *course, 3) for name in ("good", "bad"))
    with pytest.raises(RefusedError):
        together.advance_together([good, bad])
    assert len(joined) == 2, "after the first steps, and for the kernel that was at work"
    after = jax.tree.leaves(states)
    assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))
    ((moving, _),) = together.advance_together([good])
    (begun, *_) = together.begin(*course)
    assert np.allclose(moving.weights, begun.weights + 3)
