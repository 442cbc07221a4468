"""A model's spec is frozen, refuses bad values at birth, and shares a total width among its heads."""

import dataclasses

import pytest

from headcount.models import POSITIONS, ClassTokenSpec

from ..tasks.laws import refused


def test_defaults_are_the_published_model():
    spec = ClassTokenSpec(heads=4)
    assert (spec.head_dim, spec.hidden, spec.layers, spec.positions, spec.beta) == (8, 32, 1, "none", 1.0)
    assert spec.total_dim == 32


def test_a_head_compares_as_many_numbers_as_it_carries_unless_told():
    assert ClassTokenSpec(heads=4, head_dim=5).rank == 5
    assert ClassTokenSpec(heads=4, head_dim=5) == ClassTokenSpec(heads=4, head_dim=5, rank=5)
    assert ClassTokenSpec(heads=4, head_dim=5, rank=2) == ClassTokenSpec(heads=4, head_dim=5).with_rank(2)
    assert ClassTokenSpec(heads=4, head_dim=5, rank=2).head_dim == 5


@pytest.mark.parametrize("value", [0, -2, 1.5, True, "3"])
def test_a_bad_rank_is_refused(value):
    with refused("rank", repr(value), "at least 1"):
        ClassTokenSpec(heads=2, rank=value)
    with refused("rank", repr(value), "at least 1"):
        ClassTokenSpec(heads=2).with_rank(value)


def test_a_rank_above_what_is_projected_is_refused():
    assert ClassTokenSpec(heads=3, head_dim=2, rank=6).rank == 6
    with refused("rank", "at most", "6", "got 7"):
        ClassTokenSpec(heads=3, head_dim=2, rank=7)
    with refused("rank", "at most", "6", "got 7"):
        ClassTokenSpec(heads=3, head_dim=2).with_rank(7)


def test_the_content_names_a_rank_only_where_it_is_another():
    """So that every model from before rank had a name keeps its key."""
    plain = {"heads": 2, "head_dim": 3, "hidden": 32, "layers": 1, "positions": "none", "beta": 1.0}
    assert ClassTokenSpec(heads=2, head_dim=3).as_dict() == plain
    assert ClassTokenSpec(heads=2, head_dim=3, rank=3).as_dict() == plain
    assert ClassTokenSpec(heads=2, head_dim=3, rank=4).as_dict() == plain | {"rank": 4}


@pytest.mark.parametrize("value", [0, -2, 1.5, True, "3", None])
@pytest.mark.parametrize("name", ["heads", "head_dim", "hidden", "layers"])
def test_a_bad_count_is_refused(name, value):
    with refused(name, repr(value), "at least 1"):
        ClassTokenSpec(**({"heads": 2} | {name: value}))


@pytest.mark.parametrize("beta", [0.0, -1.0, float("inf"), float("nan")])
def test_a_bad_beta_is_refused(beta):
    with refused("beta", repr(beta)):
        ClassTokenSpec(heads=2, beta=beta)


def test_bad_positions_are_answered_with_the_nearest():
    with refused('"aditive"', 'Did you mean "additive"?', *POSITIONS):
        ClassTokenSpec(heads=2, positions="aditive")
    with refused("positions", "None"):
        ClassTokenSpec(heads=2, positions=None)


def test_a_misspelt_name_is_an_error():
    with pytest.raises(TypeError, match="head_dims"):
        ClassTokenSpec(heads=2, head_dims=4)


def test_frozen_and_equal_by_content():
    spec = ClassTokenSpec(heads=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.heads = 3  # type: ignore[misc]
    assert spec == ClassTokenSpec(heads=2)
    assert hash(spec) == hash(ClassTokenSpec(heads=2))
    assert spec != ClassTokenSpec(heads=2, beta=2.0)


@pytest.mark.parametrize(("total", "heads", "head_dim"), [(24, 1, 24), (24, 3, 8), (24, 24, 1)])
@pytest.mark.parametrize("round_up", [False, True])
def test_heads_share_a_total(total, heads, head_dim, round_up):
    spec = ClassTokenSpec.with_total_dim(total, heads=heads, round_up=round_up, hidden=16, positions="additive")
    assert spec == ClassTokenSpec(heads=heads, head_dim=head_dim, hidden=16, positions="additive")
    assert spec.total_dim == total


@pytest.mark.parametrize(("total", "heads", "head_dim"), [(32, 3, 11), (32, 5, 7), (32, 31, 2), (7, 2, 4)])
def test_an_uneven_share_is_refused_or_rounded_up(total, heads, head_dim):
    with refused(f"{heads} heads", f"total_dim {total}"):
        ClassTokenSpec.with_total_dim(total, heads=heads)
    rounded = ClassTokenSpec.with_total_dim(total, heads=heads, round_up=True)
    assert rounded.head_dim == head_dim
    assert total < rounded.total_dim < total + heads


@pytest.mark.parametrize("round_up", [False, True])
def test_more_heads_than_total_are_refused(round_up):
    with refused("5 heads", "total_dim 4"):
        ClassTokenSpec.with_total_dim(4, heads=5, round_up=round_up)


def test_bad_values_are_refused_through_a_total_too():
    with refused("heads", "0"):
        ClassTokenSpec.with_total_dim(32, heads=0)
    with refused("layers", "0"):
        ClassTokenSpec.with_total_dim(32, heads=2, layers=0)
