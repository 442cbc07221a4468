"""Measuring the set: resumable, whatever became of the last run."""

import functools
import json

import pytest

import benchmarks.calibration.run as runs
from benchmarks.calibration.families import KnownTask
from benchmarks.calibration.run import RESULT, calibrate, finished
from headcount.errors import HeadcountError, InputError, StoreError
from headcount.store import FILE_NAME

from ...helpers.refusals import refused
from .pretended import Pretended

TASKS = [KnownTask("maxima", count, 2, 4, examples=100) for count in (1, 2, 3)]


@pytest.fixture
def pretended(monkeypatch) -> Pretended:
    pretended = Pretended()
    monkeypatch.setattr("benchmarks.calibration.run.measure", pretended.measure)
    return pretended


def test_every_task_has_a_folder_and_a_result(tmp_path, pretended):
    seen = []
    results = calibrate(TASKS, tmp_path, effort="quick", on_task=seen.append)
    assert [each.task for each in results] == TASKS
    assert seen == results
    assert pretended.options == [{"effort": "quick"}] * 3
    for task, each in zip(TASKS, results, strict=True):
        assert json.loads((tmp_path / task.name / RESULT).read_bytes()) == each.as_dict()
        assert each.exact
        assert each.seconds is not None


def test_finished_tasks_are_not_measured_again(tmp_path, pretended):
    first = calibrate(TASKS[:2], tmp_path)
    assert calibrate(TASKS, tmp_path)[:2] == first
    assert pretended.names == [task.name for task in TASKS]


def test_another_protocol_needs_another_folder(tmp_path, pretended):
    calibrate(TASKS[:1], tmp_path / "one")
    with pytest.raises(InputError) as caught:
        calibrate(TASKS[:1], tmp_path / "one", seeds=2, heads=range(1, 4))
    assert (caught.value.what, caught.value.given) == ("out", str(tmp_path / "one"))
    (other,) = calibrate(TASKS[:1], tmp_path / "two", seeds=2, heads=range(1, 4))
    assert pretended.options == [{"effort": "normal"}, {"seeds": 2, "heads": (1, 2, 3)}]
    assert "2 seeds" in other.protocol
    assert calibrate(TASKS[:1], tmp_path / "two", seeds=2, heads=[1, 2, 3]) == [other]


def test_a_task_with_other_numbers_is_another_task(tmp_path, pretended):
    calibrate(TASKS[:1], tmp_path)
    calibrate([KnownTask("maxima", 1, 2, 4, examples=200)], tmp_path)
    assert len(pretended.names) == 2


@pytest.mark.parametrize("damage", [b"", b'{"task": {"family"', b"[]", b"null", b'{"task": {}}', b"\xff\xfe"])
def test_a_damaged_result_is_measured_again(tmp_path, pretended, damage):
    before = calibrate(TASKS[:2], tmp_path)
    (tmp_path / TASKS[0].name / RESULT).write_bytes(damage)
    after = calibrate(TASKS[:2], tmp_path)
    assert pretended.names == [TASKS[0].name, TASKS[1].name, TASKS[0].name]
    assert [each.heads for each in after] == [each.heads for each in before]


def test_a_killed_run_continues_and_knows_that_its_time_is_not_whole(tmp_path, pretended):
    pretended.raises = {TASKS[1].name: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        calibrate(TASKS, tmp_path)
    assert list(finished(TASKS, tmp_path, "effort normal")) == [TASKS[0].name]
    (tmp_path / TASKS[1].name).mkdir(exist_ok=True)
    (tmp_path / TASKS[1].name / FILE_NAME).touch()  # models it had stored
    pretended.raises = {}
    times = [each.seconds is None for each in calibrate(TASKS, tmp_path)]
    assert times == [False, True, False]


@pytest.mark.parametrize("error", [StoreError("disk full"), HeadcountError("no memory")])
def test_a_failed_measurement_is_no_answer_and_is_tried_again(tmp_path, pretended, error):
    pretended.raises = {TASKS[0].name: error}
    failed, fine = calibrate(TASKS[:2], tmp_path)
    assert (failed.missed, failed.held, failed.error, fine.exact) == (True, False, str(error), True)
    pretended.raises = {}
    assert calibrate(TASKS[:2], tmp_path)[0].exact


def test_a_mistake_in_the_program_is_not_hidden(tmp_path, pretended):
    pretended.raises = {TASKS[0].name: ZeroDivisionError()}
    with pytest.raises(ZeroDivisionError):
        calibrate(TASKS, tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effort": "normal", "seeds": 4}, ("normal", "4")),
        ({"heads": [1, 2]}, ("heads", "seeds")),
    ],
)
def test_protocols_that_cannot_be_right(tmp_path, pretended, options, words):
    with refused(*words):
        calibrate(TASKS, tmp_path, **options)
    assert pretended.names == []


@pytest.mark.slow
def test_two_tiny_tasks_from_arrays_to_a_record(tmp_path, monkeypatch):
    quick = functools.partial(runs.measure, steps=10, batch=16)
    monkeypatch.setattr(runs, "measure", quick)
    tasks = [TASKS[0], KnownTask("median", None, 2, 5, examples=100)]
    results = calibrate(tasks, tmp_path, seeds=2, heads=[1, 2])
    assert [each.task for each in results] == tasks
    assert not any(each.error for each in results)
    assert all(each.seconds > 0 for each in results)
    assert calibrate(tasks, tmp_path, seeds=2, heads=[1, 2]) == results
