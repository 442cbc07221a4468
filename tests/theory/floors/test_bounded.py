"""Theorem 2(2) with constants: no head keeps choices farther apart than promised, no model contradicts a floor."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.models import ClassTokenSpec
from headcount.tasks import quadratic_basins
from headcount.theory import BoundedClass, class_floor, find_pigeonhole, least_length, phase_diagram, slope_needed
from headcount.theory.claims.floors import (
    digit_head,
    layer_output,
    nearest_outputs,
    one_token_pair,
    random_head,
    random_layer,
)
from headcount.theory.floors.bounded import log_multisets, one_token_distance, promised_distance, promised_pair

ONE = BoundedClass(heads=1, intrinsic_dim=2, length=128)
classes = st.builds(
    BoundedClass,
    heads=st.integers(1, 3),
    intrinsic_dim=st.integers(2, 5),
    length=st.integers(2, 5000),
    head_dim=st.integers(1, 8),
    slope=st.floats(1, 1e6),
    values=st.floats(0.1, 10),
    positions=st.booleans(),
    share=st.sampled_from([0.25, 0.5, 1.0]),
)
drawn = settings(max_examples=12, deadline=None)


@drawn
@given(st.integers(2, 6), st.integers(2, 7), st.integers(1, 2), st.floats(0, 8), st.integers(0, 99))
def test_no_head_keeps_all_choices_farther_apart_than_promised(points, free, head_dim, steepness, seed):
    setting = dataclasses.replace(ONE, head_dim=head_dim)
    for head in (
        digit_head(points, head_dim, free),
        random_head(points, head_dim, steepness, np.random.default_rng(seed)),
    ):
        distance, log_choices = nearest_outputs(*head, free)
        assert log_choices == pytest.approx(math.log(math.comb(free + points - 1, free)))
        assert distance <= promised_distance(setting, free, log_choices)


def test_a_climb_for_the_head_that_keeps_choices_farthest_apart_stays_within_the_promise():
    generator, free = np.random.default_rng(0), 20
    weights, values = digit_head(3, 1, free)
    farthest, log_choices = nearest_outputs(weights, values, free)
    for _ in range(30):
        tried = weights * np.exp(0.2 * generator.standard_normal(3))
        head = tried / tried.max(), np.clip(values + 0.2 * generator.standard_normal((3, 1)), -1, 1)
        distance, _ = nearest_outputs(*head, free)
        if distance > farthest:
            farthest, (weights, values) = distance, head
    assert 0.2 < farthest / promised_distance(dataclasses.replace(ONE, head_dim=1), free, log_choices) <= 1


@pytest.mark.slow
def test_the_pairs_of_the_papers_proof_are_as_near_as_promised():
    """With positions: the moments of a model's head, in place of those of any head."""
    task = quadratic_basins(length=32, intrinsic_dim=3, dim=2)
    for seed, beta in ((0, 1.0), (1, 30.0)):
        model = ClassTokenSpec(heads=1, head_dim=2, hidden=16, beta=beta).init(seed, length=32, dim=2, outputs=1)
        pair = find_pigeonhole(model, task, subsequences=2000)
        layer = model.attention[0]
        tokens = np.maximum(pair.pair.reshape(-1, 2) @ model.encoder_in.weight.T + model.encoder_in.bias, 0)
        embedded = tokens @ model.encoder_out.weight.T + model.encoder_out.bias
        values = float(np.abs(embedded @ layer.value[0].T).max())
        outwards = float(np.linalg.norm(layer.output[:, 0], 2))
        setting = BoundedClass(heads=1, intrinsic_dim=3, length=32, values=values, share=0.25, positions=True)
        promised = promised_distance(setting, setting.free_places, math.log(pair.subsequences))
        assert pair.distance <= outwards * promised


@drawn
@given(classes)
def test_a_floor_is_half_of_what_a_readout_of_that_slope_leaves_of_the_gap(setting):
    bound = class_floor(setting)
    if bound.value is None:
        assert bound.why
        return
    pair = promised_pair(setting)
    assert bound.value == pytest.approx((pair.gap - setting.slope * pair.distance) / 2)
    assert 0 < bound.value < setting.rise / 2
    # One token is a pair of every class, so no floor is lower than its.
    assert bound.value >= (setting.rise - setting.slope * one_token_distance(setting)) / 2
    assert setting.heads < setting.intrinsic_dim
    # Above the floor no slope is asked for that the class does not have.
    assert slope_needed(setting, bound.value * 0.999) >= math.log10(setting.slope) - 1e-6


@drawn
@given(classes, st.floats(1.5, 100))
def test_only_the_product_of_values_and_slope_counts(setting, factor):
    scaled = dataclasses.replace(setting, values=setting.values * factor, slope=setting.slope / factor)
    one, other = class_floor(setting).value, class_floor(scaled).value
    assert (one is None) == (other is None)
    assert one is None or one == pytest.approx(other, rel=1e-6)


@drawn
@given(classes)
def test_longer_sequences_and_gentler_readouts_never_lower_a_floor(setting):
    floor = class_floor(setting).value or 0.0
    for change in ({"length": 2 * setting.length}, {"slope": setting.slope / 2}):
        assert (class_floor(dataclasses.replace(setting, **change)).value or 0.0) >= floor * (1 - 1e-9)


def test_the_least_length_is_the_first_that_speaks():
    length = least_length(ONE, 0.01)
    assert length is not None
    needed = [slope_needed(dataclasses.replace(ONE, length=each), 0.01) for each in (length - 1, length)]
    assert needed[0] <= 3 < needed[1]
    assert least_length(ONE, 0.3) is None, "more than half of the rise"
    assert least_length(dataclasses.replace(ONE, heads=2), 0.01) is None, "heads enough"


@drawn
@given(st.integers(3, 10**6), st.floats(1e-4, 0.5), st.integers(2, 5), st.integers(1, 300))
def test_one_steep_head_is_never_where_every_model_fails(length, eps, intrinsic_dim, cells):
    setting = BoundedClass(heads=1, intrinsic_dim=intrinsic_dim, length=length, head_dim=intrinsic_dim * cells)
    (phase,) = phase_diagram(setting, [length], [eps], outer_slope=float(intrinsic_dim))
    assert phase.fails_below <= phase.enough_from
    (larger,) = phase_diagram(
        dataclasses.replace(setting, values=100.0), [length], [eps], outer_slope=float(intrinsic_dim)
    )
    assert larger.enough_from == pytest.approx(phase.enough_from - 2)
    assert larger.fails_below == pytest.approx(phase.fails_below - 2)


@pytest.mark.parametrize("points", [2, 3, 128, 129, 200])
@pytest.mark.parametrize("free", [5, 128, 129, 10**9, 2**40])
def test_the_number_of_choices_is_not_overstated(points, free):
    exact = math.log(math.comb(free + points - 1, points - 1))
    logs = log_multisets(np.array([float(points)]), np.array([float(free)]))
    assert exact * (1 - 1e-4) <= logs[0, 0] <= exact * (1 + 1e-13)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_token_among_heavier_ones_moves_no_layer_farther_than_promised(data):
    """Whatever the head width, the weights and the values, and whether places are seen."""
    dims = data.draw(st.integers(2, 6), "D")
    setting = BoundedClass(
        heads=data.draw(st.integers(1, dims - 1), "s"),
        intrinsic_dim=dims,
        length=data.draw(st.integers(2 * dims, 200), "T"),
        head_dim=data.draw(st.integers(1, 40), "n"),
        positions=data.draw(st.booleans(), "positions"),
    )
    weights, values = random_layer(setting, np.random.default_rng(data.draw(st.integers(0, 10**6), "seed")))
    lower, upper, component = one_token_pair(setting, weights)
    assert np.sum(lower != upper) == 1
    assert ({*range(dims)} <= {*lower.tolist()}, component in upper) == (True, False)  # targets: the whole rise
    outputs = [layer_output(weights, values, sequence) for sequence in (lower, upper)]
    assert np.linalg.norm(outputs[0] - outputs[1]) <= one_token_distance(setting)
    without, _, _ = one_token_pair(setting, weights, heaviest=False)
    assert setting.heavier_places == 0 or {*without.tolist()} <= {*range(dims), dims + component}


def test_the_promised_distance_is_attained():
    """A head that weighs all tokens alike: the last token's value against its opposite."""
    setting = dataclasses.replace(ONE, head_dim=3)
    weights, values = np.ones((1, 128, 4)), np.ones((1, 128, 4, 3))
    values[:, :, 3] = -1.0
    sequences = np.zeros((2, 128), int)
    sequences[:, -1] = (1, 3)
    outputs = [layer_output(weights, values, sequence) for sequence in sequences]
    assert np.linalg.norm(outputs[0] - outputs[1]) > 0.98 * one_token_distance(setting)


@drawn
@given(classes.filter(lambda each: each.heads < each.intrinsic_dim), st.floats(0.001, 0.2))
def test_every_width_and_slope_has_a_length_from_which_every_model_fails(setting, eps):
    """With positions only where S_i has more than s / D of the places."""
    length = least_length(setting, eps)
    if length is None:
        assert setting.positions
        assert setting.share <= setting.heads / setting.intrinsic_dim
        return
    for longer in (length, length + 1, length + 7, 3 * length, 100 * length):
        assert slope_needed(dataclasses.replace(setting, length=longer), eps) > math.log10(setting.slope)


def test_a_floor_comes_near_half_of_the_rise_at_any_slope_and_width():
    for slope, head_dim in ((1.0, 2), (1e3, 64), (1e6, 1000)):
        wide = dataclasses.replace(ONE, length=10**12, slope=slope, head_dim=head_dim)
        assert class_floor(wide).value == pytest.approx(ONE.rise / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("field", "value"),
    [("heads", 0), ("length", 0), ("slope", -1.0), ("values", math.inf), ("rise", 0.0), ("share", 0.1)],
)
def test_a_class_that_cannot_be_is_refused(field, value):
    with pytest.raises(InputError) as refused:
        dataclasses.replace(ONE, **{field: value})
    assert (refused.value.what, refused.value.given) == (field, value)
    with pytest.raises(InputError, match="head_dim"):
        phase_diagram(dataclasses.replace(ONE, head_dim=1), [8], [0.1], outer_slope=2.0)


@drawn
@given(st.floats(0.001, 0.2), st.floats(0, 8), st.integers(0, 99))
def test_the_best_readout_of_a_slope_errs_by_the_floor_at_least(slope, steepness, seed):
    """Of all sequences at a small size the best K-Lipschitz readout errs by max (|y - y'| - K |o - o'|) / 2."""
    points, free = 4, 12
    weights, values = random_head(points, 1, steepness, np.random.default_rng(seed))
    chosen = np.array(list(itertools.combinations_with_replacement(range(points), free)))
    seen = np.concatenate([chosen, np.full((len(chosen), 1), np.argmax(weights))], axis=1)
    outputs = np.sum(weights[seen] * values[seen, 0], axis=1) / np.sum(weights[seen], axis=1)
    targets = ONE.rise * chosen.min(axis=1) / (points - 1)
    errors = np.abs(targets[:, None] - targets) - slope * np.abs(outputs[:, None] - outputs)
    promised = promised_distance(dataclasses.replace(ONE, head_dim=1), free, math.log(len(chosen)))
    assert errors.max() >= ONE.rise / (points - 1) - slope * promised
