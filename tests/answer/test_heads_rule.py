"""The answer about heads is right where the truth is known, and declines where the data do not show one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer import ERROR_RATE, ErrorTable, answer, count_of_heads

from .tables import sharp, table


def with_errors(of: ErrorTable, errors: np.ndarray) -> ErrorTable:
    return replace(of, errors=errors)


@settings(max_examples=40, deadline=None)
@given(
    transition=st.integers(1, 5),
    seeds=st.integers(2, 6),
    noise=st.floats(0.02, 0.25),
    after=st.floats(1e-6, 2e-4),
    lengths=st.sampled_from([(8,), (8, 16), (8, 16, 32)]),
    seed=st.integers(0, 1000),
)
def test_a_sharp_drop_is_found(transition, seeds, noise, after, lengths, seed):
    errors = sharp(transition, after=after)
    said = answer(table(errors, seeds=seeds, noise=noise, lengths=lengths, seed=seed), resamples=80)
    assert said.heads == transition
    assert said.low <= transition <= said.high
    assert said.limit == "heads"
    assert said.sentence.startswith(f"needs {transition} head")
    assert said.solves(transition)
    assert not said.solves(transition - 1)


@settings(max_examples=40, deadline=None)
@given(start=st.floats(0.3, 0.9), ratio=st.floats(0.12, 0.85), noise=st.floats(0.0, 0.05), seed=st.integers(0, 1000))
def test_an_error_that_slides_by_a_constant_factor_has_no_transition(start, ratio, noise, seed):
    said = answer(table([start * ratio**i for i in range(5)], noise=noise, seed=seed), resamples=80)
    assert (said.heads, said.needs, said.limit) == (None, {}, "unknown")
    assert said.reason in said.sentence


@pytest.mark.parametrize("lucky", [1.0, 1.05])
def test_one_lucky_model_does_not_hide_a_plain_drop(lucky):
    """Three values asked for by a query: 38-fold down at three heads, the last two within a tenth of each other."""
    best = np.array([0.68, 0.36, 0.0095, 0.0040, 0.0075, 0.0068])
    errors = best[:, None] * np.array([1.0, 1.05, 1.1, 1.3])
    errors[3] = 0.0040 * np.array([1.0, lucky, 2.2, 2.6])
    axes = {"heads": (1, 2, 3, 4, 5, 6), "length": (9,), "seed": (0, 1, 2, 3)}
    said = answer(ErrorTable(axes=axes, errors=errors[:, None, :]))
    assert (said.kind, said.heads) == ("needs", 3)


@settings(max_examples=60, deadline=None)
@given(transition=st.integers(2, 4), lucky=st.integers(5, 7), after=st.floats(3e-3, 9e-3), by=st.floats(1.3, 2.4))
def test_a_lucky_head_count_does_not_hide_a_plain_drop(transition, lucky, after, by):
    errors = [0.8 * 0.6**i if i + 1 < transition else after for i in range(9)]
    errors[lucky - 1] = after / by
    said = answer(table(errors, heads=range(1, 10), lengths=(8,), noise=0.02), resamples=40)
    assert said.heads == transition


def test_an_unsolved_error_that_creeps_down_does_not_need_one_head():
    """Ten maxima seen with one to six heads: 0.10 to 0.07, and most of the way still to go."""
    creeping = [0.10, 0.095, 0.098, 0.092, 0.079]
    assert answer(table([*creeping, 0.073], noise=0.02)).heads is None
    said = answer(table([*creeping, 0.062], noise=0.02))
    assert said.heads is None
    assert "more heads" in said.reason


def test_an_unsolved_error_that_grows_with_length_at_every_head_count_does_not_need_one_head():
    assert answer(table([0.10] * 4, noise=0.01, growth=0.3)).heads is None
    assert answer(table([0.10] * 4, noise=0.01, growth=0.0)).heads == 1  # noise in the targets


@settings(max_examples=40, deadline=None)
@given(
    levels=st.lists(st.floats(-4, 0), min_size=2, max_size=6),
    floor=st.sampled_from([0.0, 0.003, 0.1]),
    seeds=st.integers(2, 4),
)
def test_the_kind_of_an_answer_says_what_its_numbers_do(levels, floor, seeds):
    errors = table(10 ** np.array(levels), noise=0.02, floor=floor, seeds=seeds)
    said = answer(errors, resamples=20)
    assert (said.kind == "none") == (said.heads is None)
    if said.kind == "floor":
        assert said.floor is not None
        assert (said.fold or 1.0) < 1.1
        assert "fold" not in said.reason
        assert "below" in said.sentence
        assert said.signals["drop"] is None
    if said.kind == "needs":
        assert said.sentence == f"needs {count_of_heads(said.heads)} [{said.low}, {said.high}]"
        assert (said.fold is None) == (said.heads == errors.values("heads")[0])
    if said.floor is not None:
        assert said.floor == pytest.approx(errors.best.min(axis=0).max())


def test_each_length_alone_has_no_drop_where_heads_make_no_difference():
    said = answer(table([0.11] * 6, noise=0.005))
    assert (said.kind, set(said.by_length.values())) == ("floor", {None})


def test_two_seeds_do_not_say_where_the_slope_turns():
    errors = table(sharp(4), noise=0.01, growth=0.3, seeds=3)
    falling = table(sharp(4), noise=0.01, growth=-0.1, seeds=3)
    few = (np.array(errors.values("heads")) < 4)[:, None, None]
    turning = with_errors(errors, np.where(few, errors.errors, falling.errors))
    assert answer(turning).signals["slope"] == 4
    assert answer(turning.select(seed=[0, 1])).signals["slope"] is None


@pytest.mark.parametrize("power", [1, 2, 3])
def test_an_error_that_slides_as_a_power_of_heads_has_no_transition(power):
    said = answer(table([0.5 / h**power for h in range(1, 8)], heads=range(1, 8), noise=0.02))
    assert said.heads is None


@pytest.mark.parametrize("level", [0.97, 1.0, 1.3])
def test_pure_noise_has_no_transition(level):
    said = answer(table([level] * 6, noise=0.01))
    assert said.heads is None
    assert f"{level:.2f}" in said.reason
    assert "1.00" in said.reason


@pytest.mark.parametrize(
    ("transition", "floor"), [(1, 0.01), (2, 0.01), (3, 0.01), (1, 0.2), (2, 0.2), (3, 0.05), (1, 0.6)]
)
def test_a_drop_above_a_floor_of_noise_is_found(transition, floor):
    said = answer(table(sharp(transition), floor=floor, noise=0.05))
    assert said.heads == transition
    assert said.kind == ("floor" if transition == 1 else "needs")
    assert said.floor == pytest.approx(floor, rel=0.02)
    assert any("unexplained" in note for note in said.notes) == (floor > 0.1)


def test_a_drop_at_the_largest_head_count_is_not_an_answer():
    said = answer(table(sharp(4, count=4)))
    assert said.heads is None
    assert "more heads" in said.reason


def test_one_seed_is_never_enough():
    said = answer(table(sharp(3), seeds=1))
    assert said.heads is None
    assert "seed" in said.reason


def test_a_transition_carried_by_one_seed_widens_the_interval():
    """At four heads one seed of four succeeds; a resample often misses it, and then five is the answer."""
    stuck = table(sharp(4), seeds=4, noise=0.05)
    stuck.errors[3, :, 1:] = 4e-3
    said = answer(stuck)
    assert (said.heads, said.high) == (4, 5)
    assert said.support < 0.9


def test_lost_seeds_are_excluded_and_named():
    errors = table(sharp(3))
    errors.errors[0, 0, 1:] = np.nan  # one head, one length: a single seed is left
    errors.errors[4, 1, 0] = np.nan
    said = answer(errors)
    assert said.heads == 3
    assert said.notes == ("excluded (fewer than 2 finished seeds): 1 head",)
    errors.errors[5] = np.inf
    assert answer(errors).notes == ("excluded (fewer than 2 finished seeds): 1, 6 heads",)


def test_nothing_finished_is_an_answer_without_heads():
    errors = table(sharp(3))
    said = answer(with_errors(errors, np.full_like(errors.errors, np.nan)))
    assert said.heads is None
    assert len(said.notes) == 1


def test_head_counts_between_the_tried_ones_belong_to_the_interval():
    said = answer(table([2e-2, 1e-2, 5e-5, 5e-5], heads=(1, 2, 4, 8)))
    assert (said.low, said.heads, said.high) == (3, 4, 4)
    assert said.sentence == "needs 4 heads [3, 4]"


def test_the_smallest_head_count_tried_may_be_more_than_needed():
    said = answer(table([5e-5] * 4, heads=(2, 3, 4, 5)))
    assert (said.low, said.heads) == (1, 2)


def test_more_heads_that_undo_the_drop_are_no_plateau():
    assert answer(table([0.2, 3e-3, 0.2, 0.2, 0.2, 0.2], noise=0.02)).heads is None


def test_the_same_table_gives_the_same_answer():
    errors = table(sharp(4), noise=0.3)
    assert answer(errors) == answer(errors)


def test_the_witnesses_agree_with_a_textbook_transition():
    """Below four heads the error grows with length; from four on it falls a little."""
    errors = table(sharp(4), noise=0.01, growth=0.3)
    falling = table(sharp(4), noise=0.01, growth=-0.1)
    few = (np.array(errors.values("heads")) < 4)[:, None, None]
    said = answer(with_errors(errors, np.where(few, errors.errors, falling.errors)))
    assert said.signals == {"drop": 4, "slope": 4, "reversal": 4}
    assert said.by_length == {8: 4, 16: 4, 32: 4}


def test_the_numbers_are_those_of_the_rule_before_resamples_were_drawn_together():
    said = answer(table(sharp(4, before=0.2, after=5e-4), noise=0.35, seed=3, growth=0.1))
    assert (said.sentence, said.support) == ("needs 4 heads [4, 4]", 1.0)
    assert said.reason == "the error falls 81.9-fold there and 1.2-fold after"
    assert said.error == pytest.approx(0.0010835418010685246, rel=1e-12)
    assert said.signals == {"drop": 4, "slope": None, "reversal": 6}
    slopes = [-0.011798297003236145, -0.04941990810203969, 0.046910946714988716]
    slopes += [-0.4426900622897481, 0.1205434521645341, 0.255023262284339]
    assert list(said.slopes.values()) == pytest.approx(slopes, rel=1e-9)
    reversals = [1.1810384443356485, 1.9477304782906988, 0.4646968567137379, 2.0, 0.0, 0.47454349809158997]
    assert list(said.reversals.values()) == pytest.approx(reversals, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(baseline=st.floats(0.05, 1.0), transition=st.integers(1, 5), seed=st.integers(0, 100))
def test_errors_are_judged_as_shares_of_the_baseline(baseline, transition, seed):
    """The same table in other units has the same answer, and its error in those units."""
    errors = table(sharp(transition), seed=seed)
    one = answer(errors, resamples=60)
    scaled = replace(errors, errors=baseline * errors.errors, baseline=np.array(baseline), metric=ERROR_RATE)
    other = answer(scaled, resamples=60)
    assert (other.needs, other.by_length, other.signals) == (one.needs, one.by_length, one.signals)
    assert other.error == pytest.approx(baseline * one.error)


def label_noise(classes: int, examples: int, seed: int, heads=6, lengths=3, seeds=4, checkpoints=20) -> ErrorTable:
    """Labels that nothing predicts: every checkpoint errs by chance, and the smallest of a run's is kept."""
    generator = np.random.default_rng(seed)
    baseline = 1 - 1 / classes
    errors = generator.binomial(examples, baseline, (heads, lengths, seeds, checkpoints)).min(axis=3) / examples
    return ErrorTable(
        axes={"heads": tuple(range(1, heads + 1)), "length": (8, 16, 32)[:lengths], "seed": tuple(range(seeds))},
        errors=errors,
        metric=ERROR_RATE,
        baseline=np.array(baseline),
        noise=np.array(np.sqrt(baseline * (1 - baseline) / examples)),
    )


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("examples", [50, 200, 2000])
def test_labels_of_pure_noise_have_no_answer(classes, examples):
    answers = [answer(label_noise(classes, examples, seed), resamples=40) for seed in range(40)]
    assert [said.heads for said in answers] == [None] * 40
    said = answers[0]
    assert f"{1 - 1 / classes:.2f}" in said.sentence
    assert "learns" in said.sentence


@pytest.mark.parametrize("classes", [2, 10])
def test_labels_that_are_learned_have_their_answer(classes):
    baseline = 1 - 1 / classes
    levels = [0.6 * baseline, 0.5 * baseline, *[0.01 * baseline] * 4]
    learned = replace(table(levels, noise=0.02), metric=ERROR_RATE, baseline=np.array(baseline), noise=np.array(0.01))
    assert answer(learned).heads == 3
    wrong = replace(learned, errors=learned.errors + 0.3 * baseline)
    assert any("answers stay wrong" in note for note in answer(wrong).notes)


def test_other_axes_count_with_their_best_and_a_note_says_so():
    errors = table(sharp(3))
    both = np.stack([errors.errors, 10 * errors.errors], axis=1)
    axes = {"heads": errors.values("heads"), "hidden": (8, 32), "length": errors.values("length")}
    wider = ErrorTable(axes=axes | {"seed": errors.values("seed")}, errors=both)
    said = answer(wider)
    assert said.notes == ("best over hidden 8, 32",)
    assert replace(said, notes=()) == answer(errors)
    assert answer(wider.select(hidden=[8])).notes == ()


def test_axes_that_are_missing_have_one_value():
    errors = table(sharp(3), lengths=(8,))
    without = answer(errors.select(length=8))
    assert without.needs == answer(errors).needs
    assert without.by_length == {}
    assert "seed" in answer(errors.reduced("seed")).reason
    assert answer(errors.select(heads=4)).heads is None
