"""Models without attention against targets that one of them can answer exactly."""

from typing import Any

import numpy as np
import pytest

import headcount as hc
from headcount.engine.baselines import FITS, attach_baselines, baselines
from headcount.store import Store, TrainSpec
from headcount.tasks import AbstractObjective, AbstractTask, Classification, Examples, Regression, Split

from ..helpers.fabricated import sweep

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(500, 4, 2))
TRAIN = TrainSpec(train_examples=400, validation_examples=100)


class Stored(AbstractTask):
    """A task of arrays as they are."""

    content: Any
    targets: Any
    classes: int = 0
    vocabulary: int = 0
    masked: bool = False
    name: str = "stored"
    length: int = 4
    dim: int = 2
    intrinsic_dim: int | None = None
    uses_positions: bool = True

    @property
    def outputs(self) -> int:
        return self.classes or self.targets.shape[-1]

    @property
    def padded(self) -> bool:
        return self.masked

    @property
    def objective(self) -> AbstractObjective:
        return Classification() if self.classes else Regression()

    def spec(self) -> dict[str, Any]:
        return {"task": self.name}

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        parts = slice(0, train_examples), slice(train_examples, train_examples + validation_examples)
        return Split(*(Examples(self.content[part], self.targets[part]) for part in parts))

    def at(self, length: int) -> "Stored":
        return self


def errors(task: Any, train: TrainSpec = TRAIN) -> dict[str, float]:
    return {entry["name"]: entry["error"] for entry in baselines(task, train)}


@pytest.mark.parametrize(
    ("content", "targets", "solved", "unsolved"),
    [
        (X, (X * GENERATOR.normal(size=(4, 2))).sum(axis=(1, 2)), {"linear"}, {"pooled"}),
        (X, X[..., 0].mean(axis=1) ** 2 - X[..., 1].max(axis=1), {"pooled"}, {"linear", "neighbours"}),
        (X, X[GENERATOR.permutation(500), 0, 0], set(), {"linear", "pooled", "neighbours"}),
    ],
    ids=["a linear target", "a target of pools", "noise"],
)
def test_each_answers_what_it_can(content, targets, solved, unsolved):
    found = errors(Stored(content, targets[:, None]))
    assert {name for name, error in found.items() if error < 0.05} == solved
    assert all(found[name] > 0.3 for name in unsolved)


def test_neighbours_tell_clusters_apart_that_neither_a_line_nor_pools_do():
    """Two tokens on a ring of eight clusters, which the labels alternate along."""
    cluster = GENERATOR.integers(0, 8, 500)
    angle = cluster * np.pi / 4
    content = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :, None] + 0.05 * GENERATOR.normal(size=(500, 2, 1))
    found = errors(Stored(content, (cluster % 2).astype(np.int32), classes=2))
    assert found["neighbours"] < 0.02
    assert found["linear"] > 0.3


def test_a_linear_model_tells_classes_apart_that_a_line_separates():
    """Balanced classes too, where a share of wrong answers cannot tell penalties apart."""
    side = np.repeat([0, 1], 250)[GENERATOR.permutation(500)]
    content = np.concatenate([X[:, :3], (2.0 * side - 1)[:, None, None] + 0.2 * X[:, 3:]], axis=1)
    assert errors(Stored(content, side.astype(np.int32), classes=2))["linear"] < 0.02


def test_absent_tokens_are_no_part_of_pools():
    kept = np.arange(4) < GENERATOR.integers(1, 5, 500)[:, None]
    mean = (X[..., 0] * kept).sum(axis=1) / kept.sum(axis=1)
    found = errors(Stored(np.where(kept[..., None], X, np.nan), mean[:, None], masked=True))
    assert found["pooled"] < 0.05
    assert all(np.isfinite(error) for error in found.values())


def test_token_ids_are_counted():
    ids = GENERATOR.integers(0, 6, (500, 4, 1)).astype(float)
    found = errors(Stored(ids, (ids == 2).sum(axis=(1, 2)).astype(float)[:, None], vocabulary=6))
    assert found["linear"] < 1e-6
    assert found["pooled"] < 1e-6
    assert errors(Stored(ids, ids[:, 1], vocabulary=6))["linear"] < 1e-6  # which id is where


def test_what_cannot_be_fitted_says_why():
    pixels = GENERATOR.integers(0, 255, (130, 85, 85, 3)).astype(np.uint8)
    images = Stored(pixels, GENERATOR.integers(0, 2, 130).astype(np.int32), classes=2)
    entries = {
        entry["name"]: entry for entry in baselines(images, TrainSpec(train_examples=100, validation_examples=30))
    }
    assert entries["linear"]["error"] is entries["neighbours"]["error"] is None
    assert "21,675" in entries["linear"]["note"]
    assert 0 <= entries["pooled"]["error"] <= 1
    many = baselines(Stored(X, np.ones((500, 1000)) * X[:, :1, 0]), TRAIN)
    assert all(entry["error"] is None and "1,000" in entry["note"] for entry in many)


def test_the_same_examples_give_the_same_numbers_and_those_of_a_models_validation():
    task = hc.ArrayTask(X, X[..., 0].max(axis=1))
    assert baselines(task, TRAIN) == baselines(task, TRAIN)
    entry = baselines(task, TRAIN)[0]
    assert (entry["length"], entry["data_seed"], entry["validation_examples"]) == (4, 0, 100)


def test_they_are_kept_with_the_experiment_once_per_length(tmp_path, monkeypatch):
    made = sweep()
    task = Stored(X, X[:, 0, :1])
    with Store.open_for_writing(tmp_path) as store:
        name = store.begin(made.experiment).name
        attach_baselines(store, name, task, [4], TRAIN, standardised=True)
        stored = store.get(name, "baselines")
        monkeypatch.setattr("headcount.engine.baselines.baselines", lambda *_, **__: pytest.fail("computed again"))
        attach_baselines(store, name, task, [4], TRAIN, standardised=True)
        assert store.get(name, "baselines") == stored
    assert [entry["name"] for entry in stored] == ["linear", "pooled", "neighbours"]


def test_errors_are_over_standardised_targets_where_the_models_are():
    """A large output that a line predicts, and noise: in raw units the noise is nothing, standardised it is half."""
    targets = np.stack([1000 * X.mean(axis=(1, 2)), GENERATOR.normal(size=500)], axis=1)
    raw, standardised = (
        {each["name"]: each["error"] for each in baselines(Stored(X, targets), TRAIN, standardised=scaled)}
        for scaled in (False, True)
    )
    assert raw["linear"] < 1e-3
    assert standardised["linear"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("refusal", [MemoryError("no memory"), np.linalg.LinAlgError("no convergence")])
def test_one_that_fails_is_skipped_with_the_reason_and_the_others_are_there(monkeypatch, refusal):
    def fail(*_, **__):
        raise refusal

    monkeypatch.setitem(FITS, "linear", fail)
    linear, *others = baselines(Stored(X, X[:, 0, :1]), TRAIN)
    assert linear["error"] is None
    assert str(refusal) in linear["note"]
    assert all(entry["error"] is not None for entry in others)


def test_one_that_could_see_few_examples_is_skipped_and_one_that_sees_some_says_so(monkeypatch):
    monkeypatch.setattr("headcount.engine.baselines.MAX_FITTED_NUMBERS", 480)
    entries = {entry["name"]: entry for entry in baselines(Stored(X, X[:, 0, :1]), TRAIN)}
    assert entries["linear"]["error"] is None  # 60 of 400
    assert "60 of 400" in entries["linear"]["note"]
    monkeypatch.setattr("headcount.engine.baselines.MAX_FITTED_NUMBERS", 800)
    entries = {entry["name"]: entry for entry in baselines(Stored(X, X[:, 0, :1]), TRAIN)}
    assert entries["linear"]["error"] < 0.05
    assert "100 of 400" in entries["linear"]["note"]
