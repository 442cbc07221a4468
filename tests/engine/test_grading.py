"""Grades are the obvious loops over examples and answers."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.engine.grading import ERROR, grades_of, loss_of, respond, scores
from headcount.models import EncoderSpec, init_encoder, predict

from ..tasks.laws import compile_quickly  # noqa: F401
from ..tolerance import assert_close

EXAMPLES, CHOICES = 5, 4
kinds = pytest.mark.parametrize("graded_by", ["class", "choice"])
labels_of = st.lists(st.integers(0, CHOICES - 1), min_size=EXAMPLES, max_size=EXAMPLES).map(np.array)


def tables(numbers: st.SearchStrategy) -> st.SearchStrategy[np.ndarray]:
    row = st.lists(numbers, min_size=CHOICES, max_size=CHOICES)
    return st.lists(row, min_size=EXAMPLES, max_size=EXAMPLES).map(lambda rows: np.array(rows, np.float32))


scored = tables(st.floats(-20, 20, width=32, allow_subnormal=False))  # compiled code takes those for 0
tied = tables(st.sampled_from([-1.0, 0.0, 0.5]))
broken = tables(st.sampled_from([-1.0, 0.0, 2.0, float("nan")]))


def as_answers(graded_by: str, found: np.ndarray, query: float | None = None):
    """Scores as a model answers them; `query` is what it says at the query's own token."""
    if graded_by == "class":
        return jnp.asarray(found)
    behind = np.zeros((len(found), 0)) if query is None else np.full((len(found), 1), query)
    return jnp.asarray(np.concatenate([found, behind], axis=1)[..., None], jnp.float32)


def slowly(found: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """One example at a time; the right answer must beat every other, and nothing beats or is beaten by NaN."""
    wrong, ranks, entropies = [], [], []
    for row, label in zip(found.astype(np.float64), labels, strict=True):
        beaten = sum(bool(row[label] > score) for place, score in enumerate(row) if place != label)
        ranks.append(len(row) - beaten)
        wrong.append(beaten < len(row) - 1)
        largest = max(row)
        entropies.append(largest + math.log(sum(math.exp(score - largest) for score in row)) - row[label])
    means = {"error": wrong, "mrr": [1 / rank for rank in ranks], "cross_entropy": entropies}
    return {name: float(np.mean(values)) for name, values in means.items()}


def wanted(graded_by: str) -> set[str]:
    return {"error", "cross_entropy"} | ({"mrr"} if graded_by == "choice" else set())


@kinds
@settings(deadline=None, max_examples=40)
@given(found=scored | tied, labels=labels_of)
def test_grades_are_the_obvious_loop(graded_by, found, labels):
    want = slowly(found, labels)
    got = grades_of(graded_by, CHOICES)(as_answers(graded_by, found), jnp.asarray(labels))
    assert set(got) == wanted(graded_by)
    for name, grade in got.items():
        assert_close(np.asarray(grade), np.float32(want[name]), name)


@kinds
@settings(deadline=None, max_examples=40)
@given(found=scored | tied, labels=labels_of)
def test_the_loss_is_the_cross_entropy_and_the_error_is_told(graded_by, found, labels):
    want = slowly(found, labels)
    loss, error = loss_of(graded_by, CHOICES)(as_answers(graded_by, found), jnp.asarray(labels))
    assert_close(np.asarray(loss), np.float32(want["cross_entropy"]))
    assert_close(np.asarray(error), np.float32(want["error"]))


@kinds
@settings(deadline=None, max_examples=40)
@given(found=broken, labels=labels_of)
def test_what_is_not_a_number_is_never_right(graded_by, found, labels):
    answers = as_answers(graded_by, found)
    got = grades_of(graded_by, CHOICES)(answers, jnp.asarray(labels))
    _, error = loss_of(graded_by, CHOICES)(answers, jnp.asarray(labels))
    right = [row[label] == max(row) and not np.any(np.isnan(row)) for row, label in zip(found, labels, strict=True)]
    assert float(got["error"]) >= 1 - np.mean(right) - 1e-6
    assert float(error) == pytest.approx(float(got["error"]))
    finite = np.where(np.isnan(found), 1e9, found)  # as if what is NaN beat everyone else, and nobody if it is right
    finite[np.arange(EXAMPLES), labels] = np.where(
        np.isnan(found[np.arange(EXAMPLES), labels]), -1e9, found[np.arange(EXAMPLES), labels]
    )
    assert float(got["error"]) == pytest.approx(slowly(finite, labels)["error"])
    if graded_by == "choice":
        assert float(got["mrr"]) == pytest.approx(slowly(finite, labels)["mrr"])


@kinds
def test_a_model_that_scores_all_alike_has_found_nothing(graded_by):
    labels = jnp.arange(EXAMPLES) % CHOICES
    got = grades_of(graded_by, CHOICES)(as_answers(graded_by, np.zeros((EXAMPLES, CHOICES), np.float32)), labels)
    assert float(got["error"]) == 1
    assert float(got["cross_entropy"]) == pytest.approx(math.log(CHOICES))
    if graded_by == "choice":
        assert float(got["mrr"]) == 1 / CHOICES


@settings(deadline=None, max_examples=20)
@given(found=scored, labels=labels_of, query=st.sampled_from([-1e6, 0.0, 1e6, float("nan")]))
def test_the_query_s_own_token_is_never_chosen(found, labels, query):
    for of in (grades_of("choice", CHOICES), loss_of("choice", CHOICES)):
        alone, behind = (of(as_answers("choice", found, token), jnp.asarray(labels)) for token in (None, query))
        assert jax.tree.map(float, alone) == jax.tree.map(float, behind)


@kinds
def test_what_is_compared_is_in_single_precision(graded_by):
    found = np.arange(EXAMPLES * CHOICES, dtype=np.float32).reshape(EXAMPLES, CHOICES)
    compared = scores(graded_by, as_answers(graded_by, found, 0.0).astype(jnp.bfloat16), CHOICES)
    assert compared.dtype == jnp.float32
    assert np.array_equal(compared, found)


def test_a_distance_is_a_mean_square_and_reported_as_a_share_of_the_variance():
    generator = np.random.default_rng(0)
    answers, targets = generator.normal(size=(2, EXAMPLES, 3)).astype(np.float32)
    mean = np.mean((answers - targets) ** 2)
    loss, error = loss_of("distance", 3)(jnp.asarray(answers), jnp.asarray(targets))
    assert_close(np.asarray(loss), mean)
    assert_close(np.asarray(error), mean)
    got = grades_of("distance", 3)(jnp.asarray(answers), jnp.asarray(targets))
    assert set(got) == {"nmse"}
    assert_close(np.asarray(got["nmse"]), mean / np.mean(np.var(targets, axis=0)))


@kinds
def test_head_counts_are_compared_by_a_grade_that_is_there(graded_by):
    answers = as_answers(graded_by, np.ones((EXAMPLES, CHOICES), np.float32))
    assert ERROR[graded_by] in grades_of(graded_by, CHOICES)(answers, jnp.zeros(EXAMPLES, int))


# Several sequences.

SPEC = EncoderSpec(heads=1, rank=2, width=3, hidden=3, answered_at="query", dropout=0.5)


def test_sequences_are_answered_one_by_one():
    model = init_encoder(SPEC, 0, length=4, dim=3, outputs=1)
    several = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    got, alone = jax.jit(respond)(model, several), jax.jit(predict)
    assert got.shape == (3, 1)
    for sequence, answer in zip(several, got, strict=True):
        assert_close(answer, alone(model, sequence))
    assert_close(jax.jit(respond)(model, several[0]), got[0])


def test_every_sequence_drops_its_own():
    model = init_encoder(SPEC, 0, length=4, dim=3, outputs=1)
    same = np.tile(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32), (6, 1, 1))
    dropping = jax.jit(respond)
    answers = np.asarray(dropping(model, same, jr.key(0)))
    assert len(np.unique(answers.round(4))) > 1
    assert np.array_equal(answers, dropping(model, same, jr.key(0)))
    assert not np.array_equal(answers, dropping(model, same, jr.key(1)))
