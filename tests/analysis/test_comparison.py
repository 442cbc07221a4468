"""Claims are judged by the numbers: those made to hold hold, those made to fail fail, and silence is undecided."""

import dataclasses

import numpy as np
import pytest

from headcount.analysis import ErrorTable, answer_from_table
from headcount.analysis.comparison import (
    PublishedTable,
    Verdict,
    drop_claim,
    growth_claims,
    length_growth,
    magnitude_claim,
    transition_claim,
)

from .tables import sharp, table

LENGTHS = (8, 16, 32)


def published(by_heads, *, growth=0.0, statistic="minimum") -> PublishedTable:
    values = table(by_heads, noise=0.0, growth=growth, lengths=LENGTHS).best
    heads = tuple(range(1, len(by_heads) + 1))
    return PublishedTable(
        source="a table",
        statistic=statistic,
        heads=heads,
        lengths=LENGTHS,
        values=values,
        std=np.full_like(values, np.nan),
    )


def split(below: float, above: float, transition: int = 4) -> ErrorTable:
    """A sharp table whose errors grow as length**below under the transition and length**above from it on."""
    low, high = (table(sharp(transition), growth=growth, noise=0.02) for growth in (below, above))
    few = np.array(low.heads) < transition
    return dataclasses.replace(low, errors=np.where(few[:, None, None], low.errors, high.errors))


FLAT = [0.02] * 6


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        (table(sharp(4)), Verdict.HOLDS),
        (table(sharp(3)), Verdict.DIFFERS),
        (table(FLAT, growth=1.0), Verdict.DIFFERS),
        (table(sharp(4), seeds=1), Verdict.UNDECIDED),
        (table(sharp(4)[:4], heads=(1, 2, 3, 4)), Verdict.UNDECIDED),
        (table(FLAT[:3], heads=(4, 5, 6), growth=1.0), Verdict.UNDECIDED),
    ],
    ids=["there", "elsewhere", "nowhere", "one seed", "nothing after it", "nothing before it"],
)
def test_a_transition_is_judged_by_its_place_and_where_it_could_have_been_seen(errors, verdict):
    assert transition_claim(errors, answer_from_table(errors), 4, "at 4").verdict is verdict


def test_growth_below_and_not_above_holds():
    below, above = growth_claims(split(0.5, -0.3), published(sharp(4)), 4)
    assert (below.verdict, above.verdict) == (Verdict.HOLDS, Verdict.HOLDS)
    assert "3 heads +0.5" in below.evidence
    assert "1 head " in below.evidence


def test_errors_that_shrink_below_and_grow_above_differ():
    below, above = growth_claims(split(-0.5, 0.6), published(sharp(4)), 4)
    assert (below.verdict, above.verdict) == (Verdict.DIFFERS, Verdict.DIFFERS)


def test_growth_is_undecided_with_one_length_and_with_one_side_only():
    one_length = table(sharp(4), lengths=(8,))
    assert {claim.verdict for claim in growth_claims(one_length, published(sharp(4)), 4)} == {Verdict.UNDECIDED}
    few = table(sharp(4)[:3], heads=(1, 2, 3))
    assert growth_claims(few, published(sharp(4)), 4)[1].verdict is Verdict.UNDECIDED


def test_a_missing_length_is_left_out_and_two_leave_the_claim_open():
    errors = split(0.5, -0.3)
    errors.errors[1, 2] = np.nan
    assert length_growth(errors)[1].slope == pytest.approx(0.5, abs=0.1)
    assert growth_claims(errors, published(sharp(4)), 4)[0].verdict is Verdict.HOLDS
    errors.errors[1, 1] = np.nan
    below, above = growth_claims(errors, published(sharp(4)), 4)
    assert (below.verdict, above.verdict) == (Verdict.UNDECIDED, Verdict.HOLDS)
    assert "not measured at two lengths: 2 heads" in below.evidence


def test_one_seed_has_slopes_of_no_width():
    for slope in length_growth(table(sharp(4), seeds=1, growth=0.4)):
        assert (slope.low, slope.high) == (pytest.approx(slope.slope), pytest.approx(slope.slope))


@pytest.mark.parametrize("growth", [-0.5, 0.0, 0.05, 0.2, 0.5])
def test_no_slope_both_grows_and_is_flat(growth):
    for slope in length_growth(table(sharp(4), growth=growth, noise=0.05)):
        assert not (slope.grows and slope.flat)


def test_a_slope_that_seeds_leave_open_is_undecided():
    below, _ = growth_claims(table(sharp(4), growth=0.12, noise=0.3), published(sharp(4)), 4)
    assert below.verdict is Verdict.UNDECIDED


def test_a_stuck_seed_moves_the_mean_and_not_the_verdict_and_is_told():
    errors = split(0.5, -0.3)
    errors.errors[3, 2, 0] = 5e-3
    _, above = growth_claims(errors, published(sharp(4), statistic="mean"), 4)
    assert above.verdict is Verdict.HOLDS
    assert "4 heads -0.29" in above.evidence
    assert ", of the means +" in above.evidence


@pytest.mark.parametrize(("after", "verdict"), [(5e-5, Verdict.HOLDS), (4e-3, Verdict.DIFFERS)])
def test_a_drop_is_a_factor_of_five_or_more(after, verdict):
    errors = table(sharp(4, after=after), noise=0.0)
    claim = drop_claim(errors, published(sharp(4)), 4)
    assert claim.verdict is verdict
    assert f"ours {5e-3 / after:.3g}-fold" in claim.evidence
    assert "published 100-fold" in claim.evidence


def test_a_drop_between_heads_not_measured_is_undecided():
    errors = table(sharp(4)[:3], heads=(1, 2, 3))
    assert drop_claim(errors, published(sharp(4)), 4).verdict is Verdict.UNDECIDED


def test_orders_of_magnitude_are_counted_cell_by_cell():
    errors = table(sharp(4), noise=0.0)
    assert magnitude_claim(errors, published(sharp(4))).verdict is Verdict.HOLDS
    errors.errors[2, 1] *= 40
    claim = magnitude_claim(errors, published(sharp(4)))
    assert claim.verdict is Verdict.DIFFERS
    assert "17 of 18 cells" in claim.evidence
    assert "3 heads at length 16, is 40-fold above" in claim.evidence


def test_a_published_mean_is_compared_with_our_mean():
    errors = table(sharp(4), noise=0.0)
    errors.errors[3, 0] = [5e-5, 5e-5, 5e-5, 5e-2]
    assert magnitude_claim(errors, published(sharp(4))).verdict is Verdict.HOLDS
    assert magnitude_claim(errors, published(sharp(4), statistic="mean")).verdict is Verdict.DIFFERS


def test_heads_and_lengths_without_a_published_number_are_not_compared():
    errors = table(sharp(4), lengths=(8, 999))
    theirs = published(sharp(4)[:3])
    beside = theirs.beside(errors)
    assert np.isfinite(beside).sum() == 3
    assert "3 of 3 cells" in magnitude_claim(errors, theirs).evidence
    nothing = magnitude_claim(table(sharp(4), lengths=(7, 9)), theirs)
    assert nothing.verdict is Verdict.UNDECIDED
