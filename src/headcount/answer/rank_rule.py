"""Heads or rank: which of the two a task is short of, read from a sweep over both.

A cell is a number of heads and a rank; its error is the smallest over seeds, at the length where that is
largest, because a model that fails at one of the lengths has not solved the task. A larger model contains the smaller
ones, so a cell counts with the smallest error among the cells it contains: what is above that is training's failure.

The map of these errors is cut in two where the drop is sharpest, averaged over all pairs of neighbours that the cut
separates. The drop is the one of `signals.py`: a factor of five, and on each line little left to gain after it, or,
where it comes at the end of the line, little gained before. The cells below the cut are solved, and their shape is the
verdict:

    rank     all cells from some rank on, whatever their heads
    heads    all cells from some head count on, whatever their rank
    both     any other shape: it takes heads and rank together, or one makes up for the other
    neither  all cells, or no cell differs from another
    unknown  no such cut, too little was tried, or most resamples of the seeds say something else

Noise in the targets is not taken off: a floor above a fifth of what is learned hides the drop, and the verdict is
unknown.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from .answer_base import Answer, Interval, Limit
from .bootstrap import MIN_SEEDS, bootstrap, interval_of
from .heads_rule import MUCH, ONE_SEED, nothing_learned
from .signals import CREEP, LEFT_TO_GAIN, MIN_DROP, SMALL, SOLVED, unlearned_above
from .table import ErrorTable
from .words import count_of_heads, error_words, size_of

UNDONE = 0.5
"""Share of the drop, in decades, that larger models may lose again on average."""
UNDOING = "larger models undo the drop of smaller ones; train longer or give more seeds"


def answer_by_rank(table: ErrorTable, *, resamples: int, seed: int) -> Answer:
    """Answer from a table of heads x rank x length x seed; exclude cells with fewer than two finished seeds."""
    if len(table.values("seed")) < MIN_SEEDS:
        return _unknown(ONE_SEED)
    usable = np.all(np.sum(np.isfinite(table.errors), axis=3) >= MIN_SEEDS, axis=2)
    notes = _left_out(table, usable)
    cells = _Cells.of(table, usable)
    for name, tried in (("head count", cells.heads), ("rank", cells.ranks)):
        if len(np.unique(tried)) < 2:
            number = "only one" if len(tried) else "no"
            return _unknown(f"{number} {name} was tried with two finished seeds; give at least 2", notes)
    relative = np.where(np.isfinite(table.errors), table.relative, np.nan)[usable]
    # Sorted, so that it does not matter which seed is called which.
    errors = np.sort(relative, axis=2)
    worst = np.nanmin(errors, axis=2).max(axis=1)
    judged = table.reduced("seed")
    unlearned = unlearned_above(judged.noise / judged.baseline).min(axis=2)[usable]
    found = _judge(cells, worst, unlearned)
    if found.limit == "unknown":
        nothing = np.all(worst > unlearned)
        reason = nothing_learned("no model tried learns the task", judged) if nothing else _why(cells, worst)
        return _unknown(reason, notes)
    drawn = bootstrap(errors, resamples, seed).best.max(axis=2)
    again = [_judge(cells, one, unlearned) for one in drawn]
    agreeing = [one for one in again if one.limit == found.limit]
    if len(agreeing) < resamples / 2:
        notes = (*notes, f"{found.limit} as the bottleneck rests on too few seeds")
        return _unknown("most resamples of the seeds say something else; give more seeds", notes)
    support = len(agreeing) / max(1, resamples)
    if not found.solved.any():
        error = float((worst * judged.baseline[usable].max(axis=1)).max())
        words = error_words(table.metric, [error])
        sentence = f"gains from neither heads nor rank: the error is about {words} throughout"
        return Answer(sentence=sentence, kind="floor", floor=error, limit="neither", support=support, notes=notes)
    error = found.error * float(judged.baseline[usable][found.solved].max())
    answer = _solved(cells, found, agreeing)
    much = (f"up to {error:.0%} {table.metric.lost} where it is solved",) if error > MUCH else ()
    return replace(answer, support=support, error=error, notes=(*notes, *answer.notes, *much))


@dataclass(frozen=True)
class _Cells:
    """The cells with enough seeds in a list, by heads and then rank. `contains[i, j]`: model i is no smaller than j.

    Neighbours are consecutive cells of one head count or of one rank: pair k leads from `before[k]` to `after[k]` on
    the line from `first[k]` to `last[k]`.
    """

    heads: Int[np.ndarray, " cells"]
    ranks: Int[np.ndarray, " cells"]
    contains: Bool[np.ndarray, "cells cells"]
    before: Int[np.ndarray, " pairs"]
    after: Int[np.ndarray, " pairs"]
    first: Int[np.ndarray, " pairs"]
    last: Int[np.ndarray, " pairs"]

    @classmethod
    def of(cls, table: ErrorTable, usable: Bool[np.ndarray, "heads ranks"]) -> "_Cells":
        rows, columns = np.nonzero(usable)
        heads, ranks = np.array(table.values("heads"))[rows], np.array(table.values("rank"))[columns]
        lines = [np.flatnonzero(axis == value) for axis in (rows, columns) for value in np.unique(axis)]
        pairs = [(*pair, line[0], line[-1]) for line in lines for pair in pairwise(line)]
        contains = (heads[:, None] >= heads) & (ranks[:, None] >= ranks)
        return cls(heads, ranks, contains, *np.array(pairs, int).reshape(-1, 4).T)


@dataclass(frozen=True)
class _Found:
    """One judgement of a map: `drop` in decades, `error` the largest relative one among the solved cells."""

    limit: Limit
    solved: Bool[np.ndarray, " cells"]
    drop: float = 0.0
    error: float = 1.0


def _judge(cells: _Cells, errors: Float[np.ndarray, " cells"], unlearned: Float[np.ndarray, " cells"]) -> _Found:
    """Apply the rule of this module to one relative error per cell."""
    none, every = np.zeros(len(errors), bool), np.ones(len(errors), bool)
    if np.all(errors > unlearned):
        return _Found("unknown", none)
    own, level = _levels(cells, errors)
    undone, highest = own - level, level.max()
    if _all_small(level):
        kept = undone.mean() <= UNDONE * -highest
        return _Found("neither", every, float(-highest), _power(highest)) if kept else _Found("unknown", none)
    if own.max() - own.min() <= CREEP:
        return _Found("neither", none)
    cuts = np.sort(level)
    solved, drop, sharp, holds, several = _cuts(cells, level, undone, cuts)
    chosen = sharp & holds & several
    if not chosen.any():
        return _Found("unknown", none)
    best = np.argmax(np.where(chosen, drop, -np.inf))
    return _Found(_shape(cells, solved[best]), solved[best], float(drop[best]), _power(cuts[best]))


def _power(level: float) -> float:
    return float(np.power(10, level))  # `10**level` may differ in the last bit


def _levels(cells: _Cells, errors: Float[np.ndarray, " cells"]) -> tuple[np.ndarray, np.ndarray]:
    """Return log errors of each cell alone, and with the models it contains; none is worse than the constant answer."""
    own = np.log10(np.clip(errors, SOLVED, 1.0))
    return own, np.where(cells.contains, own, np.inf).min(axis=1)


def _all_small(level: Float[np.ndarray, " cells"]) -> bool:
    highest = level.max()
    return bool(highest <= np.log10(SMALL) and highest - level.min() <= LEFT_TO_GAIN * -highest)


def _cuts(
    cells: _Cells, level: Float[np.ndarray, " cells"], undone: Float[np.ndarray, " cells"], cuts: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return for every cut: the cells it solves, its drop, whether it is sharp, holds, and has several."""
    solved = level <= cuts[:, None]
    before, after, first, last = (level[places] for places in (cells.before, cells.after, cells.first, cells.last))
    falls, left = before - after, np.where(cells.after == cells.last, first - before, after - last)
    crossed = (before > cuts[:, None]) & (after <= cuts[:, None])
    count = crossed.sum(axis=1)
    drop, slack = (np.sum(crossed * each, axis=1) / np.maximum(count, 1) for each in (falls, left))
    sharp = (count > 0) & (drop >= MIN_DROP) & (slack <= LEFT_TO_GAIN * drop)
    number = solved.sum(axis=1)
    holds = np.sum(solved * undone, axis=1) / number <= UNDONE * drop
    return solved, drop, sharp, holds, number >= 2


def _shape(cells: _Cells, solved: Bool[np.ndarray, " cells"]) -> Limit:
    """Return what the solved cells of a map, some but not all, say is short."""
    if np.array_equal(cells.ranks >= cells.ranks[solved].min(), solved):
        return "rank"
    return "heads" if np.array_equal(cells.heads >= cells.heads[solved].min(), solved) else "both"


def _why(cells: _Cells, errors: Float[np.ndarray, " cells"]) -> str:
    """Return why a map that is learned somewhere has no verdict."""
    own, level = _levels(cells, errors)
    if _all_small(level):
        return UNDOING
    steps = np.unique(level)
    solved, _, sharp, _, several = _cuts(cells, level, own - level, steps)
    crossed = np.any(~solved[:, cells.before] & solved[:, cells.after], axis=1)[:-1]
    if (np.diff(steps)[~crossed] >= MIN_DROP).any():
        return "heads and rank grew together, so the drop may be due to either; vary each alone"
    if (sharp & several).any():
        return UNDOING
    if sharp.any():
        return "only the largest model tried lowers the error; try more heads or a higher rank"
    return "the error changes with heads or rank but shows no sharp drop with a plateau after it"


def _solved(cells: _Cells, found: _Found, agreeing: list[_Found]) -> Answer:
    """Return the answer where some cells are solved."""

    def bounds(values: Int[np.ndarray, " cells"]) -> Interval:
        tried = np.unique(values)
        index, *places = (
            int(np.searchsorted(tried, values[one.solved].min())) for one in (found, *agreeing) if one.solved.any()
        )
        known = tuple(tried.tolist())
        return Interval(known[index], *interval_of(known, index, np.array(places or [index])))

    limit, heads, rank = found.limit, bounds(cells.heads), bounds(cells.ranks)
    inside = cells.contains[np.ix_(found.solved, found.solved)].sum(axis=1) == 1
    corners = (values[found.solved][inside].tolist() for values in (cells.heads, cells.ranks))
    frontier = tuple(zip(*corners, strict=True))
    notes = []
    if limit in ("heads", "both") and heads.at == cells.heads.max():
        notes.append(f"{heads.at} heads are the most tried; more may lower the error further")
    if limit in ("rank", "both") and rank.at == cells.ranks.max():
        notes.append(f"rank {rank.at} is the highest tried; a higher one may lower the error further")
    at = min(frontier, key=lambda size: (size[0] * size[1], size[0]))
    max_heads = 0 if found.solved.all() else int(cells.heads[~found.solved].max())
    return Answer(
        sentence=_sentence(limit, heads, rank, at, frontier, max_heads),
        kind="needs",
        needs={"heads": heads, "rank": rank},
        limit=limit,
        fold=float(10**found.drop),
        at=at,
        frontier=frontier,
        notes=tuple(notes),
    )


def _sentence(
    limit: Limit,
    heads: Interval,
    rank: Interval,
    at: tuple[int, int],
    frontier: tuple[tuple[int, int], ...],
    max_heads: int,
) -> str:
    """Return what a task needs, as the end of a sentence about it; `max_heads` are the most that fail somewhere."""
    needs_heads = f"{count_of_heads(heads.at)} [{heads.low}, {heads.high}]"
    if limit == "rank":
        enough = "one head is enough" if heads.at == 1 else f"{heads.at} heads are enough"
        fails = "one head is not" if max_heads == 1 else f"{max_heads} heads are not"
        return f"needs rank {rank}: from rank {rank.at} on {enough}, below it {fails}"
    if limit == "heads":
        enough = f"from {count_of_heads(heads.at)} on rank {rank.at} is enough"
        return f"needs {needs_heads}: {enough}, and no rank tried makes up for a missing head"
    if limit == "neither":
        return f"needs neither more heads nor more rank: {size_of(*at)} {'is' if at[0] == 1 else 'are'} enough"
    if len(frontier) == 1:
        why = "with fewer heads no rank tried is enough, and with a lower rank no head count tried"
        return f"needs {needs_heads} and rank {rank}: {why}"
    ends = f"{size_of(*frontier[0])} or {size_of(*frontier[-1])}"
    smallest = f"the smallest heads x rank that is enough is {at[0] * at[1]}, {size_of(*at)}"
    return f"trades heads for rank: {ends} are enough, and {smallest}"


def _left_out(table: ErrorTable, usable: Bool[np.ndarray, "heads ranks"]) -> tuple[str, ...]:
    heads, ranks = table.values("heads"), table.values("rank")
    missing = [size_of(heads[i], ranks[j]) for i, j in np.argwhere(~usable)]
    if not missing:
        return ()
    several = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return (f"excluded (fewer than {MIN_SEEDS} finished seeds at some length): {', '.join(missing[:3])}{several}",)


def _unknown(reason: str, notes: tuple[str, ...] = ()) -> Answer:
    return Answer(sentence=f"no transition found in heads or rank: {reason}", reason=reason, notes=notes)
