"""Claims about shares of wrong answers are judged by the numbers, and the published numbers bear them out."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from headcount.answer import ERROR_RATE, ErrorTable, Verdict
from headcount.papers.claims.labels import (
    first_fit_claim,
    length_costs_claim,
    levelling_claim,
    nearness_claim,
    no_gain_claim,
    overfitting_claim,
    reversal_turns_claim,
    surface_claim,
)
from headcount.papers.real_data.base import margin_of
from headcount.papers.real_data.marco import PUBLISHED_A, PUBLISHED_DELTA, _surface
from headcount.papers.real_data.passages import TRAINING, VALIDATED, VALIDATION

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
NAN = float("nan")


def of(accuracies, heads=(1, 2, 4), lengths=(8, 16, 32)) -> ErrorTable:
    """The table of wrong answers of these accuracies."""
    right = np.array(accuracies, float)
    axes = {"heads": heads[: len(right)], "length": lengths[: right.shape[1]]}
    return ErrorTable(axes=axes, errors=1 - right, metric=ERROR_RATE)


STEEP = [[0.6, 0.5, 0.4], [0.8, 0.75, 0.7], [0.99, 0.98, 0.97]]
LEVEL = [[0.6, 0.6, 0.6], [0.8, 0.8, 0.8], [0.99, 0.99, 0.99]]
RISING = [[0.4, 0.5, 0.6], [0.7, 0.75, 0.8], [0.97, 0.98, 0.99]]
TURNING = [[0.6, 0.5, 0.4], [0.8, 0.75, 0.7], [0.97, 0.98, 0.99]]
PEAKED = [[0.5, 0.5], [0.7, 0.6], [0.6, 0.5]]
HALF = ErrorTable(axes={"heads": (1, 2, 4), "length": (8, 16, 32)}, errors=np.full((3, 3), 0.5), metric=ERROR_RATE)
fits_first = partial(first_fit_claim, transition=4, small=0.05)
costs = partial(length_costs_claim, transition=4, margin=margin_of(10_000))
costs_of_few_examples = partial(length_costs_claim, transition=4, margin=margin_of(20))
levels_off = partial(levelling_claim, transition=4)
turns = partial(reversal_turns_claim, published=HALF, transition=4)
overfits = partial(overfitting_claim, margin=margin_of(10_000))
overfits_of_few_examples = partial(overfitting_claim, margin=margin_of(20))
gains_nothing = partial(no_gain_claim, margin=margin_of(10_000))
gains_nothing_of_few_examples = partial(no_gain_claim, margin=margin_of(20))
near = partial(nearness_claim, "training", published=HALF, whole=True)
near_of_less = partial(nearness_claim, "training", published=HALF, whole=False)


def surface(table):
    return surface_claim(_surface(table), a=PUBLISHED_A, delta=PUBLISHED_DELTA)


def following(**changes) -> ErrorTable:
    """Errors on a surface c T^b exp(a h / T^delta)."""
    numbers = {"a": -1.4, "b": 0.3, "c": 0.5, "delta": 0.25} | changes
    heads, lengths = np.array([2, 4, 6, 8]), np.array([8, 16, 32])
    exponent = numbers["a"] * heads[:, None] / lengths ** numbers["delta"]
    errors = numbers["c"] * lengths ** numbers["b"] * np.exp(exponent)
    return of(1 - np.minimum(errors, 1), heads=(2, 4, 6, 8))


SCATTERED = 1 - np.array([[0.9, 0.01, 0.9], [0.01, 0.9, 0.01], [0.9, 0.01, 0.9]])
JUDGED = {
    "fits first": (fits_first, of(STEEP), HOLDS),
    "fits first at the first length alone": (fits_first, of([row[:1] for row in STEEP]), HOLDS),
    "fits first: fewer do": (fits_first, of([STEEP[0], STEEP[2], STEEP[2]]), DIFFERS),
    "fits first: none do": (fits_first, of([STEEP[0], STEEP[0], STEEP[1]]), DIFFERS),
    "fits first: one length is not fitted": (fits_first, of([*STEEP[:2], [0.99, 0.99, 0.94]]), DIFFERS),
    "fits first: it was not tried": (fits_first, of(STEEP[:2]), UNDECIDED),
    "fits first: no fewer were tried": (fits_first, of(STEEP[2:], heads=(4,)), UNDECIDED),
    "costs": (costs, of(STEEP), HOLDS),
    "costs: it grows easier": (costs, of(RISING), DIFFERS),
    "costs: one of two grows easier": (costs, of([STEEP[0], RISING[1]]), DIFFERS),
    "costs: no change": (costs, of(LEVEL), UNDECIDED),
    "costs: within the noise of few examples": (costs_of_few_examples, of(STEEP), UNDECIDED),
    "costs: one length": (costs, of([row[:1] for row in STEEP]), UNDECIDED),
    "costs: many heads alone": (costs, of(STEEP[2:], heads=(4,)), UNDECIDED),
    "costs: the others are known": (costs, of([[0.6, 0.5, NAN], *STEEP[1:]]), HOLDS),
    "levels off": (levels_off, of(STEEP), HOLDS),
    "levels off: the toll grows": (levels_off, of([*LEVEL[:2], [0.99, 0.9, 0.7]]), DIFFERS),
    "levels off: one length": (levels_off, of([row[:1] for row in STEEP]), UNDECIDED),
    "levels off: one side": (levels_off, of(STEEP[:2]), UNDECIDED),
    "levels off: a hole": (levels_off, of([*STEEP[:2], [0.99, 0.99, NAN]]), UNDECIDED),
    "turns": (turns, of(TURNING), HOLDS),
    "turns: never": (turns, of(STEEP), DIFFERS),
    "turns: from the start": (turns, of(RISING), DIFFERS),
    "turns: two lengths": (turns, of([row[:2] for row in TURNING]), UNDECIDED),
    "turns: few heads alone": (turns, of(TURNING[:2]), UNDECIDED),
    "turns: the many have a hole": (turns, of([*TURNING[:2], [NAN, 0.98, 0.99]]), UNDECIDED),
    "turns: the others are known": (turns, of([[0.6, NAN, 0.4], *TURNING[1:]]), HOLDS),
    "overfits": (overfits, of(PEAKED), HOLDS),
    "overfits: the largest is best": (overfits, of(STEEP), DIFFERS),
    "overfits: at one length of two": (overfits, of([*PEAKED[:2], [0.6, 0.6]]), DIFFERS),
    "overfits: within the noise": (overfits_of_few_examples, of(PEAKED), UNDECIDED),
    "overfits: two head counts": (overfits, of(PEAKED[1:]), UNDECIDED),
    "overfits: a hole": (overfits, of([*PEAKED[:2], [0.6, NAN]]), UNDECIDED),
    "gains nothing": (gains_nothing, of([[0.5, 0.4], [0.6, 0.5], [0.5, 0.4]]), HOLDS),
    "gains nothing: it falls": (gains_nothing, of(STEEP[::-1]), HOLDS),
    "gains nothing: it gains": (gains_nothing, of(STEEP), DIFFERS),
    "gains nothing: it gains at one length": (gains_nothing, of([[0.5, 0.4], [0.6, 0.5], [0.5, 0.45]]), DIFFERS),
    "gains nothing: within the noise": (gains_nothing_of_few_examples, of(PEAKED), UNDECIDED),
    "gains nothing: a fall beyond the noise": (gains_nothing_of_few_examples, of([[0.9, 0.9], [0.1, 0.1]]), HOLDS),
    "gains nothing: one head count": (gains_nothing, of(STEEP[:1]), UNDECIDED),
    "gains nothing: a hole": (gains_nothing, of([*STEEP[:2], [0.5, 0.5, NAN]]), UNDECIDED),
    "near": (near, of([[0.46, 0.54], [0.5, NAN]]), HOLDS),
    "near: one is off": (near, of([[0.44, 0.55], [0.5, 0.5]]), DIFFERS),
    "near: nothing printed": (near, of([[0.5]], heads=(7,)), UNDECIDED),
    "near: of a smaller run": (near_of_less, of([[0.1, 0.5]]), UNDECIDED),
    "surface": (surface, following(), HOLDS),
    "surface: more heads err more": (surface, following(a=0.05, c=0.1), DIFFERS),
    "surface: longer is easier": (surface, following(b=-0.5, delta=0.0), DIFFERS),
    "surface: it scatters": (surface, of(SCATTERED, heads=(2, 4, 6)), DIFFERS),
    "surface: too few cells": (surface, of(STEEP[:2]), UNDECIDED),
    "surface: heads that are left out": (surface, of([[0.5] * 3] * 4, heads=(1, 12, 14, 16)), UNDECIDED),
}


@pytest.mark.parametrize("kind", JUDGED)
def test_a_claim_holds_differs_or_is_undecided(kind):
    claim, table, verdict = JUDGED[kind]
    judged = claim(table)
    assert judged.verdict is verdict, judged.evidence
    assert judged.statement.endswith(".")
    assert "nan" not in judged.evidence


@pytest.mark.parametrize(
    "kind", [kind for kind, (claim, t, _) in JUDGED.items() if claim is not surface and t.errors.shape == (3, 3)]
)
def test_no_evidence_names_a_cell_that_is_missing(kind):
    claim, table, _ = JUDGED[kind]
    for place in np.ndindex(table.errors.shape):
        for value in (NAN, 0.0, 1.0):
            errors = table.errors.copy()
            errors[place] = value
            if np.isfinite(errors).any(axis=0).all() and np.isfinite(errors).any(axis=1).all():
                assert "nan" not in claim(replace(table, errors=errors)).evidence


def test_published_validation_accuracy_is_level_with_8_candidates_and_falls_with_more():
    claim = no_gain_claim(VALIDATION, margin_of(VALIDATED))
    assert claim.verdict is HOLDS
    gains = VALIDATION.errors[0] - VALIDATION.errors[-1]
    assert abs(gains[0]) < margin_of(VALIDATED), "T = 8"
    assert (gains[1:] < -margin_of(VALIDATED)).all()


def test_the_surface_of_the_published_numbers_is_near_the_published_one():
    fit = _surface(TRAINING)
    assert fit.cells == 16, "2, 4, 6 and 8 heads at four lengths"
    assert fit.delta == pytest.approx(PUBLISHED_DELTA, abs=0.1)
    assert fit.a == pytest.approx(PUBLISHED_A, abs=0.3)
    assert fit.log_error < 0.15
