"""Heads or rank: the answer is right where the truth is known, and declines where the data do not show one."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer import ERROR_RATE, ErrorTable, answer

from .tables import MAP_HEADS, RANKS, farthest, four_maxima, rank_table_of, takes_both, takes_their_product

TRUTHS = {
    "rank": farthest,
    "heads": four_maxima,
    "both": takes_both,
    "both, one for the other": takes_their_product,
    "neither": lambda heads, rank: 1e-4,
}
tables = st.builds(
    rank_table_of,
    st.sampled_from(list(TRUTHS.values())),
    seeds=st.integers(2, 4),
    noise=st.floats(0.0, 0.2),
    lengths=st.sampled_from([(8,), (8, 16, 32)]),
    seed=st.integers(0, 1000),
)
judged = partial(answer, resamples=40)
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
few = settings(max_examples=20, deadline=None)


def with_errors(table: ErrorTable, errors: np.ndarray) -> ErrorTable:
    return replace(table, errors=errors)


def place(one) -> tuple:
    return one.limit, one.rank, one.heads, one.at, one.frontier


@few
@given(
    solved_at=st.sampled_from(RANKS[1:]),
    unsolved=st.floats(0.4, 0.7),
    fold=st.floats(8.0, 1000.0),
    seeds=st.integers(2, 5),
    noise=st.floats(0.0, 0.1),
    lengths=st.sampled_from([(8,), (8, 16, 32)]),
    seed=st.integers(0, 1000),
)
def test_a_task_of_full_rank_needs_rank(solved_at, unsolved, fold, seeds, noise, lengths, seed):
    def error(heads, rank):
        return unsolved if rank < solved_at else unsolved / fold

    said = judged(rank_table_of(error, seeds=seeds, noise=noise, lengths=lengths, seed=seed))
    assert (said.limit, said.rank, said.heads, said.at) == ("rank", solved_at, 1, (1, solved_at))
    assert said.needs["rank"].low <= solved_at <= said.needs["rank"].high
    assert said.sentence.startswith(f"needs rank {solved_at} [")
    assert said.sentence.endswith(f": from rank {solved_at} on one head is enough, below it 16 heads are not")


@few
@given(
    solved_at=st.sampled_from(MAP_HEADS[1:]),
    after=st.floats(1e-6, 5e-4),
    seeds=st.integers(2, 5),
    noise=st.floats(0.0, 0.2),
    seed=st.integers(0, 1000),
)
def test_a_task_of_several_maxima_needs_heads(solved_at, after, seeds, noise, seed):
    def error(heads, rank):
        return 2e-2 if heads < solved_at else after

    said = judged(rank_table_of(error, seeds=seeds, noise=noise, seed=seed))
    assert (said.limit, said.heads, said.rank, said.at) == ("heads", solved_at, 1, (solved_at, 1))
    assert said.low <= solved_at <= said.high
    assert said.sentence.startswith(f"needs {solved_at} heads [")


def test_a_drop_of_sixfold_with_little_training_is_enough():
    def error(heads, rank):
        return 0.6 - 0.02 * np.log2(heads * rank) if rank < 8 else 0.09 / heads**0.1

    assert judged(rank_table_of(error)).limit == "rank"


def test_what_takes_both_says_how_much_of_each():
    said = judged(rank_table_of(takes_both))
    assert place(said) == ("both", 4, 4, (4, 4), ((4, 4),))
    assert said.sentence.startswith("needs 4 heads [3, 4] and rank 4 [3, 4]")


def test_heads_and_rank_that_make_up_for_each_other_have_a_frontier():
    said = judged(rank_table_of(takes_their_product))
    assert (said.limit, said.frontier) == ("both", ((1, 8), (2, 4), (4, 2), (8, 1)))
    assert "1 head of rank 8 or 8 heads of rank 1 are enough" in said.sentence
    solved = [said.solves(*size) for size in ((1, 4), (1, 8), (2, 4), (3, 5), (16, 8))]
    assert solved == [False, True, True, True, True]


@few
@given(noise=st.floats(0.0, 0.2), level=st.floats(1e-6, 2e-3), seed=st.integers(0, 1000))
def test_what_every_model_solves_needs_neither(noise, level, seed):
    said = judged(rank_table_of(lambda *_: level, noise=noise, seed=seed))
    assert (said.limit, said.at) == ("neither", (1, 1))
    assert "needs neither" in said.sentence


def test_what_no_model_moves_gains_from_neither():
    said = judged(rank_table_of(lambda *_: 0.5, noise=0.01))
    assert (said.limit, said.at, said.needs) == ("neither", None, {})
    assert said.sentence.startswith("gains from neither heads nor rank: the error is about 0.5")


UNKNOWN = {
    "learns the task": rank_table_of(lambda *_: 1.0, noise=0.01),
    "no sharp drop": rank_table_of(lambda heads, rank: 0.5 / (heads * rank)),
    "no sharp drop with": rank_table_of(lambda heads, rank: 0.5 * 0.12 ** np.log2(rank)),
    "only the largest model": rank_table_of(lambda heads, rank: 1e-4 if (heads, rank) == (16, 8) else 0.1),
    "larger models undo": rank_table_of(lambda heads, rank: 1e-4 if (heads, rank) == (1, 1) else 0.1),
    "only one head count": rank_table_of(farthest, heads=(4,)),
    "one seed is not evidence": rank_table_of(farthest, seeds=1),
    "no head count": rank_table_of(lambda *_: np.nan),
}


@pytest.mark.parametrize("reason", UNKNOWN)
def test_too_little_or_too_vague_is_unknown_and_says_why(reason):
    said = judged(UNKNOWN[reason])
    assert said.limit == "unknown"
    assert reason in said.sentence
    assert said.reason in said.sentence
    assert (said.needs, said.at, said.frontier, said.support) == ({}, None, (), 0.0)


def test_one_rank_leaves_a_question_about_heads():
    one = rank_table_of(four_maxima, ranks=(8,))
    assert judged(one).limit == "heads"
    assert judged(one) == judged(one.select(rank=8))
    diagonal = rank_table_of(four_maxima, ranks=MAP_HEADS)
    apart = ~np.eye(5, dtype=bool)[..., None, None]
    line = judged(with_errors(diagonal, np.where(apart, np.nan, diagonal.errors)))
    assert (line.limit, line.heads, set(line.needs)) == ("heads", 4, {"heads"})


def test_heads_and_rank_that_grow_together_cannot_be_told_apart():
    """Only models whose heads and rank are small, or both large."""
    table = rank_table_of(lambda heads, rank: 0.5 if heads < 4 else 1e-3)
    apart = (np.array(MAP_HEADS)[:, None] >= 4) != (np.array(RANKS) >= 4)
    said = judged(with_errors(table, np.where(apart[..., None, None], np.nan, table.errors)))
    assert "grew together" in said.sentence


def test_a_verdict_that_one_lucky_seed_carries_is_unknown():
    """With four heads one seed of six succeeds, at each rank alone; most resamples miss some of them."""
    table = rank_table_of(lambda *_: 0.1, heads=(1, 2, 4), seeds=6, lengths=(8, 16, 32), noise=0.02)
    table.errors[2, :, :, 0] = 1e-4
    said = judged(table)
    assert said.limit == "unknown"
    assert "resamples" in said.sentence


@few
@given(tables)
def test_an_answer_reads_as_json_and_repeats(table):
    said = judged(table)
    assert said == judged(table)
    content = json.loads(json.dumps(said.as_dict()))
    assert content["verdict"] == said.sentence
    assert (content["limit"], content["heads"], content["rank"]) == (said.limit, said.heads, said.rank)
    assert content["needs"].keys() == said.needs.keys()


@few
@given(tables, st.randoms(use_true_random=False))
def test_seeds_have_no_order(table, random):
    seeds = len(table.values("seed"))
    assert judged(with_errors(table, table.errors[..., random.sample(range(seeds), seeds)])) == judged(table)


@few
@given(tables)
def test_heads_and_rank_are_treated_alike(table):
    axes = dict(table.axes) | {"heads": table.values("rank"), "rank": table.values("heads")}
    one, other = judged(table), judged(ErrorTable(axes=axes, errors=table.errors.swapaxes(0, 1)))
    assert other.limit == {"rank": "heads", "heads": "rank"}.get(one.limit, one.limit)
    assert (other.heads, other.rank) == (one.rank, one.heads)
    assert {size[::-1] for size in other.frontier} == set(one.frontier)


@few
@given(tables, st.permutations(["heads", "rank", "length", "seed"]))
def test_axes_have_no_order(table, order):
    assert judged(table.ordered(*order)) == judged(table)


@few
@given(tables, st.floats(1.0, 1.6))
def test_a_sharper_table_has_the_same_verdict(table, power):
    """A power of the error keeps its order and stretches its drops."""
    assert place(judged(with_errors(table, table.errors**power))) == place(judged(table))


@few
@given(tables, st.floats(0.05, 1.0))
def test_a_map_is_judged_as_shares_of_the_baseline(table, baseline):
    scaled = replace(table, errors=baseline * table.errors, baseline=np.array(baseline), metric=ERROR_RATE)
    one, other = judged(table), judged(scaled)
    assert place(one) == place(other)
    if one.error is not None:
        assert other.error == pytest.approx(baseline * one.error)


@few
@given(tables, st.integers(2, 5))
def test_other_counts_in_the_same_order_have_the_same_verdict(table, times):
    axes = dict(table.axes) | {"heads": tuple(times * count for count in table.values("heads"))}
    one, other = judged(table), judged(replace(table, axes=axes))
    assert (other.limit, other.rank, other.heads) == (one.limit, one.rank, one.heads and times * one.heads)


@few
@given(tables, st.data())
def test_a_lost_cell_is_excluded_and_named(table, data):
    """Losing a cell that is no corner of the map's shape changes nothing but the notes."""
    whole = judged(table)
    inner = [(i, j) for i in range(5) for j in range(4) if (MAP_HEADS[i], RANKS[j]) not in whole.frontier]
    i, j = data.draw(st.sampled_from(inner))
    errors = table.errors.copy()
    errors[i, j, 0, 1:] = np.nan  # at one length a single seed is left
    said = judged(with_errors(table, errors))
    assert place(said) == place(whole)
    assert any("excluded" in note and f"of rank {RANKS[j]}" in note for note in said.notes)


def test_a_rank_that_was_excluded_belongs_to_the_interval():
    table = rank_table_of(lambda heads, rank: 0.5 if rank < 4 else 1e-3)
    errors = table.errors.copy()
    errors[:, 1] = np.nan
    whole, said = judged(table).needs["rank"], judged(with_errors(table, errors)).needs["rank"]
    assert (whole.low, whole.at, whole.high) == (3, 4, 4)
    assert (said.low, said.at, said.high) == (2, 4, 4)


def test_a_cell_is_judged_by_its_worst_length():
    """Four heads solve short sequences at any rank, and long ones from rank 4 on."""
    short, long = rank_table_of(four_maxima, lengths=(8,)), rank_table_of(takes_both, lengths=(64,))
    errors = np.concatenate([short.errors, long.errors], axis=2)
    both = ErrorTable(axes=dict(short.axes) | {"length": (8, 64)}, errors=errors)
    assert judged(short).limit == "heads"
    assert place(judged(both)) == place(judged(long))


def test_a_larger_model_that_training_lost_does_not_change_the_verdict():
    table = rank_table_of(four_maxima)
    errors = table.errors.copy()
    errors[4, 2] = 0.3
    assert place(judged(with_errors(table, errors))) == place(judged(table))


def test_a_drop_at_the_end_of_the_sweep_is_noted():
    assert any("rank 8" in note for note in judged(rank_table_of(farthest)).notes)
    assert judged(rank_table_of(four_maxima)).notes == ()


@pytest.mark.parametrize("classes", [2, 10])
def test_labels_of_pure_noise_have_no_verdict(classes):
    baseline, examples = 1 - 1 / classes, 200
    for seed in range(40):
        drawn = np.random.default_rng(seed).binomial(examples, baseline, (5, 4, 2, 3, 20)).min(axis=4) / examples
        parts = {"baseline": np.array(baseline), "noise": np.array(np.sqrt(baseline * (1 - baseline) / examples))}
        table = replace(rank_table_of(farthest), errors=drawn, metric=ERROR_RATE, **parts)
        said = judged(table)
        assert said.limit == "unknown"
        assert "learns" in said.sentence
