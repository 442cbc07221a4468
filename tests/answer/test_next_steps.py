"""What is advised after an answer, and with which command."""

from dataclasses import replace

import pytest

from headcount.answer import answer, error_table
from headcount.answer.baselines import Baseline
from headcount.answer.commands import changed_command
from headcount.answer.next_steps import MAX_STEPS, NextStep, Situation, next_steps
from headcount.store import Outcome

from ..helpers.fabricated import LINE, MAP, descent, finished, graded, lost, sharp, sharp_in_rank, sweep

COMMAND = "headcount measure own.npz --steps 500 --out results/own"


def situation(made=None, records=None, **parts) -> Situation:
    made = made or sweep(LINE)
    records = finished(made) if records is None else records
    table = error_table(made.experiment, records)
    usual = {"command": COMMAND, "folder": "results/own"}
    return Situation(experiment=made.experiment, records=records, table=table, answer=answer(table), **usual | parts)


def errors_of(level, **metrics):
    """Records with the error `level(at)`, and these shares of it as other metrics."""
    made = sweep(LINE)

    def grades(at: dict) -> dict[str, float]:
        error = level(at) * (1 + 0.001 * at["seed"])
        return {"nmse": error, "baseline": 1.0} | {name: share * error for name, share in metrics.items()}

    return made, graded(made, grades)


def own(made, **task):
    """The experiment of a user's arrays."""
    settings = dict(made.experiment.settings) | {"task": {"task": "own", "examples": 500} | task}
    return replace(made, experiment=replace(made.experiment, settings=settings))


def flat(at: dict) -> float:
    return 0.11


def failing(at: dict) -> float:
    return 0.8


def commands(steps: tuple[NextStep, ...]) -> str:
    return "\n".join(step.command for step in steps)


@pytest.mark.parametrize(
    ("command", "verify"),
    [
        (COMMAND, ["headcount verify results/own --task own.npz"]),
        (
            "headcount measure --labels 'my data.csv' --targets=y",
            ["headcount verify results/own --task 'my data.csv' --targets y"],
        ),
        ("headcount measure --steps 5 TASK --json", ["headcount verify results/own"]),
        ("", []),
    ],
    ids=["own data", "a table", "a preset", "Python"],
)
def test_a_clean_answer_leads_to_the_page_and_to_verify(command, verify):
    task = sweep(LINE).experiment.settings["task"]["task"]
    steps = next_steps(situation(command=command.replace("TASK", task)))
    wanted = ["headcount report results/own", *verify]
    assert [step.command for step in steps][-len(wanted) :] == wanted


def test_models_that_are_missing_come_first_until_a_run_has_ended():
    made = sweep(LINE)
    step, *_ = next_steps(situation(made, finished(made)[:-3], effort={"level": "quick", "ended": ""}))
    assert step.command == COMMAND
    assert step.why.startswith("3 models")
    ended = next_steps(situation(made, finished(made)[:-3], effort={"level": "quick", "ended": "settled"}))
    assert COMMAND not in [each.command for each in ended]


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (lambda: situation(*errors_of(flat)), "--layers 2"),
        (lambda: situation(own(errors_of(failing)[0]), errors_of(failing)[1]), "--answered-at query"),
        (lambda: situation(*errors_of(lambda at: 0.5 / at["heads"] ** 2)), "--heads 1:16"),
        (lambda: situation(*errors_of(lambda at: 1.0)), "--steps 6000"),
        (lambda: situation(effort={"level": "quick", "ended": "budget"}), COMMAND),
        (lambda: situation(*errors_of(flat, train_nmse=0.1)), "--train-examples 32000"),
        (lambda: situation(sweep(LINE | {"seed": (0,)})), "--seeds 4"),
        (lambda: situation(sweep(LINE | {"heads": (4,)})), "--heads 1:6"),
        (lambda: situation(sweep(MAP), finished(sweep(MAP), sharp_in_rank)), "report"),
    ],
    ids=[
        "flat",
        "query",
        "still falling",
        "nothing learned",
        "budget",
        "overfitting",
        "one seed",
        "one head count",
        "map",
    ],
)
def test_what_is_wrong_has_its_command(case, wanted):
    steps = next_steps(case())
    assert wanted in commands(steps)
    assert 1 <= len(steps) <= MAX_STEPS
    assert all(step.why for step in steps)


def test_overfitting_states_both_errors():
    (step,) = [each for each in next_steps(situation(*errors_of(flat, train_nmse=0.1))) if "verfit" in each.why]
    assert "0.11" in step.why
    assert "0.011" in step.why
    assert not any("verfit" in each.why for each in next_steps(situation(*errors_of(flat, train_nmse=0.2))))


def test_a_window_that_hides_tokens_is_widened_before_heads_are_added():
    made, records = errors_of(lambda at: 0.5 / at["heads"] ** 2)
    settings = dict(made.experiment.settings) | {"model": {"window": 4, "layers": 1}}
    windowed = replace(made, experiment=replace(made.experiment, settings=settings))
    advised = commands(next_steps(situation(windowed, records)))
    assert f"--window {max(LINE['length'])}" in advised
    assert "--heads" not in advised


def test_where_models_without_attention_learn_y_depends_on_x():
    made, records = errors_of(lambda at: 1.0)
    mean = Baseline("constant", "predicting the mean", 1.0)
    beside = (mean, Baseline("linear", "a linear model", 0.2))
    assert "--learning-rates 0.003" in commands(next_steps(situation(made, records, baselines=beside)))
    for note, concluded in {"": True, "fitted on 1,200 of 8,000 training examples": False}.items():
        beside = (mean, Baseline("linear", "a linear model", 1.0, note))
        assert ("linear" in next_steps(situation(made, records, baselines=beside))[0].why) == concluded


def test_models_that_diverged_ask_for_a_smaller_rate():
    made = sweep(LINE)
    records = finished(made)[:-1] + lost(made.cells[-1:], Outcome.DIVERGED)
    assert "--learning-rates" in next_steps(situation(made, records))[0].command


def test_where_all_models_diverged_answer_and_advice_say_so():
    made = sweep(LINE)
    records = lost(made.cells, Outcome.DIVERGED)
    found = situation(made, records)
    assert found.answer.reason.startswith(f"all {len(records)} models diverged")
    assert found.answer.kind == "none"
    assert found.answer.as_dict()["verdict"].endswith(found.answer.reason)
    steps = next_steps(found)
    assert "--learning-rates" in steps[0].command
    assert not any("--seeds" in step.command for step in steps), "more seeds of them diverge too"
    for others in (finished(made)[-1:], lost(made.cells[-1:], Outcome.FAILED)):
        assert "diverged" not in situation(made, records[:-1] + others).answer.reason


def test_a_curve_that_still_falls_asks_for_more_steps():
    made, records = errors_of(lambda at: 0.5 if at["heads"] < 4 else 0.06)
    falling = tuple((step, 0.5 - 0.02 * step) for step in range(21))
    still = [replace(record, curve=falling) for record in records]
    assert "--steps 6000" in commands(next_steps(situation(made, still)))
    rest = [replace(record, curve=tuple((step, 0.06) for step in range(21))) for record in records]
    assert "--steps 6000" not in commands(next_steps(situation(made, rest)))


def test_thorough_is_not_advised_after_thorough():
    made = descent()
    wide = finished(made, lambda at: sharp(at) if at["seed"] == 0 or at["heads"] != 4 else 0.05)
    for level, advised in {"normal": True, "thorough": False}.items():
        steps = next_steps(situation(made, wide, effort={"level": level, "ended": "settled"}))
        assert ("thorough" in commands(steps)) == advised


def test_few_validation_examples_are_no_trend():
    level = {1: 0.12, 2: 0.119, 3: 0.118, 4: 0.117, 5: 0.114, 6: 0.109}
    made, records = errors_of(lambda at: level[at["heads"]])
    of_arrays = own(made, validation_fraction=0.2)
    assert "--validation-fraction 0.4" in commands(next_steps(situation(of_arrays, records, examples=100)))
    assert "--validation-examples" in commands(next_steps(situation(made, records, examples=100)))
    assert "--heads 1:16" in commands(next_steps(situation(made, records, examples=100_000)))


@pytest.mark.parametrize("command", ["headcount measure mine.py:task", ""])
def test_what_a_task_made_in_python_does_not_take_is_said_in_words(command):
    _, records = errors_of(failing)
    step, *_ = next_steps(situation(own(errors_of(failing)[0]), records, command=command))
    assert (step.command, "answered_at='query'" in step.why) == ("", True)


def test_without_a_command_the_change_is_python():
    made, records = errors_of(flat)
    step = next_steps(situation(made, records, command=""))[0]
    assert (step.command, "layers=2" in step.why) == ("", True)  # refused beside model=
    alone = sweep(LINE | {"heads": (4,)})
    assert next_steps(situation(alone, command=""))[0].command == "hc.measure(..., heads=range(1, 7))"


@pytest.mark.parametrize("given", ["--steps 5", "--steps=5", ""])
def test_an_option_is_replaced_or_added_and_names_stay_quoted(given):
    command = changed_command(
        f"headcount measure 'my data.npz' {given} --labels", {"steps": 10, "learning_rates": [0.003, 0.01]}
    )
    assert command == "headcount measure 'my data.npz' --labels --steps 10 --learning-rates 0.003,0.01"
