"""An encoder's spec is frozen, refuses bad values at birth, and names everything that identifies it."""

import dataclasses
import json

import pytest
from headcount.models.encoder_spec import LATER
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headcount.models import EncoderSpec

from ..tasks.laws import refused
from .encoders import a_spec, options

quick = settings(deadline=None, max_examples=40)


def test_defaults_are_the_second_paper_s_encoder():
    spec = EncoderSpec(heads=4, rank=2, width=8)
    assert (spec.head_dim, spec.multiplier, spec.layers, spec.hidden) == (2, 1, 1, 2048)
    assert (spec.norm, spec.bias, spec.residual, spec.positions) == ("unit", True, True, "none")
    assert (spec.attention, spec.answered_at) == ("soft", "tokens")
    assert (spec.activation, spec.final_norm, spec.query_is_key) == ("relu", False, False)
    assert (spec.padded, spec.dropout, spec.per_head) == (False, 0.0, False)


@pytest.mark.parametrize("value", [0, -2, 1.5, True, "3"])
@pytest.mark.parametrize("name", ["heads", "rank", "width", "head_dim", "multiplier", "layers"])
def test_a_bad_count_is_refused(name, value):
    with refused(name, repr(value), "at least 1"):
        a_spec(**{name: value})


@pytest.mark.parametrize("value", [-1, 2.0, None, False])
def test_a_bad_number_of_hidden_units_is_refused(value):
    with refused("hidden", repr(value), "at least 0"):
        a_spec(hidden=value)


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan")])
def test_a_bad_share_to_drop_is_refused(value):
    with refused("dropout", repr(value), "from 0 to below 1"):
        a_spec(dropout=value)


@pytest.mark.parametrize("name", ["final_norm", "query_is_key", "padded", "per_head"])
def test_what_is_neither_true_nor_false_is_refused(name):
    with refused(name, "True or False", "got 1"):
        a_spec(**{name: 1})


@pytest.mark.parametrize("name", ["heads", "rank", "width"])
def test_what_is_not_said_and_has_no_default_is_an_error(name):
    with pytest.raises(TypeError, match=name):
        EncoderSpec(**{other: 1 for other in ("heads", "rank", "width") if other != name})


@pytest.mark.parametrize(
    ("name", "given", "meant", "known"),
    [
        ("norm", "units", "unit", ("unit", "layer", "none")),
        ("attention", "softt", "soft", ("soft", "hard")),
        ("positions", "aditive", "additive", ("none", "additive", "concatenated")),
        ("answered_at", "token", "tokens", ("sequence", "tokens", "query")),
        ("activation", "gellu", "gelu", ("relu", "gelu")),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(name, given, meant, known):
    with refused(name, f'"{given}"', f'Did you mean "{meant}"?', *known):
        a_spec(**{name: given})
    with refused(name, "None", *known):
        a_spec(**{name: None})


@pytest.mark.parametrize("name", ["rank", "head_dim"])
def test_more_numbers_than_are_projected_are_refused(name):
    assert getattr(a_spec(**{name: 4}), name) == 4
    with refused(name, "at most", "4", "got 5"):
        a_spec(**{name: 5})
    wide = a_spec(positions="concatenated", **{name: 8})
    assert wide.stream_dim == 8
    with refused(name, "at most", "8", "got 9"):
        a_spec(positions="concatenated", **{name: 9})


def test_frozen_and_equal_by_content():
    spec = a_spec()
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.heads = 3  # type: ignore[misc]
    assert spec == a_spec(head_dim=spec.rank)
    assert hash(spec) == hash(a_spec())
    assert spec != a_spec(attention="hard")


def test_a_misspelt_name_is_an_error():
    with pytest.raises(TypeError, match="ranks"):
        a_spec(ranks=4)


@quick
@given(options)
def test_sizes_follow(chosen):
    spec = EncoderSpec(**chosen)
    assert spec.stream_dim == spec.width * (2 if spec.positions == "concatenated" else 1)
    assert spec.total_heads == spec.heads * spec.multiplier
    assert spec.total_dim == spec.heads * spec.rank


@quick
@given(options, st.integers(1, 4))
def test_another_rank_changes_the_rank_and_what_is_tied_to_it(chosen, rank):
    spec = EncoderSpec(**chosen)
    other = spec.with_rank(rank)
    assert other.rank == rank
    assert other.head_dim == (rank if spec.head_dim == spec.rank else spec.head_dim)
    assert dataclasses.replace(other, rank=spec.rank, head_dim=spec.head_dim) == spec


@quick
@given(options, options)
def test_specs_that_differ_have_another_content(chosen, others):
    spec, other = EncoderSpec(**chosen), EncoderSpec(**others)
    assume(spec != other)
    assert json.dumps(spec.as_dict(), sort_keys=True) != json.dumps(other.as_dict(), sort_keys=True)


@quick
@given(options)
def test_the_content_is_every_field_and_the_kind(chosen):
    """But for fields that came after results were stored, at the values those results had: their default."""
    spec = EncoderSpec(**chosen)
    assert spec.as_dict() == {"kind": "encoder"} | {
        field.name: getattr(spec, field.name)
        for field in dataclasses.fields(spec)
        if field.name not in LATER or getattr(spec, field.name) != field.default
    }


@pytest.mark.parametrize(("total", "heads", "rank"), [(4, 1, 4), (4, 2, 2), (4, 4, 1), (8, 8, 1)])
def test_heads_share_a_total(total, heads, rank):
    spec = EncoderSpec.with_total_dim(total, heads=heads, width=4, norm="layer")
    assert spec == EncoderSpec(heads=heads, rank=rank, width=4, norm="layer")
    assert spec.total_dim == total


@pytest.mark.parametrize(("total", "heads"), [(4, 3), (7, 2), (2, 4)])
def test_heads_that_do_not_divide_the_total_are_refused(total, heads):
    with refused(f"{heads} heads", f"total_dim {total}", "rank"):
        EncoderSpec.with_total_dim(total, heads=heads, width=4)


def test_bad_values_are_refused_through_a_total_too():
    with refused("heads", "0"):
        EncoderSpec.with_total_dim(4, heads=0, width=4)
    with refused("layers", "0"):
        EncoderSpec.with_total_dim(4, heads=2, width=4, layers=0)
    with refused("rank", "8"):
        EncoderSpec.with_total_dim(8, heads=1, width=4)


# Models that grow with their heads.


def a_family(heads: int, **changes) -> EncoderSpec:
    """Three numbers of width and five of hidden for each head."""
    return EncoderSpec(**({"heads": heads, "rank": 2, "width": 3 * heads, "hidden": 5 * heads} | changes))


@quick
@given(options, st.integers(1, 6))
def test_a_family_differs_in_its_heads_alone(chosen, heads):
    changes = {name: value for name, value in chosen.items() if name not in ("heads", "rank", "width", "hidden")}
    changes |= {"per_head": True, "head_dim": 2}
    one, several = a_family(1, **changes), a_family(heads, **changes)
    assert one.as_dict() | {"heads": heads} == several.as_dict()
    assert several.as_dict() | {"heads": 1} == one.as_dict()
    assert json.dumps(several.as_dict()) != json.dumps(a_family(heads, **(changes | {"per_head": False})).as_dict())


@quick
@given(options, st.integers(1, 6), st.booleans())
def test_a_spec_comes_back_from_its_content(chosen, heads, per_head):
    changes = {name: value for name, value in chosen.items() if name not in ("heads", "rank", "width", "hidden")}
    changes |= {"per_head": per_head, "head_dim": 2}
    for spec in (EncoderSpec(**chosen), a_family(heads, **changes)):
        content = json.loads(json.dumps(spec.as_dict()))
        assert EncoderSpec.from_dict(content) == spec
        assert content == spec.as_dict()


@pytest.mark.parametrize(("width", "hidden"), [(7, 10), (6, 9), (7, 0)])
def test_what_does_not_grow_with_the_heads_is_refused(width, hidden):
    assert a_family(2, width=width, hidden=hidden).per_head is False
    with refused("width and hidden", "multiples of 2", f"{width} and {hidden}"):
        a_family(2, width=width, hidden=hidden, per_head=True)
