"""Heads or rank: the verdict is right where the truth is known, and declines where the data do not show one."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._errors import InputError
from headcount.analysis import RankTable, bottleneck, rank_table

from .. import made_up
from ..store.laws import unchecked_randomness
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
judged = partial(bottleneck, resamples=40)
few = settings(max_examples=8, deadline=None)


def with_errors(table: RankTable, nmse: np.ndarray) -> RankTable:
    return replace(table, errors=nmse)


def same_place(one, other) -> bool:
    return (one.limit, one.rank, one.heads, one.at, one.frontier) == (
        other.limit,
        other.rank,
        other.heads,
        other.at,
        other.frontier,
    )


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

    table = rank_table_of(error, seeds=seeds, noise=noise, lengths=lengths, seed=seed)
    found = judged(table)
    assert (found.limit, found.rank, found.heads, found.at) == ("rank", solved_at, 1, (1, solved_at))
    assert found.rank_low <= solved_at <= found.rank_high
    assert found.sentence.startswith(f"needs rank {solved_at} [")
    assert found.sentence.endswith(f": from rank {solved_at} on one head is enough, below it 16 heads are not")


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

    found = judged(rank_table_of(error, seeds=seeds, noise=noise, seed=seed))
    assert (found.limit, found.heads, found.rank, found.at) == ("heads", solved_at, 1, (solved_at, 1))
    assert found.heads_low <= solved_at <= found.heads_high
    assert found.sentence.startswith(f"needs {solved_at} heads [")
    assert "on rank 1 is enough, and no rank makes up for a missing head" in found.sentence


def test_a_drop_of_sixfold_with_little_training_is_enough():
    def error(heads, rank):
        return 0.6 - 0.02 * np.log2(heads * rank) if rank < 8 else 0.09 / heads**0.1

    assert judged(rank_table_of(error)).limit == "rank"


def test_what_takes_both_says_how_much_of_each():
    found = judged(rank_table_of(takes_both))
    assert (found.limit, found.heads, found.rank, found.at, found.frontier) == ("both", 4, 4, (4, 4), ((4, 4),))
    assert found.sentence.startswith("needs 4 heads [3, 4] and rank 4 [3, 4]")


def test_heads_and_rank_that_make_up_for_each_other_have_a_frontier():
    found = judged(rank_table_of(takes_their_product))
    assert (found.limit, found.frontier) == ("both", ((1, 8), (2, 4), (4, 2), (8, 1)))
    assert "1 head of rank 8 or 8 heads of rank 1 are enough" in found.sentence
    assert [found.solves(*size) for size in ((1, 4), (1, 8), (2, 4), (3, 5), (16, 8))] == [
        False,
        True,
        True,
        True,
        True,
    ]


@few
@given(noise=st.floats(0.0, 0.2), level=st.floats(1e-6, 2e-3), seed=st.integers(0, 1000))
def test_what_every_model_solves_needs_neither(noise, level, seed):
    found = judged(rank_table_of(lambda *_: level, noise=noise, seed=seed))
    assert (found.limit, found.at) == ("neither", (1, 1))
    assert "needs neither" in found.sentence


def test_what_no_model_moves_gains_from_neither():
    found = judged(rank_table_of(lambda *_: 0.5, noise=0.01))
    assert (found.limit, found.at, found.rank, found.heads) == ("neither", None, None, None)
    assert found.sentence.startswith("gains from neither heads nor rank: the error is about 0.5")


UNKNOWN = {
    "learns the task": rank_table_of(lambda *_: 1.0, noise=0.01),
    "no sharp drop": rank_table_of(lambda heads, rank: 0.5 / (heads * rank)),
    "no sharp drop with": rank_table_of(lambda heads, rank: 0.5 * 0.12 ** np.log2(rank)),
    "only the largest model": rank_table_of(lambda heads, rank: 1e-4 if (heads, rank) == (16, 8) else 0.1),
    "larger models undo": rank_table_of(lambda heads, rank: 1e-4 if (heads, rank) == (1, 1) else 0.1),
    "only one rank": rank_table_of(farthest, ranks=(8,)),
    "only one head count": rank_table_of(farthest, heads=(4,)),
    "one seed is not evidence": rank_table_of(farthest, seeds=1),
    "no head count": rank_table_of(lambda *_: np.nan),
}


@pytest.mark.parametrize("reason", UNKNOWN)
def test_too_little_or_too_vague_is_unknown_and_says_why(reason):
    found = judged(UNKNOWN[reason])
    assert found.limit == "unknown"
    assert found.sentence.startswith("no transition found in heads or rank: ")
    assert reason in found.sentence
    assert (found.rank, found.heads, found.at, found.frontier, found.support) == (None, None, None, (), 0.0)


def test_heads_and_rank_that_grow_together_cannot_be_told_apart():
    """Only models whose heads and rank are small, or both large."""
    table = rank_table_of(lambda heads, rank: 0.5 if heads < 4 else 1e-3)
    apart = (np.array(table.heads)[:, None] >= 4) != (np.array(table.ranks) >= 4)
    found = judged(with_errors(table, np.where(apart[..., None, None], np.nan, table.errors)))
    assert "grew together" in found.sentence


def test_a_verdict_that_one_lucky_seed_carries_is_unknown():
    """With four heads one seed of six succeeds, at each rank alone; most resamples miss some of them."""
    table = rank_table_of(lambda *_: 0.1, heads=(1, 2, 4), seeds=6, lengths=(8, 16, 32), noise=0.02)
    nmse = table.errors.copy()
    nmse[2, :, :, 0] = 1e-4
    found = judged(with_errors(table, nmse))
    assert found.limit == "unknown"
    assert "resamples" in found.sentence


@unchecked_randomness
@few
@given(tables)
def test_a_verdict_reads_as_json_and_repeats(table):
    found = judged(table)
    assert found == judged(table)
    content = json.loads(json.dumps(found.as_dict()))
    assert content["verdict"] == found.sentence
    assert content["limit"] == found.limit
    assert "sentence" not in content


@unchecked_randomness
@few
@given(tables, st.randoms(use_true_random=False))
def test_seeds_have_no_order(table, random):
    order = random.sample(range(len(table.seeds)), len(table.seeds))
    assert judged(with_errors(table, table.errors[..., order])) == judged(table)


@unchecked_randomness
@few
@given(tables)
def test_heads_and_rank_are_treated_alike(table):
    turned = RankTable(
        heads=table.ranks,
        ranks=table.heads,
        lengths=table.lengths,
        seeds=table.seeds,
        errors=table.errors.swapaxes(0, 1),
    )
    one, other = judged(table), judged(turned)
    assert other.limit == {"rank": "heads", "heads": "rank"}.get(one.limit, one.limit)
    assert (other.heads, other.rank) == (one.rank, one.heads)
    assert {size[::-1] for size in other.frontier} == set(one.frontier)


@unchecked_randomness
@few
@given(tables, st.floats(1.0, 1.6))
def test_a_sharper_table_has_the_same_verdict(table, power):
    """A power of the error keeps its order and stretches its drops."""
    one, other = (judged(t) for t in (table, with_errors(table, table.errors**power)))
    assert same_place(one, other)


@unchecked_randomness
@few
@given(tables, st.integers(2, 5))
def test_other_counts_in_the_same_order_have_the_same_verdict(table, times):
    larger = replace(table, heads=tuple(times * count for count in table.heads))
    one, other = judged(table), judged(larger)
    assert (other.limit, other.rank, other.heads) == (one.limit, one.rank, one.heads and times * one.heads)


@unchecked_randomness
@few
@given(tables, st.data())
def test_a_lost_cell_is_left_out_and_named(table, data):
    """Losing a cell that is no corner of the map's shape changes nothing but the notes."""
    whole = judged(table)
    inner = [(i, j) for i in range(5) for j in range(4) if (table.heads[i], table.ranks[j]) not in whole.frontier]
    place = data.draw(st.sampled_from(inner))
    nmse = table.errors.copy()
    nmse[(*place, 0, slice(1, None))] = np.nan  # at one length a single seed is left
    found = judged(with_errors(table, nmse))
    assert same_place(found, whole)
    assert any("left out" in note and f"rank {table.ranks[place[1]]}" in note for note in found.notes)


def test_a_rank_that_was_left_out_belongs_to_the_interval():
    table = rank_table_of(lambda heads, rank: 0.5 if rank < 4 else 1e-3)
    nmse = table.errors.copy()
    nmse[:, 1] = np.nan
    whole, found = judged(table), judged(with_errors(table, nmse))
    assert (whole.rank_low, whole.rank, whole.rank_high) == (3, 4, 4)
    assert (found.rank_low, found.rank, found.rank_high) == (2, 4, 4)


def test_a_cell_is_judged_by_its_worst_length():
    """Four heads solve short sequences at any rank, and long ones from rank 4 on."""
    short = rank_table_of(four_maxima, lengths=(8,))
    long = rank_table_of(takes_both, lengths=(64,))
    both = replace(short, lengths=(8, 64), errors=np.concatenate([short.errors, long.errors], axis=2))
    assert judged(short).limit == "heads"
    assert same_place(judged(both), judged(long))


def test_a_larger_model_that_training_lost_does_not_change_the_verdict():
    table = rank_table_of(four_maxima)
    nmse = table.errors.copy()
    nmse[4, 2] = 0.3
    assert same_place(judged(with_errors(table, nmse)), judged(table))


def test_a_drop_at_the_end_of_the_sweep_is_noted():
    assert any("rank 8 is the highest tried" in note for note in judged(rank_table_of(farthest)).notes)
    assert judged(rank_table_of(four_maxima)).notes == ()


def test_every_error_is_in_its_place():
    cells = made_up.map_cells(heads=(1, 4), ranks=(2, 8), lengths=(8, 16))

    def error(cell):
        return cell.model.heads + cell.model.rank / 10 + cell.length / 1000 + cell.seed / 10**4

    table = rank_table(reversed(made_up.finished(cells, error)))
    assert (table.heads, table.ranks, table.lengths, table.seeds) == ((1, 4), (2, 8), (8, 16), (0, 1))
    assert table.errors[1, 0, 1, 1] == pytest.approx(4 + 0.2 + 0.016 + 0.0001)
    assert table.best[0, 1].tolist() == pytest.approx([1.808, 1.816])
    assert table.worst.tolist() == [[pytest.approx(h + r / 10 + 0.016) for r in (2, 8)] for h in (1, 4)]


def test_no_records_make_no_table():
    with pytest.raises(InputError, match="no records"):
        rank_table([])
