"""What is read from the facts of an inspection: laws that hold of any facts, and the numbers of some that are known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import StoreError
from headcount.pretrained.inspection.correlation import correlation
from headcount.pretrained.inspection.facts import Facts
from headcount.pretrained.inspection.model import missing_facts, read_trained_model
from headcount.pretrained.inspection.page import incomplete, inspection_headline, sentences

from ..helpers.fabricated_inspection import COMMAND, facts, killed_after

FACTS = facts()
LOSSES = st.one_of(st.floats(-5, 5), st.sampled_from([math.nan, math.inf, 1e300]))


@st.composite
def any_facts(draw):
    """Facts as an inspection stores them, with any losses, some not measured."""
    layers, heads, examples = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def rows(count):
        return draw(st.lists(st.lists(LOSSES, min_size=examples, max_size=examples), min_size=count, max_size=count))

    made = {
        "model": {"name": "any", "layers": layers, "heads": heads, "head_dim": 4, "parameters": 100},
        "data": {"loss": "loss", "scale": draw(st.floats(0, 3))},
        "base": {"losses": draw(st.lists(st.floats(-5, 5), min_size=examples, max_size=examples))},
        "peers": {"random": {"kept": [0], "losses": rows(1), "refit": False}},
        "configurations": [{"name": "one", "losses": rows(1)[0], "parameters": 90, "stored": "small"}],
    }
    total = layers * heads
    made["descent"] = {
        "removed": [[place // heads, place % heads] for place in draw(st.permutations(range(total)))],
        "kept": list(range(total, -1, -1)),
        "losses": rows(total + 1),
    }
    numbers = st.lists(st.floats(-1, 1), min_size=heads, max_size=heads)
    for layer in range(layers):
        made[f"importance/{layer}"] = {name: draw(numbers) for name in ("leave_one_out", "gradient", "magnitude")}
        made[f"curve/{layer}"] = {"kept": list(range(heads, -1, -1)), "losses": rows(heads + 1)}
        made[f"rank/{layer}"] = {"scores": {"ranks": [4, 2, 1], "losses": rows(3)}, "values": None}
    gone = draw(st.sets(st.sampled_from(sorted(made))))
    return {name: value for name, value in made.items() if name not in gone}


@settings(max_examples=60, deadline=None)
@given(any_facts(), st.floats(0, 2), st.floats(0, 2))
def test_any_facts_are_read(attachments, tolerance, more):
    """No facts end in an error; counts lie within the model and fall as the tolerance grows."""
    strict = read_trained_model(attachments, tolerance=tolerance)
    lax = read_trained_model(attachments, tolerance=tolerance + more)
    for one, other in zip(strict.layers, lax.layers, strict=True):
        if one.needed is not None:
            assert 0 <= one.needed.low <= one.needed.at <= one.needed.high <= one.heads
            assert other.needed.at <= one.needed.at
            assert other.needed.low <= one.needed.low
            assert other.needed.high <= one.needed.high
        for kind, reading in one.ranks.items():
            assert 1 <= reading.needed.low <= reading.needed.at <= reading.needed.high <= reading.full
            assert other.ranks[kind].needed.at <= reading.needed.at
    if strict.whole is not None:
        removable = strict.whole.removable
        assert 0 <= removable.low <= removable.at <= removable.high <= strict.whole.total
        assert lax.whole.removable.at >= removable.at
        assert all(removable.at >= layer.heads - layer.needed.at for layer in strict.layers if layer.needed is not None)
    assert inspection_headline(strict)
    assert all(sentence.endswith(".") for sentence in sentences(strict))


def test_increases_next_to_nothing_without_any_head_are_read():
    """Shares of an increase of 1e-310 overflow no number."""
    made = facts() | {"base": {"losses": [0.0, 0.0]}}
    made |= {"curve/0": {"kept": [2, 1, 0], "losses": [[0.0, 0.0], [1e300, 1e300], [1e-310, 1e-310]]}}
    assert read_trained_model({key: made[key] for key in ("model", "base", "curve/0")}, tolerance=0.0).layers


@pytest.mark.parametrize("spare", [0.0, 0.5, 0.9])
def test_heads_needed_are_those_that_cost(spare):
    """The curve of fabricated facts costs a tenth of the tolerance from `needed` heads on, and much more below."""
    made = facts(spare=spare)
    model = read_trained_model(made)
    for layer in model.layers:
        curve = made[f"curve/{layer.index}"]
        means = np.mean(curve["losses"], axis=1) - np.mean(made["base"]["losses"])
        enough = [kept for kept, mean in zip(curve["kept"], means, strict=True) if mean <= 0.01 * model.scale]
        assert layer.needed.at == min(enough)
        assert layer.transition.heads is None or layer.transition.heads.low <= layer.needed.high


def test_what_a_layer_is_short_of_follows_the_last_step():
    made = facts(layers=1)
    base = np.array(made["base"]["losses"])

    def with_cost(fact, cost, kind=None):
        content = made[fact] if kind is None else made[fact][kind]
        content["losses"][1] = (base + cost).tolist()

    for heads, rank, words in (
        (1.0, 0.0, "heads"), (0.0, 1.0, "rank"), (1.0, 1.0, "heads and rank"), (0.0, 0.0, "neither")
    ):  # fmt: skip
        with_cost("curve/0", heads)
        with_cost("rank/0", rank, "scores")
        (layer,) = read_trained_model(made).layers
        assert layer.short_of == words
        assert (layer.needed.at == layer.heads) == (heads > 0)
        assert (layer.ranks["scores"].needed.at == 48) == (rank > 0)


@pytest.mark.parametrize(("rank", "verdict"), [(24, "undecided"), (36, "rank")])
def test_a_rank_far_below_the_full_one_does_not_say_that_a_layer_is_short_of_rank(rank, verdict):
    made = facts(layers=1)
    base = np.array(made["base"]["losses"])
    made["curve/0"]["losses"][1] = made["rank/0"]["values"]["losses"][1] = base.tolist()
    made["rank/0"]["scores"] = {"ranks": [48, rank], "losses": [base.tolist(), (base + 1).tolist()]}
    (layer,) = read_trained_model(made).layers
    assert layer.verdict == verdict
    assert any("was tried" in words for words in layer.evidence) == (verdict == "undecided")


def test_what_few_resamples_agree_on_is_undecided_everywhere():
    made = facts(layers=1)
    base = np.array(made["base"]["losses"])
    made["curve/0"]["losses"][1] = (base + 0.1 + 3 * np.resize([-1.0, 1.0], len(base))).tolist()
    model = read_trained_model(made)
    (layer,) = model.layers
    assert layer.short_of.startswith("heads")
    for words in (layer.verdict, layer.sentence, *sentences(model)[1:2]):
        assert "ndecided" in words


def test_the_smallest_rank_tried_is_an_upper_bound():
    made = facts(layers=1)
    made["rank/0"]["values"]["losses"] = [made["base"]["losses"]] * 4
    reading = read_trained_model(made).layers[0].ranks["values"]
    assert reading.at_most
    assert (reading.needed.at, reading.needed.low) == (6, 1)
    assert "at most 6" in str(reading)


def test_the_end_of_the_descent_is_a_lower_bound():
    made = facts(layers=1, heads=8)
    made["descent"] = {"removed": [[0, 0], [0, 1]], "kept": [8, 7, 6], "losses": [made["base"]["losses"]] * 3}
    assert "at least 3 of 8" in inspection_headline(read_trained_model(made))  # of the one layer, whose curve goes on
    del made["curve/0"]
    model = read_trained_model(made)
    assert (model.whole.removable.at, model.whole.removable.high, model.whole.open_ended) == (2, 2, True)
    assert "at least 2 of 8" in inspection_headline(model)


def test_only_layers_whose_interval_is_their_heads_cannot_lose_one():
    made = facts(layers=2)
    for layer, spread in enumerate((0.01, 3.0)):
        signs = np.resize([-1.0, 1.0], len(made["base"]["losses"]))
        made[f"curve/{layer}"]["losses"][1] = (np.array(made["base"]["losses"]) + 0.1 + spread * signs).tolist()
        del made[f"rank/{layer}"]
    model = read_trained_model(made)
    assert [layer.needed.at for layer in model.layers] == [6, 6]
    assert "Cannot lose a head: layer 0." in sentences(model)


@pytest.mark.parametrize("examples", [8, 16])
@pytest.mark.parametrize(("skewed", "coverage"), [(False, 0.9), (True, 0.8)])
def test_intervals_of_few_examples_cover_what_they_say(examples, skewed, coverage):
    losses = np.random.default_rng(0).normal(size=(2000, examples))
    losses = np.exp(losses) - np.exp(0.5) if skewed else losses
    drawn = Facts({"base": {"losses": [0.0] * examples}}).increases(losses, "curve/0").drawn
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(coverage, abs=0.03)


def test_no_head_at_all_that_costs_nothing_is_no_transition():
    made = facts(layers=1)
    made["curve/0"]["losses"] = [made["base"]["losses"]] * 7
    (layer,) = read_trained_model(made).layers
    assert (layer.needed.at, layer.needed.low, layer.transition.heads) == (0, 0, None)


def test_the_recommended_configuration_is_the_cheapest_within_the_tolerance():
    made = facts()
    model = read_trained_model(made)
    within = [each for each in model.candidates if each.high <= model.budget]
    assert model.recommended == min(within, key=lambda each: each.parameters)
    assert all(each.stored == "small" for each in model.candidates)
    strict = read_trained_model(made, tolerance=1e-6)
    assert strict.recommended is None
    least = min(strict.candidates, key=lambda each: each.increase)
    assert any(least.name in sentence for sentence in sentences(strict))
    assert read_trained_model(facts(stored="zeroed")).recommended is None


def test_a_mean_within_the_tolerance_is_not_enough_to_be_recommended():
    made = facts()
    (_, first, *_) = made["configurations"]
    model = read_trained_model(made)
    base, spread = np.array(made["base"]["losses"]), np.resize([-1.0, 1.0], len(made["base"]["losses"]))
    first["losses"] = (base + 0.9 * model.budget + model.budget * spread).tolist()
    assert model.recommended.name == first["name"]
    assert any("chosen among 2" in sentence for sentence in sentences(model))
    assert read_trained_model(made).recommended is None


def test_a_killed_inspection_says_what_is_missing():
    left = killed_after(FACTS, layers=2)
    model = read_trained_model(left)
    assert [layer.needed is not None for layer in model.layers] == [True] * 2 + [False] * 4
    words = incomplete(model, COMMAND)
    assert COMMAND in words
    assert "4 of 6 layers" in words
    assert model.whole is None
    assert not missing_facts(FACTS)
    assert not incomplete(read_trained_model(FACTS), COMMAND)


def test_facts_that_an_inspection_does_not_write_are_refused():
    with pytest.raises(StoreError, match="curve/0"):
        read_trained_model(FACTS | {"curve/0": {"kept": [6, 5], "losses": [[1.0], [2.0]]}})
    with pytest.raises(StoreError, match="KeyError"):
        read_trained_model(FACTS | {"descent": {"kept": [35]}})


def test_correlation_is_one_for_any_increasing_map_and_none_for_constants():
    x = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0])
    assert correlation(x, np.exp(x)).at == pytest.approx(1)
    assert correlation(x, -x).at == pytest.approx(-1)
    assert correlation(x, np.ones(6)) is None
    assert correlation(x[:5], x[:5]) is None
    ties = correlation([1, 1, 2, 3, 4, 5], [1, 1, 2, 3, 4, 5])
    assert ties.at == pytest.approx(1)
    assert ties.low <= ties.at <= ties.high


def test_layers_that_need_more_keep_more():
    prediction = read_trained_model(FACTS).prediction
    assert prediction.correlation.at > 0.5
    assert sum(prediction.kept) == 36 - prediction.removed


def with_descent(made, kept, costs):
    """The facts with a descent that was measured at these counts only."""
    base = np.array(made["base"]["losses"])
    made["descent"] = {**made["descent"], "kept": kept, "losses": [(base + cost).tolist() for cost in costs]}
    return made


def test_no_fewer_heads_can_go_than_one_layer_alone_can_spare():
    """The descent's first measured point is too many: a layer that can lose three by itself still can."""
    made = with_descent(facts(layers=2, heads=6, spare=0.5), [12, 6], [0.0, 1.0])
    model = read_trained_model(made)
    spare = max(layer.heads - layer.needed.at for layer in model.layers)
    assert model.whole.removable.at == spare > 0
    (index,) = {layer for layer, _ in model.whole.gone}
    assert len(model.whole.gone) == spare == 6 - model.layers[index].needed.at
    assert f"of layer {index} alone can go" in " ".join(sentences(model))


def test_counts_that_were_not_measured_are_named():
    made = with_descent(facts(layers=2, heads=6, spare=0.0), [12, 6], [0.0, 1.0])
    for layer in range(2):
        made[f"curve/{layer}"]["losses"][1:] = [[9.0] * 40] * 6
    model = read_trained_model(made)
    assert model.whole.removable.at == 0
    assert "between 0 and 5 of 12" in inspection_headline(model)
    made = with_descent(made, [12, 10, 6], [0.0, 0.0, 1.0])
    assert "next measured were 6" in " ".join(sentences(read_trained_model(made)))


def test_a_few_held_out_examples_recommend_nothing():
    assert read_trained_model(facts(examples=40)).recommended is not None
    few = read_trained_model(facts(examples=7))
    assert few.recommended is None
    assert "7 held-out examples are too few" in " ".join(sentences(few))


def test_what_was_asked_is_read_with_the_facts():
    """The tolerance of the last run is the one that a page is made with, and quick lacks no rank."""
    asked = {"tolerance": 0.2, "effort": "quick", "facts": ["curve/0", "importance/0"]}
    assert read_trained_model({**FACTS, "asked": asked}).tolerance == 0.2
    assert read_trained_model({**FACTS, "asked": asked}, tolerance=0.1).tolerance == 0.1
    started = {"model": FACTS["model"], "asked": asked}
    assert not any("rank" in words for words in missing_facts(started))
    assert any("rank" in words for words in missing_facts({"model": FACTS["model"]}))
