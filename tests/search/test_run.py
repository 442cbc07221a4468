"""Asking until it is settled: stopped anywhere it goes on to the same end, and a budget ends it with what there is."""

import sys
import threading
from dataclasses import replace

import pytest

import headcount as hc
from headcount.engine import RunSummary
from headcount.errors import BudgetError, InputError
from headcount.events import Event
from headcount.measurement import Measurement
from headcount.search import EFFORTS, ask, effort_of
from headcount.search.costs import costs
from headcount.store import Outcome, Store

from ..helpers import fabricated
from ..helpers.refusals import refused
from ..helpers.sweeps import TASK, TRAIN, class_token
from .playing import a_question, elimination, needing
from .test_rounds import deep


class Training:
    """Training that takes no time; in round `ends`, when one in `parts` models is done, `ending` happens."""

    def __init__(self, ends: int | None = None, ending=lambda: None, parts: int = 2):
        self.ends, self.ending, self.parts, self.rounds, self.error = ends, ending, parts, 0, needing(4)

    def run_sweep(self, sweep, store, *, command, stop, plan, events, on_commit, **_) -> RunSummary:
        experiment = store.begin(sweep.experiment, command)
        left = [cell for bucket in plan.buckets for cell in bucket.cells]
        ends = self.rounds == self.ends
        self.rounds += 1
        done = left[: len(left) // self.parts] if ends else left
        records = [fabricated.record(cell, nmse=self.error(cell), baseline=1.0) for cell in done]
        store.commit(records)
        on_commit(records)
        events(Event("steps", done=sum(cell.train.steps for cell in done)))
        if ends:
            self.ending()
            stop.set()
            raise KeyboardInterrupt
        return RunSummary(
            experiment=experiment, already_done=plan.settled, outcomes={Outcome.FINISHED: len(done)}, seconds=0.0
        )


class Timer:
    """A timer that is over when a test says so."""

    over: "Timer"

    def __init__(self, seconds: float, function):
        self.function, Timer.over = function, self

    def start(self) -> None:
        pass

    cancel = start


@pytest.fixture
def trained(monkeypatch):
    def use(training: Training) -> Training:
        monkeypatch.setattr("headcount.search.run.run_sweep", training.run_sweep)
        monkeypatch.setattr("headcount.search.run.attach_baselines", lambda *_, **__: None)
        monkeypatch.setattr("headcount.search.run._elimination", lambda cell, *_: elimination(cell.model["heads"], 4))
        monkeypatch.setattr("headcount.search.run.threading.Timer", Timer)
        return training

    return use


def asked(root, *, effort="normal", **options):
    with Store.open_for_writing(root) as store:
        run, ended = ask(a_question(), store, effort_of(effort), **options)
        return Measurement.of_run(run, store, ended=ended), store.records(), store.experiments()


def test_a_question_stopped_in_any_round_goes_on_to_the_same_end(tmp_path, trained):
    training = trained(Training())
    whole, records, experiments = asked(tmp_path / "whole")
    assert (whole.ended, whole.answer().sentence) == ("settled", "needs 4 heads [4, 4]")
    assert whole.run.trained == len(records) == len(experiments[0].places)
    for place in range(0, training.rounds, 2):
        trained(Training(ends=place))
        with pytest.raises(KeyboardInterrupt):
            asked(tmp_path / str(place))
        trained(Training())
        again, *stored = asked(tmp_path / str(place))
        assert stored == [records, experiments], f"stopped in round {place}"
        assert list(stored[1][0].places.items()) == list(experiments[0].places.items())
        assert again.answer() == whole.answer()
    trained(Training())
    settled, *_ = asked(tmp_path / "whole")
    assert settled.run.trained == 0


def test_more_effort_goes_on_from_less_and_no_place_is_taken_twice(tmp_path, trained):
    trained(Training())
    _, few, _ = asked(tmp_path, effort="quick")
    more, records, (experiment,) = asked(tmp_path)
    assert {record.cell.key for record in few} < {record.cell.key for record in records} == experiment.places.keys()
    assert more.run.trained == len(records) - len(few)
    assert len(set(experiment.places.values())) == len(records)
    again, *_ = asked(tmp_path, effort="quick")
    assert (again.run.trained, again.answer()) == (0, more.answer())


def test_the_largest_effort_is_kept_with_the_experiment_and_how_it_ended(tmp_path, trained, monkeypatch):
    trained(Training())
    for effort in ("thorough", "quick"):
        asked(tmp_path, effort=effort)
        with Store.open_for_reading(tmp_path) as store:
            assert store.get("max-plus-min", "effort") == {"level": "thorough", "ended": "settled"}
    monkeypatch.setattr(sys.modules["headcount.search.rounds"], "MAX_ROUNDS", 0)
    unsettled, *_ = asked(tmp_path / "other")
    assert unsettled.ended == "rounds"


def test_a_budget_ends_it_with_what_there_is_and_it_goes_on_without(tmp_path, trained):
    trained(Training(ends=2, ending=lambda: Timer.over.function()))
    measured, records, _ = asked(tmp_path, minutes=1.0)
    assert measured.ended == "budget"
    assert measured.records
    assert sorted(map(repr, measured.records)) == sorted(map(repr, records))
    assert measured.answer().sentence.startswith(("needs ", "no transition found"))
    trained(Training())
    again, *_ = asked(tmp_path)
    assert (again.ended, again.answer().heads) == ("settled", 4)
    assert again.run.already_done > 0


def test_a_budget_that_trains_nothing_is_told(tmp_path, trained):
    trained(Training(ends=0, ending=lambda: Timer.over.function(), parts=100))
    with pytest.raises(BudgetError) as caught:
        asked(tmp_path, minutes=0.5)
    assert (caught.value.what, caught.value.given) == ("minutes", 0.5)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"effort": "quick", "seeds": 2}, "effort"),
        ({"minutes": 1.0, "ranks": [1, 2]}, "minutes"),
        ({"effort": "thorou"}, "effort"),
        ({"minutes": 0.0}, "minutes"),
        ({"minutes": -1.0}, "minutes"),
        ({"minutes": float("nan")}, "minutes"),
        ({"minutes": float("inf")}, "minutes"),
    ],
)
def test_an_effort_that_cannot_be_right_is_refused(tmp_path, options, what):
    with refused(what) as caught:
        hc.measure(TASK, model=class_token, train=TRAIN, out=tmp_path, **options)
    assert caught.value.what.split()[0] == what
    assert list(tmp_path.iterdir()) == []


def test_a_listener_hears_every_round_and_every_step(tmp_path, trained):
    trained(Training())
    rounds, steps = [], []

    def hear(event: Event) -> None:
        if event.kind == "round":
            rounds.append(event.total)
        elif event.kind == "steps":
            steps.append(event.done)

    with Store.open_for_writing(tmp_path) as store:
        ask(a_question(), store, effort_of("quick"), events=hear)
    assert sum(rounds) == sum(steps) > 0


def test_a_stop_is_no_budget(tmp_path, trained):
    trained(Training(ends=0))
    with pytest.raises(KeyboardInterrupt), Store.open_for_writing(tmp_path) as store:
        ask(a_question(), store, effort_of("quick"), minutes=60.0, stop=threading.Event())
    with Store.open_for_reading(tmp_path) as store:
        assert store.get("max-plus-min", "effort") == {"level": "quick", "ended": ""}


@pytest.mark.parametrize("model", [class_token, deep])
@pytest.mark.parametrize("effort", EFFORTS)
def test_costs_are_a_range_and_ask_for_nothing(model, effort):
    question = a_question(range(1, 7), most=8, model=model)
    least, most = costs(question, effort_of(effort))
    assert 0 < least.cells <= most.cells
    assert least.model_steps <= most.model_steps
    assert least.seconds <= most.seconds
    assert (question.cells, question.taken, question.whole().places) == ({}, {}, {})


def test_an_effort_of_ones_own_has_no_name(tmp_path, trained):
    trained(Training())
    with Store.open_for_writing(tmp_path) as store:
        ask(a_question(), store, replace(effort_of("quick"), top_seeds=3))
        assert store.get("max-plus-min", "effort") == {"level": "", "ended": "settled"}


def test_an_effort_is_one_of_three():
    with pytest.raises(InputError) as caught:
        effort_of("most")
    assert (caught.value.what, caught.value.given) == ("effort", "most")
