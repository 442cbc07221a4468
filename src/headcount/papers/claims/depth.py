"""Judge depth: how many maxima L layers of h heads learn, and which law that follows.

`table` is over layers, heads, inside, intrinsic_dim, task_seed, length and seed. Errors are counted in maxima missed: a
model that misses one of D maxima and has the others right leaves an NMSE of about 0.04 / D, as one layer of D - 1 heads
does. D is *solved* where the best start, in the geometric mean over lengths and draws of the task, leaves at most a
tenth of that. Not solved means only that no start of ours solved it.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..._draws import named_generator
from ...answer import ErrorTable
from ...answer.bootstrap import RESAMPLES, TAIL, bootstrap
from ...answer.words import decimal
from .judge import Case, Cases, claims_that, geometric_mean

ONE_MISSED = 0.04
"""NMSE times D where one maximum is missed: one layer of D - 1 heads leaves 0.03 to 0.05 for D of 2 to 5."""
SOLVED = 0.1
"""The largest error, in maxima missed, that counts as solved: solutions lie near 0.01, others above 0.5."""
LISTED = 4
"""Shapes named in the evidence of a claim."""
ATTENTION_ONLY = "attention only"


class Law(NamedTuple):
    """A candidate for the largest D that L layers of h heads retrieve; `origin` says where it comes from."""

    name: str
    largest: Callable[[int, int], int]
    origin: str


CONJECTURE = Law("h L", lambda layers, heads: heads * layers, "Conjecture 1 of Yu et al.")
ROLES = Law("h (2 L - 1)", lambda layers, heads: heads * (2 * layers - 1), "what we construct, attention only")
LAWS = (
    CONJECTURE,
    ROLES,
    Law("h L (L + 1) / 2", lambda layers, heads: heads * layers * (layers + 1) // 2, "read off small tables"),
    Law("h (2^L - 1)", lambda layers, heads: heads * (2**layers - 1), "every token a role of its own, one head"),
    Law("(h + 1)^L - 1", lambda layers, heads: (heads + 1) ** layers - 1, "every token a role of its own"),
)
WRITTEN_DOWN = {(2, 2): 8}
"""By (layers, heads), more than h (2 L - 1): from `WRITTEN_LENGTH` tokens on, for the first draw of directions, on all
of 100,000 random sequences. At 16 tokens 41 of 160,000 fail, an NMSE of 3.8e-4 (`theory.construct_by_content`)."""
WRITTEN_LENGTH = 32
FITS = {(3, 3): 14, (3, 4): 15, (4, 3): 15, (4, 4): 16}
"""By (layers, heads), less than h (2 L - 1): the largest D whose model of roles is no wider than the study's, 36."""


@dataclass(frozen=True)
class Limit:
    """Which D models of one shape solve. `low` and `high` hold the largest of them in 90 % of resamples.

    `longest` is the largest number of tokens at which one of its models has finished.
    """

    layers: int
    heads: int
    solved: tuple[int, ...]
    unsolved: tuple[int, ...]
    low: int
    high: int
    longest: int

    @property
    def constructed(self) -> int:
        """The largest D for which a model of this shape and width has been written down, attention only."""
        shape = self.layers, self.heads
        more = WRITTEN_DOWN.get(shape, 0) if self.longest >= WRITTEN_LENGTH else 0
        return max(more, FITS.get(shape, ROLES.largest(*shape)))

    @property
    def largest(self) -> int:
        return max(self.solved, default=0)

    @property
    def name(self) -> str:
        return f"L = {self.layers}, h = {self.heads}"


def shape_limits(table: ErrorTable, inside: str = ATTENTION_ONLY) -> list[Limit]:
    """One limit per (layers, heads) that has a finished model, by layers and then heads."""
    if inside not in table.values("inside"):
        return []
    part = table.select(inside=inside).ordered("layers", "heads", "intrinsic_dim", "task_seed", "length", "seed")
    limited = []
    for layers, heads in itertools.product(part.values("layers"), part.values("heads")):
        shape = part.select(layers=layers, heads=heads)
        finished = shape.trimmed()
        if not finished.errors.size:
            continue
        dims = sorted(finished.values("intrinsic_dim"))
        by_dim = {dim: _places(shape.select(intrinsic_dim=dim)) for dim in dims}
        solved = tuple(dim for dim in dims if is_solved(best_level(by_dim[dim]), dim))
        resampled = np.array([_resampled(by_dim[dim], dim) for dim in dims])
        largest = np.max(np.where(resampled, np.array(dims)[:, None], 0), axis=0)
        low, high = np.quantile(largest, [TAIL, 1 - TAIL], method="inverted_cdf").astype(int).tolist()
        unsolved, point = tuple(dim for dim in dims if dim not in solved), max(solved, default=0)
        ends, longest = (min(low, point), max(high, point)), max(finished.values("length"))
        limited.append(Limit(layers, heads, solved, unsolved, *ends, longest))
    return limited


def _places(table: ErrorTable) -> Float[np.ndarray, "places seeds"]:
    """The errors of one shape and D, a row per length and draw."""
    seeds = len(table.values("seed"))
    return np.moveaxis(table.errors, table.index("seed"), -1).reshape(-1, seeds)


def maxima_missed(error: Float[np.ndarray, "..."] | float, dim: int) -> Float[np.ndarray, "..."]:
    """An NMSE in maxima missed: 1 where one of `dim` is missed, more or less."""
    return np.asarray(np.asarray(error) * dim / ONE_MISSED)


def is_solved(error: Float[np.ndarray, "..."] | float, dim: int) -> Bool[np.ndarray, "..."]:
    """Whether errors are those of models that have all `dim` maxima; NaN is not."""
    return np.asarray(maxima_missed(error, dim) <= SOLVED)


def level_at(table: ErrorTable, **place: int | str) -> float:
    """The best of seeds at one (layers, heads, inside, intrinsic_dim), a geometric mean over lengths and draws."""
    return best_level(_places(table.select(**place)))


def best_level(errors: Float[np.ndarray, "places seeds"]) -> float:
    """The best of seeds, a geometric mean over lengths and draws; NaN where none has finished."""
    return geometric_mean(np.nanmin(best, axis=1)) if len(best := _finished(errors)) else np.nan


def _finished(errors: Float[np.ndarray, "places seeds"]) -> Float[np.ndarray, "finished seeds"]:
    """The lengths and draws of which a seed has finished; errors that have no logarithm are as good as none."""
    return np.maximum(errors[np.isfinite(errors).any(axis=1)], 1e-12)


def _resampled(errors: Float[np.ndarray, "places seeds"], dim: int) -> Bool[np.ndarray, " resamples"]:
    """Whether each resample of seeds, and of lengths and draws, solves it."""
    errors = _finished(errors)
    best = np.log(bootstrap(errors, seed=dim).best)
    drawn = named_generator(dim, "resampled places").integers(len(errors), size=(RESAMPLES, len(errors)))
    return is_solved(np.exp(np.take_along_axis(best, drawn, axis=1).mean(axis=1)), dim)


@claims_that(
    "L layers of h heads solve D = {law.name} maxima and no more.", "no model of two or more layers has finished"
)
def law_claim(law: Law, limited: Iterable[Limit]) -> Cases:
    """Refuted where more is solved than it allows; undecided where it is not reached, since starts may be stuck.

    A law that allows less than what can be constructed never holds: starts that solve no more are stuck.
    """
    deep = [limit for limit in limited if limit.layers > 1]
    if not deep:
        return
    allowed = {limit.name: law.largest(limit.layers, limit.heads) for limit in deep}
    above = [limit for limit in deep if limit.largest > allowed[limit.name]]
    below = [limit for limit in deep if any(dim <= allowed[limit.name] for dim in limit.unsolved)]
    open_above = [limit for limit in deep if not any(dim > allowed[limit.name] for dim in limit.unsolved)]
    stuck = [limit for limit in deep if allowed[limit.name] < limit.constructed]

    def listed(chosen: list[Limit], words: Callable[[Limit], str]) -> str:
        more = f"; and {len(chosen) - LISTED} more" if len(chosen) > LISTED else ""
        return "; ".join(f"{limit.name}: {words(limit)}" for limit in chosen[:LISTED]) + more if chosen else "nowhere"

    words = (
        f"more is solved ({len(above)} of {len(deep)} shapes): "
        f"{listed(above, lambda one: f'D = {one.largest} of {allowed[one.name]}')}; "
        f"less is solved ({len(below)}): "
        f"{listed(below, lambda one: f'D = {min(d for d in one.unsolved if d <= allowed[one.name])} is not')}"
    )
    if stuck:
        written = listed(stuck, lambda one: f"D = {one.constructed}")
        words += f"; models that have more are written down, so starts that solve less are stuck: {written}"
    refuted = any(limit.low > allowed[limit.name] for limit in above)
    yield Case(words, not (above or below or open_above or stuck), refuted)


def nearest_law(limited: Iterable[Limit]) -> Law | None:
    """The law whose values lie nearest to the largest D solved, in logarithms; None where nothing deep was solved."""
    deep = [limit for limit in limited if limit.layers > 1 and limit.largest > 0]
    if not deep:
        return None
    return min(LAWS, key=lambda law: sum(abs(np.log(one.largest / law.largest(one.layers, one.heads))) for one in deep))


@claims_that(
    "With nets and positions inside, the same layers and heads solve more maxima.",
    "no shape was measured both with and without them",
)
def inside_claim(table: ErrorTable) -> Cases:
    """A net between the layers, and positions, let models solve what attention alone does not.

    What only attention alone solves counts against it: as many losses as gains leave it undecided, more refute it.
    """
    alone = {limit.name: limit for limit in shape_limits(table)}
    gains, losses, shared = [], [], 0
    for inside in table.values("inside"):
        for limit in shape_limits(table, inside) if inside != ATTENTION_ONLY else ():
            without = alone.get(limit.name, limit)
            both = {*limit.solved, *limit.unsolved} & {*without.solved, *without.unsolved}
            shared += len(both) if limit.name in alone else 0
            for changed, one, other in ((gains, limit, without), (losses, without, limit)):
                for dim in sorted((both & {*one.solved}) - {*other.solved}):
                    place = {"layers": limit.layers, "heads": limit.heads, "intrinsic_dim": dim}
                    errors = (level_at(table, inside=kind, **place) for kind in (ATTENTION_ONLY, inside))
                    changed.append(f"{limit.name}, D = {dim}, {inside}: {' to '.join(decimal(e) for e in errors)}")
    if shared:
        words = f"of {shared} shapes and D measured both ways, solved only with them: {'; '.join(gains) or 'none'}; "
        words += f"solved only without: {'; '.join(losses) or 'none'}"
        yield Case(words, len(gains) > len(losses), len(gains) < len(losses))
