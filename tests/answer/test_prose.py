"""Sentences about any table: they are true of it, name their head counts, and state no factor that is not there."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer import ERROR_RATE, ErrorTable, answer
from headcount.answer.baselines import Baseline, baselines_of
from headcount.answer.metric import BALANCED_ERROR
from headcount.answer.prose import prose
from headcount.answer.words import decimal, listed

from .tables import farthest, four_maxima, rank_table_of, sharp, table

LINEAR = Baseline("linear", "a linear model", 0.43)
MEAN = Baseline("constant", "predicting the mean", 1.0)
LEVELS = st.lists(st.floats(-5, 0.1), min_size=1, max_size=6)


def well_formed(sentences: tuple[str, ...]) -> None:
    assert 1 <= len(sentences) <= 4
    for sentence in sentences:
        assert re.fullmatch(r"[A-Z0-9].*\.", sentence), sentence
        assert not re.search(r"\b1 heads\b|\bnan\b|\binf\b|\.\.|None", sentence), sentence


@settings(max_examples=60, deadline=None)
@given(
    levels=LEVELS,
    seeds=st.integers(1, 4),
    noise=st.floats(0, 0.2),
    floor=st.sampled_from([0.0, 0.11]),
    labels=st.booleans(),
    beside=st.booleans(),
    examples=st.sampled_from([None, 50, 2000]),
)
def test_prose_of_any_table_is_well_formed_and_states_only_real_factors(
    levels, seeds, noise, floor, labels, beside, examples
):
    errors = table(10 ** np.array(levels), seeds=seeds, noise=noise, floor=floor)
    if labels:
        errors = replace(errors, errors=np.minimum(errors.errors, 1.0), metric=ERROR_RATE, baseline=np.array(0.5))
    found = answer(errors, resamples=20)
    sentences = prose(errors, found, (MEAN, LINEAR) if beside else (), examples=examples)
    well_formed(sentences)
    stated = re.findall(r"(\S+) times less|factor of (\S+),", " ".join(sentences))
    factors = [float((less or more).replace(",", "")) for less, more in stated]
    assert all(factor >= 1.1 for factor in factors)
    if found.kind == "floor" or found.floor is not None:
        assert not factors
    if found.heads is not None:
        assert re.search(rf"\b{found.heads}\b", sentences[0])
    assert ("linear" in " ".join(sentences)) == (beside and seeds > 1)


@pytest.mark.parametrize("error", [farthest, four_maxima, lambda heads, rank: 1.0, lambda heads, rank: 1e-4])
def test_prose_of_maps(error):
    errors = rank_table_of(error)
    sentences = prose(errors, answer(errors, resamples=20), (MEAN, LINEAR))
    well_formed(sentences)
    assert "a linear model 0.43" in " ".join(sentences)


def test_an_error_of_rounding_is_exact_and_no_number():
    errors = table(sharp(4))
    words = " ".join(prose(errors, answer(errors), (MEAN, replace(LINEAR, error=3.8e-20))))
    assert "a linear model exact (below 1e-9)" in words
    assert "e-20" not in words


def test_one_rank_is_no_map():
    errors = table(sharp(4))
    with_rank = ErrorTable(axes=dict(errors.axes) | {"rank": (4,)}, errors=errors.errors[..., None])
    assert prose(with_rank, answer(with_rank)) == prose(errors, answer(errors))


def test_where_nothing_is_learned_nothing_is_said_of_what_attention_buys():
    errors = table([0.99] * 6, noise=0.0)
    words = " ".join(prose(errors, answer(errors), (MEAN, replace(LINEAR, error=0.97)), examples=600))
    assert "learns" in words
    assert "buys nothing" not in words


@pytest.mark.parametrize(
    ("error", "examples", "parts", "wanted"),
    [
        (0.104, 40, {}, "buys nothing"),
        (0.14, 40, {}, "cannot be told apart with 40"),
        (0.14, 4000, {}, ""),
        (0.05, 4000, {}, "better than"),
        (0.05, 4000, {"converged": False}, "so far"),
        (0.104, 40, {"converged": False}, ""),
    ],
)
def test_how_a_model_without_attention_compares(error, examples, parts, wanted):
    errors = table([1e-9] * 6, floor=0.10, noise=0.0, lengths=(24,))
    words = " ".join(prose(errors, answer(errors), (MEAN, replace(LINEAR, error=error)), examples=examples, **parts))
    phrases = {"buys nothing", "cannot be told apart with 40", "better than", "so far"}
    assert wanted in words
    assert ("buys nothing" in words) == (wanted in ("buys nothing", "better than") and not parts)
    assert any(phrase in words for phrase in phrases) == bool(wanted)


def test_training_that_failed_is_no_answer_about_attention():
    errors = table([0.99] * 6, noise=0.0)
    words = " ".join(prose(errors, answer(errors), (MEAN, LINEAR), examples=600))
    assert "training failed" in words
    assert "buys nothing" not in words


@pytest.mark.parametrize(("wrong", "failed"), [(2, True), (25, False)])
def test_training_did_not_fail_where_wrong_answers_differ_by_chance(wrong, failed):
    """Of 1,000 examples 40 are of the rare class; the models are wrong on 33."""
    noise = (0.04 * 0.96 / 1000) ** 0.5
    errors = replace(table([0.033] * 3, noise=0.0), metric=ERROR_RATE, baseline=np.array(0.04), noise=np.array(noise))
    rival = replace(LINEAR, error=wrong / 1000)
    words = " ".join(prose(errors, answer(errors), (replace(MEAN, error=0.04), rival), examples=1000))
    assert "learns the task" in words
    assert ("training failed" in words) == failed


def test_a_balanced_error_is_called_so_and_is_known_less_well_than_the_examples_say():
    """30 positives of 1,000: the baseline's standard error says as much as 116 examples would."""
    noise = 0.25 * (1 / 970 + 1 / 30) ** 0.5
    levels = {"metric": BALANCED_ERROR, "baseline": np.array(0.5)}
    flat = table([1e-9] * 3, floor=0.20, noise=0.0, lengths=(24,))
    words = {}
    for told in (noise, 1e-3):
        errors = replace(flat, errors=flat.errors, **levels, noise=np.array(told))
        rival = replace(LINEAR, error=0.25)
        words[told] = " ".join(prose(errors, answer(errors), (replace(MEAN, error=0.5), rival), examples=1000))
    assert "the balanced error is 20 %" in words[noise]
    assert "cannot be told apart with 1,000" in words[noise]
    assert "cannot be told apart" not in words[1e-3]


def test_a_floor_with_a_low_training_error_may_be_too_few_examples():
    flat = table([1e-9] * 6, floor=0.11, noise=0.0, lengths=(24,))
    noted = replace(LINEAR, note="fitted on 2,000 of 8,000 training examples")
    for overfits in (True, False):
        words = " ".join(prose(flat, answer(flat), (MEAN, noted), overfits=overfits))
        assert ("too few examples" in words) == overfits
        assert "0.43 (fitted on 2,000 of 8,000" in words


def test_a_sharp_drop_in_words():
    errors = table(sharp(4), noise=0.0, growth=0.2)
    first, *_ = prose(errors, answer(errors))
    below = "With 3 heads the error is 0.0050 to 0.0066 (lengths 8 to 32)"
    assert first == f"{below}; with 4 it is 100 times less; 5 and 6 add nothing."


def test_nothing_solves_it():
    """The column of a spike on a sine, and the same beside a baseline that does better or as well."""
    flat = table([1e-9] * 6, floor=0.11, noise=0.0, lengths=(24,))
    found = answer(flat)
    assert (found.kind, found.heads, found.floor) == ("floor", 1, pytest.approx(0.11))
    assert found.sentence == "1 head does as well as 6, and none gets below 0.11"
    words = " ".join(prose(flat, found, (MEAN, LINEAR)))
    assert "0.43" in words
    assert "noise in y" in words
    assert "buys nothing" not in words
    equal = " ".join(prose(flat, found, (MEAN, replace(LINEAR, error=0.112))))
    assert "buys nothing" in equal
    better = " ".join(prose(flat, found, (MEAN, replace(LINEAR, error=0.05))))
    assert "not all noise" in better


def test_differences_within_the_sampling_error_are_no_trend():
    falling = table([0.12, 0.119, 0.118, 0.117, 0.114, 0.109], noise=0.0, lengths=(8,))
    found = answer(falling)
    assert found.kind == "none"
    assert "no trend" in prose(falling, found, examples=100)[0]
    assert "no trend" not in prose(falling, found, examples=100_000)[0]


def test_baselines_are_those_of_the_longest_length_and_the_first_draw():
    def entry(name: str, error: float | None, length: int = 32, data_seed: int = 0) -> dict:
        return {"name": name, "label": name, "error": error, "length": length, "data_seed": data_seed}

    stored = [entry("linear", 0.1, length=8), entry("linear", 0.9, data_seed=1), entry("linear", 0.4)]
    stored += [entry("pooled", 0.3), entry("neighbours", None), entry("constant", 1.0)]
    found = baselines_of(table(sharp(2)), stored)
    assert [(each.name, each.error) for each in found] == [("constant", 1.0), ("pooled", 0.3), ("linear", 0.4)]
    labels = replace(table(sharp(2)), metric=ERROR_RATE, baseline=np.array(0.4))
    assert [each.error for each in baselines_of(labels, [])] == [0.4]


@given(st.floats(1e-9, 1e4))
@settings(max_examples=50, deadline=None)
def test_numbers_keep_two_digits_and_are_plain_from_a_thousandth(value):
    assert float(decimal(value)) == pytest.approx(value, rel=0.051)
    assert ("e" in decimal(value)) == (float(f"{value:.1e}") < 1e-3)


def test_counts_are_listed_as_people_do():
    assert [listed(counts) for counts in ([5], [5, 6], [5, 6, 7], [1, 2, 8])] == [
        "5",
        "5 and 6",
        "5 to 7",
        "1, 2 and 8",
    ]
