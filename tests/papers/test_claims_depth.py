"""Claims about depth on fabricated errors: the law that made them is not refuted, smaller ones are."""

import itertools

import numpy as np
import pytest

from headcount.answer import ErrorTable
from headcount.answer.bootstrap import RESAMPLES, bootstrap
from headcount.answer.claim import Verdict
from headcount.papers.beyond.depth import TOTAL_DIM, depth_headline, largest_chart, near_laws
from headcount.papers.claims.depth import (
    ATTENTION_ONLY,
    FITS,
    LAWS,
    ONE_MISSED,
    ROLES,
    _resampled,
    inside_claim,
    is_solved,
    law_claim,
    maxima_missed,
    nearest_law,
    shape_limits,
)
from headcount.tasks import sum_of_maxima
from headcount.theory import roles, roles_of_maxima

LAYERS, HEADS, DIMS = (1, 2, 3), (1, 2), tuple(range(1, 16))
BOTH = (ATTENTION_ONLY, "nets")


def table_of(solved, stuck=0.0, seeds=8, length=8):
    """A table where `solved(layers, heads, inside, dim)`; of the starts that could solve it a share is stuck."""
    axes = {"layers": LAYERS, "heads": HEADS, "inside": BOTH, "intrinsic_dim": DIMS}
    axes |= {"task_seed": (0, 1), "length": (length,), "seed": tuple(range(seeds))}
    errors = np.full([len(values) for values in axes.values()], np.nan)
    for place in np.ndindex(errors.shape):
        layers, heads, inside, dim, _, _, seed = (values[i] for values, i in zip(axes.values(), place, strict=True))
        free = seed >= stuck * seeds
        errors[place] = ONE_MISSED / dim * (0.01 if solved(layers, heads, inside, dim) and free else 1.0)
    return ErrorTable(axes=axes, errors=errors)


def of_law(law):
    return lambda layers, heads, _, dim: dim <= law.largest(layers, heads)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_errors_made_by_a_law_refute_only_smaller_ones(law):
    limited = shape_limits(table_of(of_law(law)))
    assert {limit.largest for limit in limited if limit.layers == 1} == set(HEADS)
    assert all(limit.low == limit.largest == limit.high for limit in limited), "no start is stuck"
    for other in LAWS:
        pairs = [(law.largest(one.layers, one.heads), other.largest(one.layers, one.heads)) for one in limited]
        refuted = any(min(made, max(DIMS)) > allowed for made, allowed in pairs)
        assert (law_claim(other, limited).verdict is Verdict.DIFFERS) == refuted


def test_a_law_holds_only_where_more_was_tried_and_nothing_is_constructed_beyond_it():
    limited = shape_limits(table_of(of_law(ROLES), length=16))
    assert law_claim(ROLES, limited).verdict is Verdict.HOLDS
    longer = shape_limits(table_of(of_law(ROLES), length=32))
    assert law_claim(ROLES, longer).verdict is Verdict.UNDECIDED, "2 x 2 has eight, from 32 tokens on"
    assert nearest_law(limited) is ROLES
    fewer = shape_limits(table_of(of_law(LAWS[0])))
    assert law_claim(LAWS[0], fewer).verdict is Verdict.UNDECIDED, "a construction solves more"
    assert "stuck" in law_claim(LAWS[0], fewer).evidence


def test_one_free_start_of_eight_solves_and_leaves_doubt():
    (limit,) = (one for one in shape_limits(table_of(of_law(ROLES), stuck=0.8)) if (one.layers, one.heads) == (2, 1))
    assert limit.largest == limit.high == 3
    assert limit.low < 3
    assert law_claim(LAWS[0], [limit]).verdict is Verdict.UNDECIDED


def test_nets_inside_are_compared_with_attention_alone():
    same = table_of(of_law(ROLES))
    assert inside_claim(same).verdict is Verdict.UNDECIDED
    more = table_of(lambda layers, heads, inside, dim: inside == "nets" or of_law(ROLES)(layers, heads, inside, dim))
    assert inside_claim(more).verdict is Verdict.HOLDS
    assert inside_claim(more.select(inside=[ATTENTION_ONLY])).verdict is Verdict.UNDECIDED


def test_what_nets_inside_lose_counts_against_them():
    shape_of = {
        "nets": lambda layers, dim: dim <= (3 if layers == 1 else 5),
        ATTENTION_ONLY: lambda layers, dim: dim <= (5 if layers == 1 else 3),
    }
    one_each = table_of(lambda layers, _, inside, dim: shape_of[inside](layers, dim)).select(layers=[1, 2])
    assert inside_claim(one_each).verdict is Verdict.UNDECIDED
    less = inside_claim(one_each.select(layers=[1]))
    assert less.verdict is Verdict.DIFFERS
    assert "solved only without: L = 1, h = 1, D = 4" in less.evidence


@pytest.mark.parametrize(("shape", "dim"), [*FITS.items(), ((4, 2), 14)])
def test_models_of_roles_fit_the_width_of_the_study_up_to_what_is_said(shape, dim):
    layers, heads = shape
    tried = range(dim, min(dim + 1, roles(heads, layers)) + 1)
    tasks = [sum_of_maxima(length=16, intrinsic_dim=each, dim=6) for each in tried]
    widths = [roles_of_maxima(task, heads=heads, layers=layers).spec.total_dim for task in tasks]
    assert widths[0] <= TOTAL_DIM
    assert all(width > TOTAL_DIM for width in widths[1:])


def test_the_law_of_roles_is_what_is_constructed():
    for layers, heads in itertools.product((1, 2, 3, 4), repeat=2):
        assert ROLES.largest(layers, heads) == roles(heads, layers)


def test_errors_are_counted_in_maxima_missed():
    assert maxima_missed(ONE_MISSED / 7, 7) == pytest.approx(1)
    assert is_solved(np.array([0.09, 0.11, np.nan]) * ONE_MISSED / 7, 7).tolist() == [True, False, False]


@pytest.mark.parametrize(("layers", "heads"), [(2, 1), (3, 2), (4, 4)])
def test_every_law_within_reach_has_its_value_and_one_more(layers, heads):
    dims, most = near_laws(layers, heads), heads * layers * (layers + 1) // 2 + 2
    assert max(dims) == most
    for law in LAWS:
        value = law.largest(layers, heads)
        assert {dim for dim in (value, value + 1) if dim <= most} <= set(dims)


def test_the_chart_counts_maxima_per_head_beside_the_laws():
    limited = shape_limits(table_of(of_law(ROLES)))
    chart = largest_chart(limited)
    measured = [series for series in chart.series if not series.thin]
    assert [series.y for series in measured] == [(1.0, 3.0, 5.0)] * len(HEADS)
    assert {series.name for series in chart.series if series.thin} == {f"D = {law.name}" for law in LAWS[:4]}
    assert ROLES.name in depth_headline(limited)


def test_resampled_places_do_not_depend_on_resampled_seeds():
    """No pair of resamples is correlated: of seeds, two of one place; of places, two of one seed, which both count."""
    dims = range(1, 401)
    seeds = np.array([bootstrap(np.array([[0.0, 1.0]]), seed=dim).best[:, 0] for dim in dims])
    places = np.array([_resampled(np.array([[1e-9], [1e9]]), dim) for dim in dims])
    correlations = np.corrcoef(seeds.T, places.T)[:RESAMPLES, RESAMPLES:]
    chance = 6 / len(dims) ** 0.5  # of 160,000 correlations none is expected above 5.2 standard errors
    assert np.abs(correlations).max() < chance, np.argwhere(np.abs(correlations) > chance)[:4]
