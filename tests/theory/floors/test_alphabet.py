"""No hard heads have less error than the enumerated floor, and orders that attain it are given."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.models import ClassTokenSpec
from headcount.papers.beyond import alphabet as study
from headcount.tasks import AlphabetMaxima, alphabet_values
from headcount.theory import alphabet_errors, alphabet_floor, error_of_orders
from headcount.theory.floors.alphabet import MAX_WORK, score_gap_bound, set_probabilities, set_targets, work

drawn = settings(max_examples=10, deadline=None)
sizes = st.tuples(st.integers(1, 3), st.integers(2, 4), st.integers(1, 9), st.integers(0, 99))


def all_sequences(symbols: int, length: int) -> np.ndarray:
    return np.array(list(itertools.product(range(symbols), repeat=length)))


def test_sets_have_the_probabilities_and_targets_of_all_sequences():
    values, sequences = alphabet_values(2, 4), all_sequences(4, 5)
    contained = np.bitwise_or.reduce(1 << sequences, axis=1)
    np.testing.assert_allclose(set_probabilities(4, 5), np.bincount(contained, minlength=16) / len(sequences))
    np.testing.assert_allclose(set_targets(values)[contained], values[:, sequences].max(axis=2).sum(axis=0))


@drawn
@given(sizes, st.data())
def test_the_orders_of_a_floor_attain_it_and_no_others_are_below(size, data):
    intrinsic_dim, symbols, length, seed = size
    values = alphabet_values(intrinsic_dim, symbols, seed)
    if length == 1:  # every order tells the one symbol
        assert alphabet_floor(values, 1, 1).nmse == 0
        return
    for heads in (1, 2):
        floor = alphabet_floor(values, heads, length)
        assert len(floor.orders) == heads
        assert error_of_orders(values, floor.orders, length) == pytest.approx(floor.nmse, abs=1e-9)
        others = data.draw(st.lists(st.permutations(range(symbols)), min_size=heads, max_size=heads))
        assert error_of_orders(values, tuple(map(tuple, others)), length) >= floor.nmse - 1e-9


@drawn
@given(sizes)
def test_more_heads_are_never_worse_and_as_many_as_maxima_are_enough(size):
    intrinsic_dim, symbols, length, seed = size
    values = alphabet_values(intrinsic_dim, symbols, seed)
    floors = [alphabet_floor(values, heads, length + 1).nmse for heads in range(1, intrinsic_dim + 1)]
    assert floors == sorted(floors, reverse=True)
    assert floors[-1] == 0


def test_a_floor_does_not_depend_on_names_or_units():
    values = alphabet_values(3, 4, 5)
    floor = alphabet_floor(values, 1, 6).nmse
    assert alphabet_floor(3 * values[:, [2, 0, 3, 1]] + 1, 1, 6).nmse == pytest.approx(floor)


@pytest.mark.parametrize("length", study.FLOORS)
def test_the_study_carries_the_enumerated_floors(length):
    values = alphabet_values(study.INTRINSIC_DIM, study.SYMBOLS, study.TASK_SEED)
    floors = [alphabet_floor(values, heads, length).nmse for heads in (1, 2)]
    np.testing.assert_allclose(study.FLOORS[length][:2], floors, atol=1e-6)
    assert study.FLOORS[length][2:] == (0.0, 0.0)


@pytest.mark.parametrize(("symbols", "heads"), [(9, 2), (6, 3), (40, 1)])
def test_too_many_orders_are_refused_with_an_alphabet_that_is_not(symbols, heads):
    with pytest.raises(InputError, match=str(symbols)) as refused:
        alphabet_floor(alphabet_values(heads + 1, symbols), heads, 4)
    assert (refused.value.what, refused.value.given) == ("alphabet", symbols)
    right = [int(word) for word in refused.value.needed.split() if word.isdigit()]
    assert not right or work(right[0], heads) <= MAX_WORK < work(right[0] + 1, heads)


def test_bad_values_and_orders_are_refused():
    for values in (np.full((2, 3), np.nan), np.ones((2, 3))):
        with pytest.raises(InputError):
            alphabet_floor(values, 1, 4)
    with pytest.raises(InputError, match=r"\(0, 0, 1\)"):
        error_of_orders(np.eye(3), ((0, 0, 1),), 4)


@pytest.mark.slow
def test_a_model_made_hard_is_never_below_the_floor_and_its_soft_error_is_exact():
    task = AlphabetMaxima(length=4, intrinsic_dim=2, symbols=3)
    tokens = np.eye(3, dtype=np.float32)[all_sequences(3, 4)]
    targets = np.asarray(task.values)[:, all_sequences(3, 4)].max(axis=2).sum(axis=0)
    model = ClassTokenSpec(heads=1, head_dim=2, hidden=8).init(0, length=4, dim=3, outputs=1)
    errors = alphabet_errors(model, task)
    assert errors.hard >= errors.floor
    answers = np.asarray(jax.jit(jax.vmap(model))(tokens))[:, 0]
    assert errors.soft == pytest.approx(np.mean((answers - targets) ** 2) / np.var(targets), rel=1e-4)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kv_heads", 1), ("window", 2), ("causal", True), ("attention", "hard"), ("positions", "additive")],
)
def test_a_model_that_reads_otherwise_is_refused(field, value):
    task = AlphabetMaxima(length=4, intrinsic_dim=2, symbols=3)
    model = ClassTokenSpec(heads=2, head_dim=2, hidden=8, **{field: value}).init(0, length=4, dim=3, outputs=1)
    with pytest.raises(InputError, match=field):
        alphabet_errors(model, task)


@drawn
@given(st.integers(2, 30), st.floats(0.1, 1e4), st.integers(0, 99))
def test_soft_heads_with_a_wide_score_gap_are_hard(length, slope, seed):
    generator = np.random.default_rng(seed)
    gap = score_gap_bound(length, 2, 1.0, slope, 1e-2).value
    assert gap is not None
    scores, values = gap * np.arange(4), generator.uniform(-1, 1, (4, 2))
    symbols = generator.integers(4, size=length)
    weights = np.exp(scores[symbols] - scores[symbols].max())
    soft = weights @ values[symbols] / weights.sum()
    assert slope * np.linalg.norm(soft - values[symbols.max()]) <= 1e-2 * (1 + 1e-9)
