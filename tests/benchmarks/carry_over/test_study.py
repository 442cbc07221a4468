"""The study without training: its rules, its tasks, and results that are kept."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.carry_over import grid, study
from benchmarks.carry_over.answers import StoredAnswer, with_choice
from benchmarks.carry_over.data import HELD_OUT, REAL_SETS
from benchmarks.carry_over.grid import Results, Trained, Trial, fixed_width, known_configs, real_configs
from benchmarks.carry_over.judge import Need, gradual_need, known_need, recommended, recommended_config, verdict
from benchmarks.carry_over.known import ASKED, FAMILIES, KNOWN_TASKS
from benchmarks.carry_over.page import Outcome, headline, summary
from headcount.stock import StockConfig, StockResult
from headcount.stock.config import StockShape

SHAPE = StockShape(length=8, dim=4, outputs=1)


def chosen(heads: int) -> StoredAnswer:
    """An answer with a stock model that was chosen from it."""
    return answer(heads, config=fixed_width(heads, 1, 32).as_dict())


def answer(heads: int | None, low: int | None = None, high: int | None = None, **fields) -> StoredAnswer:
    given = {
        "task": "wine",
        "kind": "needs",
        "sentence": "words",
        "errors": {},
        "seconds": 2.0,
        "wall": 2.0,
        "notes": [],
    }
    return StoredAnswer(heads=heads, low=low or heads, high=high or heads, **(given | fields))


class TestKnownNeed:
    @pytest.mark.parametrize(
        ("errors", "need"),
        [
            ({1: 0.73, 2: 0.39, 3: 0.0099, 4: 0.0107}, Need(3, 3)),
            ({1: 0.42, 2: 0.0144, 3: 0.0129}, Need(2, 2)),
            ({1: 0.6, 2: 0.5, 4: 0.3, 6: 0.001}, Need(5, 6)),  # 5 was not tried
            ({1: 0.010, 2: 0.004}, Need(1, 1)),  # within three times: chance
            ({1: 0.9, 2: 0.8}, None),
        ],
    )
    def test_is_where_the_error_drops(self, errors, need):
        assert known_need(errors) == need


class TestGradualNeed:
    def test_gives_away_a_tenth_of_the_gain(self):
        steps = {1: 1.0, 2: 0.2, 4: 0.105, 8: 0.1}
        losses = {count: np.full(100, error) for count, error in steps.items()}
        assert gradual_need(losses) == Need(3, 4)

    def test_is_one_where_differences_are_chance(self):
        draw = np.random.default_rng(0)
        assert gradual_need({count: draw.normal(1, 1, 400) for count in (1, 2, 4)}) == Need(1, 1)


class TestVerdict:
    @pytest.mark.parametrize(
        ("need", "said"),
        [
            (Need(3, 3), "agree"),
            (Need(2, 2), "stock needs fewer"),
            (Need(5, 6), "stock needs more"),
            (Need(4, 6), "agree"),  # 4 was not tried, and is in the interval
            (None, "stock fails"),
        ],
    )
    def test_compares_with_the_interval(self, need, said):
        assert verdict(answer(3, 3, 4), need) == said

    def test_of_no_answer(self):
        assert verdict(answer(None), Need(1, 1)) == "no answer"


class TestTasks:
    def test_half_of_the_real_sets_is_held_out_by_their_names_alone(self):
        assert len(REAL_SETS) == 24
        assert len(HELD_OUT) == 12
        ordered = sorted(REAL_SETS, key=lambda each: (each.kind, each.name))
        assert [each.held_out for each in ordered] == [False, True] * 12

    @pytest.mark.parametrize("task", KNOWN_TASKS, ids=lambda task: task.name)
    def test_known_tasks_are_the_same_arrays_again(self, task):
        (x, y, options), (again, targets, _) = task.arrays(200), task.arrays(200)
        assert np.array_equal(x, again)
        assert np.array_equal(y, targets)
        assert len(x) == len(y) == 200
        assert ("answered_at" in options) == (task.family in ASKED)
        assert task.family in FAMILIES

    @pytest.mark.parametrize("task", KNOWN_TASKS, ids=lambda task: task.name)
    def test_d_heads_and_more_are_trained_at_every_rule(self, task):
        for rule, configs in known_configs(task).items():
            counts = [config.heads for config in configs]
            assert counts == sorted(set(counts))
            assert counts[0] == 1
            assert rule.endswith("layers") or counts[-1] >= task.intrinsic_dim + 2

    def test_the_answer_of_a_lookup_is_the_value_of_the_key_asked_for(self):
        (task,) = (each for each in KNOWN_TASKS if each.name == "lookup-2")
        x, y, _ = task.arrays(50)
        for tokens, targets in zip(x, y, strict=True):
            for place in range(2):
                scores = tokens[:-1, :4] @ tokens[-1, 4 * place : 4 * place + 4]
                assert tokens[scores.argmax(), -1] == targets[place]


@pytest.fixture
def results(tmp_path, monkeypatch) -> Results:
    """Results of a grid whose models are as good as they have heads, from both seeds."""
    kept = Results(tmp_path)
    for config in real_configs():
        for seed in grid.SEEDS:
            losses = np.repeat([0.0, 1.0], [400 + 10 * config.heads, 100 - 10 * config.heads])
            found = Trained(float(losses.mean()), 10, 1.0, tuple(losses))
            kept.found[Trial("wine", config, seed, examples=study.REAL_EXAMPLES).key] = found
    return kept


class TestRecommended:
    def test_is_what_was_chosen_from_the_answer(self):
        assert recommended_config(chosen(4)) == StockConfig(library="torch", layers=1, width=32, heads=4)
        assert recommended_config(answer(None)) is None

    def test_is_chosen_by_training_few_models(self, monkeypatch):
        trained = []

        def fake(config, examples, *, steps, patience):
            trained.append(config)
            losses = np.repeat([0.0, 1.0], [900 + 10 * min(config.heads, 4), 100 - 10 * min(config.heads, 4)])
            return StockResult(config, float(losses.mean()), losses, config.parameters(SHAPE), 1.0, steps, ())

        monkeypatch.setattr("benchmarks.carry_over.answers.train_stock", fake)
        found = with_choice(answer(4), SimpleNamespace(shape=SHAPE), 100)
        assert recommended_config(found) == StockConfig(library="torch", layers=1, width=16, heads=4)
        assert len(trained) < len(real_configs()) / 2

    @pytest.mark.parametrize(("heads", "holds"), [(8, True), (1, False)])
    def test_is_judged_by_the_best_of_the_grid(self, results, heads, holds):
        found = recommended(chosen(heads), results, study.REAL_EXAMPLES)
        assert found is not None
        assert found.best == pytest.approx(20 / 500)
        assert found.holds == holds
        assert found.share == pytest.approx(2 / 24)

    def test_is_on_the_page(self, results, tmp_path):
        tasks = study.study_tasks(tmp_path, development=True, names=["wine"])
        answers = {("wine", 1): chosen(8)}
        row = study.real_row(tasks[0], answers["wine", 1], results)
        assert row is not None
        assert row.verdict == "agree"
        found = {"wine": recommended(answers["wine", 1], results, study.REAL_EXAMPLES)}
        outcome = Outcome(known=[], real=[row], recommended=found, answers=answers, tasks=tasks)
        assert headline(outcome).startswith("on 1 of 1 real data sets")
        assert any("| wine | table |" in line for line in summary(outcome))


class TestSecondStarts:
    def test_of_known_d_are_fewer_heads_than_did(self, tmp_path):
        (task,) = study.study_tasks(tmp_path, names=["readers-2"])
        kept = Results(tmp_path)
        for trial in study.planned(task):
            kept.found[trial.key] = Trained(0.5 if trial.config.heads < 3 else 0.001, 10, 1.0)
        again = study.second_starts(task, answer(2), kept)
        assert {trial.config.heads for trial in again} == {1, 2}
        assert {trial.seed for trial in again} == {1}

    def test_of_a_real_set_are_the_best_and_the_recommended(self, results, tmp_path):
        (task,) = study.study_tasks(tmp_path, development=True, names=["wine"])
        again = study.second_starts(task, chosen(1), results)
        assert [trial.config.heads for trial in again if trial.seed] == [8, 8, 8, 1]


class TestResults:
    def test_are_kept_and_a_line_that_was_cut_off_is_left_out(self, tmp_path, monkeypatch):
        trained: list[int] = []

        def fake(config, examples, *, steps, seed, patience):
            trained.append(seed)
            return type("Result", (), {"error": 0.25, "losses": np.array([0.5, 0.0]), "parameters": 7})

        monkeypatch.setattr(grid, "train_stock", fake)
        trial = Trial("wine", fixed_width(2))
        for _ in range(2):
            assert Results(tmp_path).train(trial, None, keep_losses=True).losses == (0.5, 0.0)  # type: ignore[arg-type]
        path = Path(tmp_path) / grid.FILE_NAME
        path.write_text(path.read_text() + '{"key": "x", "err')
        assert trial in Results(tmp_path)
        assert trained == [0]

    def test_answers_are_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr(study, "measured_answer", lambda name, *rest, **options: answer(2, errors={1: 0.5, 2: 0.1}))
        monkeypatch.setattr(study.StudyTask, "arrays", lambda self: ([], [], {}))
        monkeypatch.setattr(study.StudyTask, "stock_examples", lambda self: None)
        monkeypatch.setattr(study, "with_choice", lambda answer, *_: answer)
        tasks = study.study_tasks(tmp_path, development=True, names=["wine"])
        said: list[str] = []
        for _ in range(2):
            assert study.run_answers(tasks, tmp_path, said.append)["wine", 1].errors == {1: 0.5, 2: 0.1}
        assert len(said) == 1
