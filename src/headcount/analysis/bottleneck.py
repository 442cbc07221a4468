"""Heads or rank: which of the two a task is short of, read from a sweep over both.

A cell is a model of so many heads of so high a rank; its error is the least over seeds, at the length where that is
largest, because a model that fails at one of the lengths has not solved the task. A larger model contains the smaller
ones, so a cell counts with the least error among the cells it contains: what is above that is training's failure.

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

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from ..store import Record
from .answer import MIN_SEEDS, RESAMPLES, bootstrap, interval_of
from .comparison import count_of_heads
from .signals import CREEP, LEFT_TO_GAIN, MIN_DROP, NOTHING_LEARNED, SMALL, SOLVED
from .summary import NMSE, errors_by, unit_of

Limit = Literal["rank", "heads", "both", "neither", "unknown"]
UNDONE = 0.5
"""Share of the drop, in decades, that larger models may lose again on average."""


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """`errors[i, j, k, l]` is the validation error with heads[i], ranks[j], lengths[k], seeds[l]; `unit` says which.

    With several learning rates it is a seed's best. NaN marks a cell that diverged, failed or is missing.
    """

    heads: tuple[int, ...]
    ranks: tuple[int, ...]
    lengths: tuple[int, ...]
    seeds: tuple[int, ...]
    errors: Float[np.ndarray, "heads ranks lengths seeds"]
    unit: str = NMSE

    @property
    def best(self) -> Float[np.ndarray, "heads ranks lengths"]:
        """The least error over seeds: what the model class can do, an optimiser's bad luck aside."""
        return np.fmin.reduce(self.errors, axis=3)

    @property
    def worst(self) -> Float[np.ndarray, "heads ranks"]:
        """The least error over seeds at the length where it is largest: what the verdict judges. NaN where a length is
        missing."""
        return self.best.max(axis=2)


def rank_table(records: Iterable[Record]) -> RankTable:
    """The errors of one experiment's records, by heads and rank."""
    records = list(records)
    (heads, ranks, lengths, seeds), errors = errors_by(
        records,
        lambda cell: cell.model.heads,
        lambda cell: cell.model.rank,
        lambda cell: cell.length,
        lambda cell: cell.seed,
    )
    return RankTable(heads=heads, ranks=ranks, lengths=lengths, seeds=seeds, errors=errors, unit=unit_of(records))


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """What a task is short of: `limit`, and in words `sentence`.

    `rank` is the least rank from which some head count solves the task, `heads` the least head count from which some
    rank does, `at` the solved (heads, rank) of least heads x rank; all None where nothing is known to be solved. The
    bounds hold rank and heads in 90 % of the bootstrap resamples of the seeds that agree on the limit, and values
    between the tried ones that cannot be told apart. `support` is the share of resamples that agree. `frontier` are the
    solved cells that contain no other, fewest heads first; `fold` is the mean factor by which the error falls there.
    """

    limit: Limit
    sentence: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    heads: int | None = None
    heads_low: int | None = None
    heads_high: int | None = None
    at: tuple[int, int] | None = None
    frontier: tuple[tuple[int, int], ...] = ()
    fold: float | None = None
    support: float = 0.0
    notes: tuple[str, ...] = ()

    def solves(self, heads: int, rank: int) -> bool:
        """Whether a model of this size contains one that solves the task."""
        return any(heads >= fewest and rank >= least for fewest, least in self.frontier)

    def as_dict(self) -> dict[str, Any]:
        content = asdict(self)
        return {"verdict": content.pop("sentence")} | content


def bottleneck(table: RankTable, *, resamples: int = RESAMPLES, seed: int = 0) -> Bottleneck:
    """The verdict on a table of errors. Never from one seed: a cell without two finished seeds is left out."""
    if len(table.seeds) < MIN_SEEDS:
        return _unknown("one seed is not evidence; give at least 2")
    finite = np.where(np.isfinite(table.errors), table.errors, np.nan)
    usable = np.all(np.sum(np.isfinite(finite), axis=3) >= MIN_SEEDS, axis=2)
    notes = _left_out(table, usable)
    cells = _Cells.of(table, usable)
    for name, tried in (("head count", cells.heads), ("rank", cells.ranks)):
        if len(np.unique(tried)) < 2:
            number = "only one" if len(tried) else "no"
            return _unknown(f"{number} {name} was tried with two finished seeds; give at least 2", notes)
    # Sorted, so that it does not matter which seed is called which.
    nmse = np.sort(finite[usable], axis=2)
    found = _judge(cells, np.nanmin(nmse, axis=2).max(axis=1))
    drawn = [_judge(cells, best.max(axis=1)) for best, _ in bootstrap(nmse, resamples, seed)]
    agreeing = [one for one in drawn if one.limit == found.limit]
    if found.limit == "unknown":
        return _unknown(found.reason, notes)
    if len(agreeing) < len(drawn) / 2:
        notes = (*notes, f"{found.limit} as the bottleneck rests on too few seeds")
        return _unknown("most resamples of the seeds say something else; give more seeds", notes)
    support = len(agreeing) / max(1, len(drawn))
    if not found.solved.any():
        sentence = f"gains from neither heads nor rank: the error is about {found.error:.2g} throughout"
        return Bottleneck(limit="neither", sentence=sentence, support=support, notes=notes)
    return _solved(cells, found, agreeing, support, notes)


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
    def of(cls, table: RankTable, usable: Bool[np.ndarray, "heads ranks"]) -> "_Cells":
        rows, columns = np.nonzero(usable)
        heads, ranks = np.array(table.heads)[rows], np.array(table.ranks)[columns]
        lines = [np.flatnonzero(axis == value) for axis in (rows, columns) for value in np.unique(axis)]
        pairs = [(*pair, line[0], line[-1]) for line in lines for pair in pairwise(line)]
        contains = (heads[:, None] >= heads) & (ranks[:, None] >= ranks)
        return cls(heads, ranks, contains, *np.array(pairs, int).reshape(-1, 4).T)


@dataclass(frozen=True)
class _Found:
    """One judgement of a map: `drop` in decades, `error` the largest one among the solved cells or, if none, of all."""

    limit: Limit
    solved: Bool[np.ndarray, " cells"]
    drop: float = 0.0
    error: float = 1.0
    reason: str = ""


def _judge(cells: _Cells, errors: Float[np.ndarray, " cells"]) -> _Found:
    """The rule of this module on one error a cell."""
    nothing, everything = np.zeros(len(errors), bool), np.ones(len(errors), bool)
    if errors.min() > NOTHING_LEARNED:
        reason = f"no model tried learns the task; the least error is {errors.min():.2f}"
        return _Found("unknown", nothing, reason=reason)
    # No model need be worse than the mean of the target, whose error is 1.
    own = np.log10(np.clip(errors, SOLVED, 1.0))
    level = np.where(cells.contains, own, np.inf).min(axis=1)
    highest, undone = level.max(), own - level
    gain = highest - level.min()
    lost_again = "larger models undo the drop of smaller ones; train longer or give more seeds"
    if highest <= np.log10(SMALL) and gain <= LEFT_TO_GAIN * -highest:
        if undone.mean() > UNDONE * -highest:
            return _Found("unknown", nothing, reason=lost_again)
        return _Found("neither", everything, drop=float(-highest), error=float(10**highest))
    if own.max() - own.min() <= CREEP:
        return _Found("neither", nothing, error=float(errors.max()))

    steps = np.unique(level)
    cuts, gaps = steps[:-1], steps[1:] - steps[:-1]
    solved = level <= cuts[:, None]
    crossed = ~solved[:, cells.before] & solved[:, cells.after]
    kept = crossed.any(axis=1)
    cuts, solved, crossed = cuts[kept], solved[kept], crossed[kept]
    ends = cells.after == cells.last
    falls = level[cells.before] - level[cells.after]
    left = np.where(ends, level[cells.first] - level[cells.before], level[cells.after] - level[cells.last])
    drop, slack = (np.sum(crossed * each, axis=1) / crossed.sum(axis=1) for each in (falls, left))
    sharp = (drop >= MIN_DROP) & (slack <= LEFT_TO_GAIN * drop)
    holds = np.sum(solved * undone, axis=1) / solved.sum(axis=1) <= UNDONE * drop
    several = solved.sum(axis=1) >= 2
    chosen = sharp & holds & several
    if not chosen.any():
        reason = "the error changes with heads or rank but shows no sharp drop with a plateau beside it"
        if (gaps[~kept] >= MIN_DROP).any():
            reason = "heads and rank grew together, so the drop may be due to either; vary each alone"
        elif (sharp & several).any():
            reason = lost_again
        elif sharp.any():
            reason = "only the largest model tried lowers the error; try more heads or a higher rank"
        return _Found("unknown", nothing, reason=reason)
    best = int(np.argmax(np.where(chosen, drop, -np.inf)))
    return _Found(_shape(cells, solved[best]), solved[best], drop=float(drop[best]), error=float(10 ** cuts[best]))


def _shape(cells: _Cells, solved: Bool[np.ndarray, " cells"]) -> Limit:
    """What the solved cells of a map, some but not all, say is short."""
    if np.array_equal(cells.ranks >= cells.ranks[solved].min(), solved):
        return "rank"
    return "heads" if np.array_equal(cells.heads >= cells.heads[solved].min(), solved) else "both"


def _solved(cells: _Cells, found: _Found, agreeing: list[_Found], support: float, notes: tuple[str, ...]) -> Bottleneck:
    """The verdict where some cells are solved."""

    def bounds(values: Int[np.ndarray, " cells"]) -> tuple[int, int, int]:
        tried = tuple(np.unique(values).tolist())
        index, *drawn = (tried.index(int(values[one.solved].min())) for one in (found, *agreeing) if one.solved.any())
        low, high = interval_of(tried, index, drawn or [index])
        return tried[index], int(low), int(high)

    rank, rank_low, rank_high = bounds(cells.ranks)
    heads, heads_low, heads_high = bounds(cells.heads)
    inside = cells.contains[np.ix_(found.solved, found.solved)].sum(axis=1) == 1
    frontier = tuple(
        zip(cells.heads[found.solved][inside].tolist(), cells.ranks[found.solved][inside].tolist(), strict=True)
    )
    if found.limit in ("heads", "both") and heads == cells.heads.max():
        notes = (*notes, f"{heads} heads are the most tried; more may lower the error further")
    if found.limit in ("rank", "both") and rank == cells.ranks.max():
        notes = (*notes, f"rank {rank} is the highest tried; a higher one may lower the error further")
    if found.error > 0.1:
        notes = (*notes, f"up to {found.error:.0%} of the target's variance stays unexplained where it is solved")
    made = Bottleneck(
        limit=found.limit,
        sentence="",
        rank=rank,
        rank_low=rank_low,
        rank_high=rank_high,
        heads=heads,
        heads_low=heads_low,
        heads_high=heads_high,
        at=min(frontier, key=lambda size: (size[0] * size[1], size[0])),
        frontier=frontier,
        fold=float(10**found.drop),
        support=support,
        notes=notes,
    )
    max_heads = 0 if found.solved.all() else int(cells.heads[~found.solved].max())
    return replace(made, sentence=_sentence(made, max_heads))


def _sentence(made: Bottleneck, max_heads: int) -> str:
    """What a task needs, as the end of a sentence about it; `max_heads` are the most that fail somewhere."""
    assert made.heads is not None
    assert made.at is not None
    needs_rank = f"rank {made.rank} [{made.rank_low}, {made.rank_high}]"
    needs_heads = f"{count_of_heads(made.heads)} [{made.heads_low}, {made.heads_high}]"
    if made.limit == "rank":
        enough = "one head is enough" if made.heads == 1 else f"{made.heads} heads are enough"
        fails = "one head is not" if max_heads == 1 else f"{max_heads} heads are not"
        return f"needs {needs_rank}: from rank {made.rank} on {enough}, below it {fails}"
    if made.limit == "heads":
        enough = f"from {count_of_heads(made.heads)} on rank {made.rank} is enough"
        return f"needs {needs_heads}: {enough}, and no rank makes up for a missing head"
    if made.limit == "neither":
        return (
            f"needs neither more heads nor more rank: {size_of(*made.at)} {'is' if made.at[0] == 1 else 'are'} enough"
        )
    if len(made.frontier) == 1:
        why = "with fewer heads no rank is enough, and with a lower rank no number of heads"
        return f"needs {needs_heads} and {needs_rank}: {why}"
    ends = f"{size_of(*made.frontier[0])} or {size_of(*made.frontier[-1])}"
    least = f"the least heads x rank that is enough is {made.at[0] * made.at[1]}, {size_of(*made.at)}"
    return f"trades heads for rank: {ends} are enough, and {least}"


def _left_out(table: RankTable, usable: Bool[np.ndarray, "heads ranks"]) -> tuple[str, ...]:
    missing = [size_of(table.heads[i], table.ranks[j]) for i, j in np.argwhere(~usable)]
    if not missing:
        return ()
    several = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return (f"left out for want of two finished seeds at every length: {', '.join(missing[:3])}{several}",)


def size_of(heads: int, rank: int) -> str:
    """`4 heads of rank 8`."""
    return f"{count_of_heads(heads)} of rank {rank}"


def _unknown(reason: str, notes: tuple[str, ...] = ()) -> Bottleneck:
    return Bottleneck(limit="unknown", sentence=f"no transition found in heads or rank: {reason}", notes=notes)
