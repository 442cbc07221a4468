"""Every bound of the second paper names its claim and source, and applies where its conditions hold."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.theory.rank.harmonics import rank_floor, rank_one_floor
from headcount.theory.rank.rank_bounds import RankSetting, all_rank_bounds


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        lambda dim, rank, **rest: RankSetting(dim=dim, rank=min(rank, dim), **rest),
        dim=st.integers(2, 256),
        rank=st.integers(1, 256),
        heads=st.integers(1, 4096),
        length=st.integers(2, 64),
        layers=st.integers(1, 3),
        eps=st.floats(1e-3, 0.99),
    )
)
def test_every_bound_says_what_it_claims_and_where_it_is_from(setting):
    for bound in all_rank_bounds(setting):
        assert bound.claim
        assert "2407.16153" in bound.source
        assert (bound.value is None) == bool(bound.why)
        assert bound.value is None or (math.isfinite(bound.value) and bound.value >= 0)
        assert bound.kind in ("theorem", "conjecture")


def applying(**setting) -> dict[str, float | None]:
    return {bound.name: bound.value for bound in all_rank_bounds(RankSetting(**setting)) if bound.applies}


def test_bounds_apply_where_their_conditions_hold():
    low = applying(heads=8, rank=8, dim=64, eps=0.1)
    assert low["low rank: minimum error"] == rank_floor(8, 8, 64)
    assert low["low rank: minimum error"] == low["equal parameters: minimum error"]
    assert low["low rank: heads needed"] == 12955
    assert low["parameters: heads of full rank"] == 1
    assert "full rank: heads enough" not in low
    assert set(applying(heads=1, rank=64, dim=64, length=16)) == {
        "full rank: heads enough",
        "parameters: heads of full rank",
    }
    assert "low rank: minimum error" not in applying(heads=8, rank=8, dim=64, length=3)
    deep = applying(heads=4096, rank=1, dim=64, layers=2)
    assert set(deep) == {"parameters: heads of full rank", "two layers: error of the majority vote"}
    assert applying(heads=64, rank=1, dim=64)["hard heads of rank one: minimum error"] == rank_one_floor(64, 64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 0}, "heads"),
        ({"rank": 9}, "at most dim = 8, got 9"),
        ({"rank": 0}, "rank"),
        ({"dim": 1, "rank": 1}, "dim must be at least 2"),
        ({"length": 1}, "length must be a whole number of at least 2, got 1"),
        ({"layers": 0}, "layers"),
        ({"eps": 0.0}, "eps"),
    ],
)
def test_a_setting_out_of_range_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        RankSetting(**({"heads": 2, "rank": 4, "dim": 8} | change))
