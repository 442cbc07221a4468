"""Grades against loops over examples in float64, and baselines against every constant answer."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.tasks import Balanced, Choice, Classification, Regression
from headcount.tasks.objective import ranks

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close

EXAMPLES, CHOICES = 5, 4
OBJECTIVES = {"classification": Classification(), "choice": Choice(CHOICES)}
both = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
labels_of = st.lists(st.integers(0, CHOICES - 1), min_size=EXAMPLES, max_size=EXAMPLES).map(np.array)


def tables(numbers: st.SearchStrategy) -> st.SearchStrategy[np.ndarray]:
    row = st.lists(numbers, min_size=CHOICES, max_size=CHOICES)
    return st.lists(row, min_size=EXAMPLES, max_size=EXAMPLES).map(lambda rows: np.array(rows, np.float32))


finite = tables(st.floats(-20, 20, width=32, allow_subnormal=False))  # compiled code takes subnormals for 0
tied = tables(st.sampled_from([-1.0, 0.0, 0.5]))
with_nan = tables(st.sampled_from([-1.0, 0.0, 2.0, float("nan")]))


def as_answers(objective, scores: np.ndarray, query: float | None = None) -> jax.Array:
    """Scores in the shape that a model answers in; `query` is its answer at the query's own token."""
    if isinstance(objective, Classification):
        return jnp.asarray(scores)
    query_scores = np.zeros((len(scores), 0)) if query is None else np.full((len(scores), 1), query)
    return jnp.asarray(np.concatenate([scores, query_scores], axis=1)[..., None], jnp.float32)


def slow_grades(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """One example at a time: the right answer must beat every other, and NaN beats nothing and is not beaten."""
    wrong, ranks, entropies = [], [], []
    for row, label in zip(scores.astype(np.float64), labels, strict=True):
        beaten = sum(bool(row[label] > score) for place, score in enumerate(row) if place != label)
        ranks.append(len(row) - beaten)
        wrong.append(beaten < len(row) - 1)
        largest = max(row)
        entropies.append(largest + math.log(sum(math.exp(score - largest) for score in row)) - row[label])
    lists = {"error": wrong, "mrr": [1 / rank for rank in ranks], "cross_entropy": entropies}
    return {name: float(np.mean(values)) for name, values in lists.items()}


def grade_names(objective) -> set[str]:
    return {"error", "cross_entropy"} | ({"mrr"} if isinstance(objective, Choice) else set())


@both
@given(scores=finite | tied, labels=labels_of)
def test_grades_and_loss_are_the_obvious_loop(objective, scores, labels):
    want, answers = slow_grades(scores, labels), as_answers(objective, scores)
    grades = objective.grades(answers, jnp.asarray(labels))
    assert set(grades) == grade_names(objective)
    for name, grade in grades.items():
        assert_close(np.asarray(grade), np.float32(want[name]), name)
    loss, error = objective.loss(answers, jnp.asarray(labels))
    assert_close(np.asarray(loss), np.float32(want["cross_entropy"]))
    assert_close(np.asarray(error), np.float32(want[objective.error]))


@given(scores=finite | tied | with_nan, labels=labels_of)
def test_a_rank_counts_the_answers_that_are_not_beaten(scores, labels):
    want = [sum(not row[label] > score for score in row) for row, label in zip(scores, labels, strict=True)]
    assert np.asarray(ranks(jnp.asarray(scores), jnp.asarray(labels))).tolist() == want


@both
@given(scores=with_nan, labels=labels_of)
def test_an_example_with_nan_is_answered_wrong(objective, scores, labels):
    answers = as_answers(objective, scores)
    grades = objective.grades(answers, jnp.asarray(labels))
    _, error = objective.loss(answers, jnp.asarray(labels))
    of_label = scores[np.arange(EXAMPLES), labels]
    # NaN in another answer's place ranks before the right one, NaN in the right one's place ranks last.
    replaced = np.where(np.isnan(scores), 1e9, scores)
    replaced[np.arange(EXAMPLES), labels] = np.where(np.isnan(of_label), -1e9, of_label)
    want = slow_grades(replaced, labels)
    assert float(error) == float(grades["error"]) == pytest.approx(want["error"])
    if "mrr" in grades:
        assert float(grades["mrr"]) == pytest.approx(want["mrr"])


@both
def test_equal_scores_are_wrong_answers(objective):
    labels = jnp.arange(EXAMPLES) % CHOICES
    grades = objective.grades(as_answers(objective, np.zeros((EXAMPLES, CHOICES), np.float32)), labels)
    assert float(grades["error"]) == 1
    assert float(grades["cross_entropy"]) == pytest.approx(math.log(CHOICES))
    assert float(grades.get("mrr", 1 / CHOICES)) == 1 / CHOICES


@settings(max_examples=10)
@given(scores=finite, labels=labels_of, query=st.sampled_from([-1e6, 0.0, 1e6, float("nan")]))
def test_the_query_s_own_token_is_never_chosen(scores, labels, query):
    objective = Choice(CHOICES)
    for function in (objective.grades, objective.loss):
        without, with_query = (
            function(as_answers(objective, scores, token), jnp.asarray(labels)) for token in (None, query)
        )
        assert jax.tree.map(float, without) == jax.tree.map(float, with_query)


@both
def test_scores_are_compared_in_single_precision(objective):
    scores = np.arange(EXAMPLES * CHOICES, dtype=np.float32).reshape(EXAMPLES, CHOICES)
    compared = objective.scores(as_answers(objective, scores, 0.0).astype(jnp.bfloat16))
    assert compared.dtype == jnp.float32
    assert np.array_equal(compared, scores)


@pytest.mark.parametrize("shape", [(3,), (4, 3)], ids=["per sequence", "per token"])
def test_regression_is_graded_by_the_share_of_the_variance(shape):
    answers, targets = np.random.default_rng(0).normal(size=(2, EXAMPLES, *shape)).astype(np.float32)
    mean = np.mean((answers - targets) ** 2, dtype=np.float64)
    loss, error = Regression().loss(jnp.asarray(answers), jnp.asarray(targets))
    grades = Regression().grades(jnp.asarray(answers), jnp.asarray(targets))
    assert_close(np.asarray([loss, error]), np.float32([mean, mean]))
    assert set(grades) == {Regression.error} == {"nmse"}
    assert_close(np.asarray(grades["nmse"]), np.float32(mean / np.mean(np.var(targets.astype(np.float64), axis=0))))


# Baselines.


@both
@given(labels=labels_of)
def test_no_constant_label_has_a_smaller_error_than_the_baseline(objective, labels):
    errors = []
    for label in range(CHOICES):
        answers = as_answers(objective, np.tile(np.eye(CHOICES, dtype=np.float32)[label], (EXAMPLES, 1)))
        errors.append(float(objective.grades(answers, jnp.asarray(labels))["error"]))
    assert objective.baseline(labels)[0] == pytest.approx(min(errors), abs=1e-6)


@given(targets=finite, shift=tables(st.floats(-5, 5, width=32, allow_subnormal=False)))
def test_no_constant_number_has_a_smaller_error_than_the_baseline(targets, shift):
    variance = np.mean(np.var(targets, axis=0, dtype=np.float64))
    if variance < 1e-6:
        return  # constant targets are refused as no task

    def nmse(constant: np.ndarray) -> float:
        return float(np.mean((targets - constant) ** 2, dtype=np.float64) / variance)

    best, _ = Regression().baseline(targets)
    assert best == pytest.approx(nmse(targets.mean(axis=0, dtype=np.float64)), rel=1e-5)
    assert best <= nmse(targets.mean(axis=0, dtype=np.float64) + shift[0]) + 1e-5


SAMPLES, SIZE = 400, 200


def sampled_standard_error(objective, draw, errors_of) -> tuple[float, float]:
    """The spread over samples of the error of the distribution's best constant, and the mean standard error."""
    samples = [draw(np.random.default_rng(seed)) for seed in range(SAMPLES)]
    spread = float(np.std([errors_of(sample) for sample in samples]))
    return spread, float(np.mean([objective.baseline(sample)[1] for sample in samples]))


def test_the_standard_error_of_labels_is_the_spread_over_samples():
    spread, told = sampled_standard_error(
        Classification(),
        lambda generator: generator.choice(3, SIZE, p=[0.6, 0.3, 0.1]),
        lambda labels: np.mean(labels != 0),
    )
    assert told == pytest.approx(spread, rel=0.15)  # the spread of 400 samples is known to within 3.5 %


@pytest.mark.parametrize("shape", [(1,), (3, 2)], ids=["per sequence", "per token"])
def test_the_standard_error_of_numbers_is_the_spread_over_samples(shape):
    spread, told = sampled_standard_error(
        Regression(),
        lambda generator: generator.exponential(size=(SIZE, *shape)),
        lambda targets: np.mean((targets - 1) ** 2),  # mean 1 and variance 1
    )
    assert told == pytest.approx(spread, rel=0.2)


# A label per token, and classes that count alike.

TOKENS = 3
labels_of_tokens = st.lists(st.integers(-1, CHOICES - 1), min_size=EXAMPLES * TOKENS, max_size=EXAMPLES * TOKENS).map(
    lambda labels: np.array(labels, np.int32).reshape(EXAMPLES, TOKENS)
)
SHARES = (0.85, 0.05, 0.06, 0.04)


token_slopes = jax.jit(jax.grad(lambda answers, labels: Classification().loss(answers, labels)[0]))


@given(scores=finite | tied, labels=labels_of_tokens)
@settings(max_examples=30)
def test_tokens_without_a_label_count_for_nothing(scores, labels):
    if not np.any(labels >= 0):
        return
    answers = np.stack([scores, scores[::-1], -scores], axis=1)
    there = labels >= 0
    want = slow_grades(answers[there], labels[there])
    objective = Classification()
    grades = objective.grades(jnp.asarray(answers), jnp.asarray(labels))
    assert set(grades) == {"error", "error_noise", "cross_entropy"}
    for name in ("error", "cross_entropy"):
        assert float(grades[name]) == pytest.approx(want[name], rel=1e-5, abs=1e-5)
    loss, error = objective.loss(jnp.asarray(answers), jnp.asarray(labels))
    assert float(error) == pytest.approx(want["error"] * there.mean(), abs=1e-6)
    assert float(loss) == pytest.approx(want["cross_entropy"] * there.mean(), rel=1e-5, abs=1e-5)
    slopes = token_slopes(jnp.asarray(answers), jnp.asarray(labels))
    assert np.all(np.asarray(slopes)[~there] == 0)
    assert np.all(np.isfinite(slopes))


@given(scores=finite, labels=labels_of | labels_of_tokens)
@settings(max_examples=30)
def test_the_balanced_error_is_the_mean_over_classes_of_corrected_answers(scores, labels):
    labels = labels.astype(np.int32)
    if not np.any(labels >= 0):
        return
    answers = scores if labels.ndim == 1 else np.stack([scores, scores[::-1], -scores], axis=1)
    corrected = answers[labels >= 0].astype(np.float64) - np.log(SHARES)
    best = np.sort(corrected, axis=1)
    if np.min(best[:, -1] - best[:, -2]) < 1e-3:
        return  # rounding decides
    kept = labels[labels >= 0]
    wrong = corrected.argmax(axis=1) != kept
    want = np.mean([wrong[kept == label].mean() for label in np.unique(kept)])
    grades = Balanced(SHARES).grades(jnp.asarray(answers), jnp.asarray(labels))
    assert float(grades["balanced_error"]) == pytest.approx(want, abs=1e-5)


def test_a_rare_class_shows_in_the_balanced_error_and_not_in_the_share_of_wrong_answers():
    """Three tenths of a tenth are positive: which tenth it is, no share of wrong answers says."""
    generator = np.random.default_rng(0)
    suspect = generator.random(20_000) < 0.1
    labels = jnp.asarray((suspect & (generator.random(20_000) < 0.3)).astype(np.int32))
    chance = np.where(suspect, 0.3, 1e-4)
    knows = jnp.asarray(np.log(np.stack([1 - chance, chance], axis=1)).astype(np.float32))
    shares = (float(1 - labels.mean()), float(labels.mean()))
    plain, balanced = Classification(), Balanced(shares)
    assert float(plain.grades(knows, labels)["error"]) == pytest.approx(plain.baseline(np.asarray(labels))[0])
    assert float(balanced.grades(knows, labels)["balanced_error"]) < 0.05
    assert balanced.baseline(np.asarray(labels))[0] == 0.5
    uncorrected = Balanced((0.5, 0.5)).grades(knows, labels)["balanced_error"]
    assert float(uncorrected) == pytest.approx(0.5, abs=1e-3), "what corrects is the share of each class"


@pytest.mark.parametrize("kind", ["balanced", "tokens alike", "tokens apart", "balanced tokens"])
def test_the_stored_standard_error_is_the_spread_over_samples(kind):
    objective = Balanced((0.9, 0.1)) if "balanced" in kind else Classification()
    shape = (SIZE, 4) if "tokens" in kind else (SIZE,)

    def sample(seed: int) -> dict[str, float]:
        generator = np.random.default_rng(seed)
        labels = (generator.random(shape) < 0.1).astype(np.int32)
        flips = generator.random(shape) < 0.2
        if kind in ("tokens alike", "balanced tokens"):  # wrong throughout a sequence, or not at all
            flips = np.broadcast_to(flips[:, :1], shape)
        answers = 10 * np.eye(2, dtype=np.float32)[np.where(flips, 1 - labels, labels)]
        return {name: float(grade) for name, grade in graded(jnp.asarray(answers), jnp.asarray(labels)).items()}

    graded = jax.jit(objective.grades)
    samples = [sample(seed) for seed in range(SAMPLES)]
    spread = np.std([each[objective.error] for each in samples])
    told = np.mean([each[f"{objective.error}_noise"] for each in samples])
    assert told == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize("shape", [(SIZE,), (SIZE, 4)], ids=["examples", "tokens"])
def test_the_balanced_baseline_is_as_uncertain_as_random_answers(shape):
    """Per token it is what answers that are alike in a sequence have, at most."""

    def sample(seed: int) -> tuple[float, float]:
        generator = np.random.default_rng(seed)
        labels = (generator.random(shape[:1] + (1,) * (len(shape) - 1)) < 0.1).astype(np.int32)
        labels = np.broadcast_to(labels, shape)
        guesses = np.broadcast_to(generator.random(labels.shape[:1] + (1,) * (len(shape) - 1)) < 0.5, shape)
        wrong = guesses != labels
        error = np.mean([wrong[labels == label].mean() for label in (0, 1)])
        return float(error), Balanced((0.9, 0.1)).baseline(labels)[1]

    errors, told = zip(*map(sample, range(SAMPLES)), strict=True)
    assert np.mean(told) == pytest.approx(np.std(errors), rel=0.15)
