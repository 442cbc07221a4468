"""Bounds are their formulas, hold where they can be tried, and say when they say nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.theory import Bound, Setting, all_bounds
from headcount.theory.bounds import (
    component_accuracy,
    depth_conjecture,
    exponent,
    head_error,
    max_net_widths,
    selector_error,
    sharpness_needed,
    steep_net_size,
    unique_dim,
)

counts = st.integers(1, 12)
settings_of_any_size = st.builds(
    Setting,
    heads=counts,
    intrinsic_dim=counts,
    length=st.integers(1, 4096),
    head_dim=counts,
    layers=st.integers(1, 4),
    eps=st.floats(1e-6, 0.99),
    outer_slope=st.floats(0.01, 100),
)


@given(settings_of_any_size)
def test_every_bound_says_what_it_claims_and_where_it_is_from(setting):
    for bound in all_bounds(setting):
        assert bound.claim
        assert "2510.06662" in bound.source
        assert (bound.value is None) == bool(bound.why)
        assert bound.value is None or (math.isfinite(bound.value) and bound.value >= 0)
        assert bound.kind in ("theorem", "repaired", "conjecture")


def too_few_heads(setting: Setting) -> Bound:
    """The exponent of Theorem 2(2)."""
    (bound,) = [bound for bound in all_bounds(setting) if bound.name.startswith("too few heads: ")]
    return bound


def test_the_exponent_of_the_issue_is_the_papers_formula():
    bound = too_few_heads(Setting(heads=2, intrinsic_dim=4, length=128, head_dim=8, eps=1e-2))
    assert bound.value == pytest.approx((32 - 2 - 4 + 1) / (9 * 2 + 1) - 1)
    assert bound.applies


def averages(values, cells, length):
    """max + min by one head of equal weights and a ReLU readout with entries at most 1, from its average of codes."""
    codes = [np.clip(np.arange(cells) + 1 - cells * f[:, None], 0, 1).mean(axis=0) for f in (1 - values, values)]
    copies = -(-length // cells)
    lowest = []
    for mean in codes:
        steps = np.maximum(mean, 0) - np.maximum(mean - 1 / length, 0)
        lowest.append(1 + 1 / (2 * cells) - np.sum(length / (cells * copies) * copies * steps))
    return 1 - lowest[0] + lowest[1], 2 * copies * 2 * cells


@pytest.mark.parametrize(("head_dim", "length"), [(8, 32), (64, 2048)])
def test_theorem_2_2_says_nothing_of_an_error_that_averages_reach(head_dim, length):
    """One head for max + min: a limit eps -> 0, whose exponent is no size of M where h n eps is large."""
    cells = head_dim // 2
    eps = 2 / (2 * cells)
    sized = {"heads": 1, "intrinsic_dim": 2, "length": length, "head_dim": head_dim}
    assert not too_few_heads(Setting(eps=eps, **sized)).applies
    assert too_few_heads(Setting(eps=0.9 * eps, **sized)).applies == (head_dim == 64)  # else T is too short for k > 0
    generator, worst = np.random.default_rng(0), 0.0
    for trial in range(200):
        near = np.clip(generator.uniform() + 10 ** -generator.uniform(0, 4) * generator.normal(size=length), 0, 1)
        values = near if trial % 2 else generator.choice(generator.uniform(size=3), length)
        answer, units = averages(values, cells, length)
        worst = max(worst, abs(answer - values.max() - values.min()))
    assert worst <= eps
    assert units == 2 * head_dim * -(-length // cells)


@given(settings_of_any_size)
def test_the_exponent_grows_with_length_and_falls_with_heads_and_their_width(setting):
    s, D, T, n = setting.heads, setting.intrinsic_dim, setting.length, setting.head_dim
    assert exponent(s, D, T + 4, n) > exponent(s, D, T, n)
    if exponent(s, D, T, n) > -1:
        assert exponent(s + 1, D, T, n) < exponent(s, D, T, n)
        assert exponent(s, D, T, n + 1) < exponent(s, D, T, n)


@given(settings_of_any_size)
def test_a_vacuous_bound_names_the_length_from_which_it_is_not(setting):
    bound = too_few_heads(setting)
    assert (bound.value is not None) == (
        exponent(setting.heads, setting.intrinsic_dim, setting.length, setting.head_dim) > 0
    )
    if bound.value is None and setting.heads >= setting.intrinsic_dim:
        assert "length " not in bound.why.split("no length helps")[1]
    elif bound.value is None:
        least = int(bound.why.split("length ")[1].split()[0])
        assert exponent(setting.heads, setting.intrinsic_dim, least, setting.head_dim) > 0
        assert exponent(setting.heads, setting.intrinsic_dim, least - 4, setting.head_dim) <= 0


def test_theorem_2_2_and_corollary_1_name_assumption_2():
    bounds = all_bounds(Setting(heads=1, intrinsic_dim=2, length=64))
    named = [bound.name for bound in bounds if any("2.3" in condition.text for condition in bound.conditions)]
    assert {name.split(":")[0].split(",")[0] for name in named} == {"too few heads", "uniqueness of D"}
    assert len(named) == 3


def test_enough_heads_are_not_too_few():
    bound = too_few_heads(Setting(heads=4, intrinsic_dim=4, length=512, head_dim=2))
    assert bound.value is not None
    assert not bound.applies


@given(settings_of_any_size)
def test_the_sharpness_leaves_a_head_error_within_its_quarter(setting):
    """Both quarters together: L0 D (head error + delta) is at most half of eps, as the proof wants."""
    beta = sharpness_needed(setting)
    quarter = setting.eps / (4 * setting.slope * setting.intrinsic_dim)
    assert component_accuracy(setting) == pytest.approx(quarter)
    for size in {1, setting.length // 2 or 1, setting.length}:
        assert head_error(beta, size, setting.length) <= quarter * (1 + 1e-12)


@given(
    st.integers(1, 40), st.floats(1, 60), st.floats(1.05, 3), st.integers(0, 2**16), st.sampled_from(["any", "ends"])
)
def test_no_softmax_head_errs_more_than_its_bound(length, beta, gate, seed, distribution):
    generator = np.random.default_rng(seed)
    values = (
        generator.uniform(0, 1, length) if distribution == "any" else generator.integers(0, 2, length).astype(float)
    )
    inside = generator.permutation(length) < generator.integers(1, length + 1)
    scores = beta * (-values - gate * ~inside)
    weights = np.exp(scores - scores.max())
    read = weights @ values / weights.sum()
    bound = head_error(beta, int(inside.sum()), length, gate)
    assert abs(read - values[inside].min()) <= bound + 1e-12


def test_the_published_gate_fails_where_the_deeper_one_holds():
    values, inside, beta = np.array([1.0, 0.0]), np.array([True, False]), 50.0
    shallow = np.exp(beta * (-values - 1.0 * ~inside))
    assert shallow @ values / shallow.sum() == pytest.approx(0.5)
    deep = np.exp(beta * (-values - 2.0 * ~inside))
    assert deep @ values / deep.sum() == pytest.approx(1.0)


@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 2**16))
def test_no_bounded_net_is_steeper_than_lemma_4_allows(inputs, hidden, seed):
    generator = np.random.default_rng(seed)
    inwards, bias = generator.uniform(-1, 1, (hidden, inputs)), generator.uniform(-1, 1, hidden)
    outwards = np.sign(generator.uniform(-1, 1, hidden))
    one, other = generator.uniform(-1, 1, (2, inputs))
    rise = abs(outwards @ np.maximum(inwards @ one + bias, 0) - outwards @ np.maximum(inwards @ other + bias, 0))
    needed = steep_net_size(float(rise), float(np.linalg.norm(one - other)), inputs)
    assert needed <= hidden + 1e-9


@given(st.integers(1, 9), st.floats(0.02, 0.9), st.integers(0, 2**16))
def test_lemma_9s_net_is_within_eps_of_the_maximum(length, eps, seed):
    numbers = np.random.default_rng(seed).uniform(0, 1, length)
    steps = math.ceil(1 / eps)
    sums = np.array([np.maximum(numbers - j / steps, 0).sum() for j in range(steps)])
    value = np.sum(np.maximum(sums, 0) - np.maximum(sums - 1 / steps, 0))
    assert abs(value - numbers.max()) <= eps
    assert max_net_widths(length, eps) == (length * steps, 2 * steps)
    assert max(max_net_widths(length, eps)) <= 2 * length * steps


@given(st.floats(0.1, 1e6))
def test_the_selectors_error_is_the_supremum(q):
    a = np.linspace(0, 5 / math.sqrt(q), 20001)
    assert selector_error(q) == pytest.approx(np.max(a / (1 + np.exp(q * a * a))), rel=1e-6)


def test_uniqueness_and_depth_are_conditions():
    assert unique_dim(1, 1, 100).applies
    assert not unique_dim(1, 1, 99).applies
    assert not unique_dim(1, 1, 100, gamma=20.0).applies
    conjecture = depth_conjecture(Setting(heads=1, intrinsic_dim=4, length=8, layers=2))
    assert (conjecture.kind, conjecture.value, conjecture.applies) == ("conjecture", 2.0, True)
    assert not depth_conjecture(Setting(heads=2, intrinsic_dim=4, length=8, layers=2)).applies


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"eps": 0.0}, "eps"),
        ({"eps": 1.5}, "eps"),
        ({"heads": 0}, "heads"),
        ({"length": -4}, "length"),
        ({"outer_slope": -1.0}, "outer_slope must be positive"),
        ({"gamma": math.inf}, "gamma must be positive and finite"),
    ],
)
def test_a_setting_out_of_range_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        Setting(**({"heads": 2, "intrinsic_dim": 4, "length": 8} | change))
