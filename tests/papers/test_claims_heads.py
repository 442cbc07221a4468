"""Claims about heads and length are judged by the numbers: they hold, differ, or stay undecided."""

from dataclasses import replace

import numpy as np
import pytest

from headcount.answer import ErrorTable, Verdict, answer
from headcount.papers.claims.heads import (
    apart_claim,
    drop_claim,
    growth_claims,
    length_growth,
    magnitude_claim,
    reversal_claims,
    transition_claim,
)
from headcount.papers.head_count.width import (
    falls_claim,
    flatter_claim,
    longer_is_worse_claim,
    missing_head_claim,
    width_fits,
)

from ..answer.tables import sharp, table

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
LENGTHS = (8, 16, 32)
FLAT = [0.02] * 6


def published(by_heads, *, growth=0.0, statistic="minimum") -> ErrorTable:
    printed = table(by_heads, noise=0.0, growth=growth, lengths=LENGTHS, seeds=1).reduced("seed")
    return replace(printed, source="a table", statistic=statistic)


def split(below: float, above: float, transition: int = 4, noise: float = 0.02) -> ErrorTable:
    """A sharp table whose errors grow as length**below under the transition and length**above from it on."""
    low, high = (table(sharp(transition), growth=growth, noise=noise) for growth in (below, above))
    few = np.array(low.values("heads")) < transition
    return replace(low, errors=np.where(few[:, None, None], low.errors, high.errors))


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        (table(sharp(4)), HOLDS),
        (table(sharp(3)), DIFFERS),
        (table(FLAT, growth=1.0), DIFFERS),
        (table(sharp(4), seeds=1), UNDECIDED),
        (table(sharp(4)[:4], heads=(1, 2, 3, 4)), UNDECIDED),
        (table(FLAT[:3], heads=(4, 5, 6), growth=1.0), UNDECIDED),
    ],
    ids=["there", "elsewhere", "nowhere", "one seed", "nothing after it", "nothing before it"],
)
def test_a_transition_is_judged_by_its_place_and_where_it_could_have_been_seen(errors, verdict):
    assert transition_claim(errors, answer(errors), 4, "at 4").verdict is verdict


def test_growth_below_and_not_above_holds():
    below, above = growth_claims(split(0.5, -0.3), published(sharp(4)), 4)
    assert (below.verdict, above.verdict) == (HOLDS, HOLDS)
    assert "3 heads +0.5" in below.evidence
    assert "1 head " in below.evidence


def test_errors_that_shrink_below_and_grow_above_differ():
    below, above = growth_claims(split(-0.5, 0.6), published(sharp(4)), 4)
    assert (below.verdict, above.verdict) == (DIFFERS, DIFFERS)


def test_growth_is_undecided_with_one_length_with_one_side_and_where_seeds_leave_it_open():
    one_length = table(sharp(4), lengths=(8,))
    assert {claim.verdict for claim in growth_claims(one_length, published(sharp(4)), 4)} == {UNDECIDED}
    few = table(sharp(4)[:3], heads=(1, 2, 3))
    assert growth_claims(few, published(sharp(4)), 4)[1].verdict is UNDECIDED
    assert growth_claims(table(sharp(4), growth=0.12, noise=0.3), published(sharp(4)), 4)[0].verdict is UNDECIDED


def test_a_missing_length_is_left_out_and_two_leave_the_claim_open():
    errors = split(0.5, -0.3)
    errors.errors[1, 2] = np.nan
    assert length_growth(errors)[2].value == pytest.approx(0.5, abs=0.1)
    assert growth_claims(errors, published(sharp(4)), 4)[0].verdict is HOLDS
    errors.errors[1, 1] = np.nan
    below, above = growth_claims(errors, published(sharp(4)), 4)
    assert (below.verdict, above.verdict) == (UNDECIDED, HOLDS)
    assert "2 heads" in below.evidence


def test_one_seed_has_slopes_of_no_width():
    for slope in length_growth(table(sharp(4), seeds=1, growth=0.4)).values():
        assert (slope.low, slope.high) == (pytest.approx(slope.value), pytest.approx(slope.value))


def test_a_stuck_seed_moves_the_mean_and_not_the_verdict_and_is_shown():
    errors = split(0.5, -0.3)
    errors.errors[3, 2, 0] = 5e-3
    _, above = growth_claims(errors, published(sharp(4), statistic="mean"), 4)
    assert above.verdict is HOLDS
    assert "4 heads -0.29" in above.evidence
    assert ", of the means +" in above.evidence


@pytest.mark.parametrize(("after", "verdict"), [(5e-5, HOLDS), (4e-3, DIFFERS)])
def test_a_drop_is_a_factor_of_five_or_more(after, verdict):
    claim = drop_claim(table(sharp(4, after=after), noise=0.0), published(sharp(4)), 4)
    assert claim.verdict is verdict
    assert f"ours {5e-3 / after:.3g}-fold" in claim.evidence
    assert "published 100-fold" in claim.evidence


def test_a_drop_between_heads_not_measured_is_undecided():
    assert drop_claim(table(sharp(4)[:3], heads=(1, 2, 3)), published(sharp(4)), 4).verdict is UNDECIDED


def test_orders_of_magnitude_are_counted_cell_by_cell():
    errors = table(sharp(4), noise=0.0)
    assert magnitude_claim(errors, published(sharp(4))).verdict is HOLDS
    errors.errors[2, 1] *= 40
    claim = magnitude_claim(errors, published(sharp(4)))
    assert claim.verdict is DIFFERS
    assert "17 of 18 cells" in claim.evidence
    assert "(heads 3, length 16) is 40-fold above" in claim.evidence


def test_a_published_mean_is_compared_with_our_mean():
    errors = table(sharp(4), noise=0.0)
    errors.errors[3, 0] = [5e-5, 5e-5, 5e-5, 5e-2]
    assert magnitude_claim(errors, published(sharp(4))).verdict is HOLDS
    assert magnitude_claim(errors, published(sharp(4), statistic="mean")).verdict is DIFFERS


def test_heads_and_lengths_without_a_published_number_are_not_compared():
    theirs = published(sharp(4)[:3])
    assert "3 of 3 cells" in magnitude_claim(table(sharp(4), lengths=(8, 999)), theirs).evidence
    assert magnitude_claim(table(sharp(4), lengths=(7, 9)), theirs).verdict is UNDECIDED
    nothing = replace(theirs, errors=np.zeros_like(theirs.errors))
    assert magnitude_claim(table(sharp(4)), nothing).verdict is UNDECIDED, "zero has no magnitude"


@pytest.mark.parametrize(
    ("errors", "verdicts"),
    [
        (split(0.5, -0.3), (HOLDS, HOLDS)),
        (split(-0.5, 0.5), (DIFFERS, DIFFERS)),
        (table(sharp(4), lengths=(8,)), (UNDECIDED, UNDECIDED)),
        (split(0.5, -0.3).select(heads=[1, 2, 3]), (HOLDS, UNDECIDED)),
    ],
    ids=["turns", "turns the wrong way", "one length", "few heads alone"],
)
def test_reversals_are_judged_on_both_sides(errors, verdicts):
    claims = reversal_claims(errors, published(sharp(4)), 4)
    assert tuple(claim.verdict for claim in claims) == verdicts


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        (table(sharp(4)), HOLDS),
        (table(FLAT), DIFFERS),
        (table(sharp(4)).select(heads=[4, 5]), UNDECIDED),
        (table(sharp(4)).select(heads=[1]), UNDECIDED),
    ],
)
def test_errors_on_both_sides_of_d_lie_apart_or_not(errors, verdict):
    assert apart_claim(errors, 4).verdict is verdict


def widths(power, *, growth=0.2, four=1e-4, heads=(1, 2, 3, 4), hidden=(8, 16, 32, 64), lengths=(8, 32)) -> ErrorTable:
    """Errors hidden**power(length), times length**growth; four heads err by `four` of that."""
    errors = [
        [[(four if h == 4 else 0.1 / h) * n ** power(t) * t**growth for t in lengths] for n in hidden] for h in heads
    ]
    axes = {"heads": heads, "hidden": hidden, "length": lengths, "seed": (0, 1)}
    return ErrorTable(axes=axes, errors=np.array(errors)[..., None] * np.array([1.0, 1.1]))


def steady(_):
    return -0.5


def flattening(length):
    return -4.0 / length


WIDTH = {
    "falls": (falls_claim, widths(steady), HOLDS),
    "falls: it grows": (falls_claim, widths(lambda _: 0.5), DIFFERS),
    "falls: one width": (falls_claim, widths(steady, hidden=(8,)), UNDECIDED),
    "falls: two widths": (falls_claim, widths(steady, hidden=(8, 16)), UNDECIDED),
    "longer": (longer_is_worse_claim, widths(steady), HOLDS),
    "longer is easier": (longer_is_worse_claim, widths(steady, growth=-0.5), DIFFERS),
    "longer: one length": (longer_is_worse_claim, widths(steady, lengths=(8,)), UNDECIDED),
    "longer: many heads alone": (longer_is_worse_claim, widths(steady, heads=(4,)), UNDECIDED),
    "flatter": (flatter_claim, widths(flattening), HOLDS),
    "steeper": (flatter_claim, widths(lambda length: -length / 16), DIFFERS),
    "flatter: one length": (flatter_claim, widths(flattening, lengths=(8,)), UNDECIDED),
    "flatter: two widths": (flatter_claim, widths(flattening, hidden=(8, 16)), UNDECIDED),
    "missing head": (missing_head_claim, widths(steady), HOLDS),
    "missing head: size does": (missing_head_claim, widths(steady, four=0.5), DIFFERS),
    "missing head: not measured": (missing_head_claim, widths(steady, heads=(1, 2)), UNDECIDED),
}


@pytest.mark.parametrize("kind", WIDTH)
def test_a_claim_about_width_holds_differs_or_is_undecided(kind):
    claim, errors, verdict = WIDTH[kind]
    judged = claim(errors, 4)
    assert judged.verdict is verdict, judged.evidence
    assert "nan" not in judged.evidence


def test_the_fitted_power_is_the_power():
    for fit in width_fits(widths(steady)).values():
        assert fit.exponent == pytest.approx(-0.5)
