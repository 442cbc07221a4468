"""Three signs of the head count at which a task turns easy, each read from the smallest error over seeds.

    drop      log error against heads: the drop after which more heads bring little
    slope     log error against log length: it rises with length below the transition, and no longer from it on
    reversal  the weighted reversal score R(h), which turns positive at the transition

The drop decides the answer; the other two are further evidence, because an error that training has not driven to its
floor can rise with length at any head count. Source of slope and reversal: Yu et al. (arXiv 2510.06662), section 5.

Errors are relative: shares of the error of the best constant answer. Every function takes one table of heads x lengths,
or one per resample along leading axes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

MIN_DROP = 0.7
"""Decades (a factor of five) that the error must fall at a transition."""
LEFT_TO_GAIN = 1 / 3
"""More heads after a transition may gain at most this share of its drop, in decades."""
SOLVED = 1e-5
"""Errors below this count as this: what is left is the optimiser's, not the head count's."""
ON_A_FLOOR = 2.0
"""A fall of less than this factor shows only above a floor."""
FEW_WRONG = 2.0
"""Fewer wrong answers than this among the validation examples count as this many."""
SMALL = 1e-2
"""An error of at most this is no floor worth naming."""
FIRST_TO_GAIN = 0.3
"""Decades (a factor of two) that more heads may gain where the smallest head count tried is enough."""
EVEN = 0.02
"""The smallest head count tried shows no drop of its own: it is enough only if its error is SMALL, or if it is noise in
the targets: then no head count differs from it by more than this many decades (five per cent)."""
CREEP = 0.025
"""A last drop below this many decades is no fall."""
FLAT, FLAT_HIGH = 0.05, 0.02
"""Decades (twelve and five per cent) within which the last two head counts count as equal: a floor that heads do not
move. The second is for floors above LOW_FLOOR, where a difference of twelve per cent is much."""
LOW_FLOOR = 0.05
MIN_FLOOR = 1e-3
"""A floor below this is no noise in the targets, but where training ended."""
ALIKE = 1.05
"""Errors within this factor are alike, whatever the sampling error."""
LUCK = 2.0
"""Errors within this factor of the smallest may be a matter of luck."""
TRIFLE = 1e-3
MAX_TRIFLE_SHARE, MIN_TRIFLE_SHARE = 0.2, 0.01
"""Differences below a trifle are no head count's: this much, at most a fifth of the floor and at least a hundredth."""
MIN_FOLD = 1.1
"""A smaller factor is not worth a sentence."""
NOTHING_LEARNED = 0.9
"""An error above this share of the best constant answer's is hardly better than that answer."""
NOISE_BAND = 4.0
"""Nor is an error within this many standard errors of it: the smallest of some hundred draws lies three below."""
REVERSED = 0.25
"""A reversal score above this is a reversal, not a ripple."""
NONE = -1
"""The index that stands for no transition where there is one per resample."""


STILL_FALLING = "the error still falls at the largest head count tried; try more heads"
NO_SHARP_DROP = "the error changes with heads but shows no sharp drop with a plateau after it"
GROWS_WITH_LENGTH = "no head count tried lowers the error, and it grows with length; try more heads"
FLOOR_THROUGHOUT = "no head count tried is better than the fewest by more than chance"
ONE_HEAD_COUNT = "only one head count was tried"
NOT_LEARNED = "no head count learns the task"
UNSTABLE = "most resamples of the seeds show none; give more seeds"


@dataclass(frozen=True)
class DropTransition:
    """The index of the transition among the head counts, or None; the reason, and by what factor the error falls.

    The smallest head count tried has no smaller one to fall from, and no factor.
    """

    index: int | None
    reason: str
    fold: float | None = None


def unlearned_above(noise: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
    """Return the relative error above which nothing was learned, given the relative standard error of the baseline."""
    return np.asarray(np.minimum(NOTHING_LEARNED, 1 - NOISE_BAND * np.asarray(noise, float)))


def has_learned(error: float, baseline: float, noise: float) -> bool:
    """Whether an error is better than a constant answer's, whose standard error over the examples is `noise`."""
    return baseline > 0 and bool(error <= unlearned_above(np.array(noise / baseline)) * baseline)


def levels(
    best: Float[np.ndarray, "*resamples heads lengths"],
    median: Float[np.ndarray, "*resamples heads lengths"],
    grain: Float[np.ndarray, " lengths"] | float = 0.0,
    *,
    subtract_floor: bool = True,
) -> Float[np.ndarray, "*resamples heads_and_none"]:
    """Return the mean over lengths of log10 error, after any floor that heads do not move is taken off.

    Entry 0 stands for no head at all, whose best answer is the constant one: error 1. Noise in the targets leaves a
    floor under every head count and flattens the drop in log error; where the last two head counts agree within `FLAT`,
    or within what the validation examples can tell apart, their error is taken for that floor, and what is above it is
    compared, down to the scatter between seeds. `grain` is what one wrong answer adds to an error rate.
    """
    smallest = smallest_error(grain)
    best, median = np.maximum(best, smallest), np.maximum(median, smallest)
    tail = best[..., -2:, :]
    lowest, highest = tail.min(axis=-2), tail.max(axis=-2)
    least = best.min(axis=-2)
    chance = 2 * np.sqrt(least * grain)  # two standard errors of a share of wrong answers
    near = np.where(lowest <= LOW_FLOOR, FLAT, FLAT_HIGH)
    flat = ((np.log10(highest / lowest) <= near) & (lowest >= MIN_FLOOR)) | (highest - lowest <= chance)
    flat &= subtract_floor & ((np.asarray(grain) > 0) | (lowest >= MIN_FLOOR))
    floor = np.where(flat, least, 0.0)
    apart = median[..., -2:, :] - tail
    # Of the two head counts the one whose seeds agree better: starts that got stuck are no noise in the targets.
    scatter = np.maximum(highest - lowest, apart.min(axis=-2))
    trifle = np.maximum(MIN_TRIFLE_SHARE * least, np.minimum(MAX_TRIFLE_SHARE * least, TRIFLE))
    # Without a floor, what a typical start reaches at the last two head counts: below it luck decides, not heads.
    typical = np.minimum(median[..., -2:, :].min(axis=-2), LUCK * least)
    resolution = np.where(flat, np.maximum(np.maximum(scatter, trifle), chance), typical)
    with_none = np.concatenate([np.ones_like(best[..., :1, :]), best], axis=-2)
    above = np.maximum(with_none - floor[..., None, :], resolution[..., None, :])
    return np.mean(np.log10(above), axis=-1)


def drop_indices(
    best: Float[np.ndarray, "*resamples heads lengths"],
    median: Float[np.ndarray, "*resamples heads lengths"],
    unlearned: Float[np.ndarray, "..."] | float = NOTHING_LEARNED,
    grain: Float[np.ndarray, " lengths"] | float = 0.0,
) -> Int[np.ndarray, "*resamples"]:
    """Find the first head count whose drop is large and leaves little for more heads to gain; NONE if there is none.

    A floor is subtracted to show a drop that it flattens, never to hide one: where nothing is left after it, the errors
    are compared as they are. One lucky model below the last two head counts would otherwise hide a plain drop.
    """
    if best.shape[-2] < 2:
        return np.full(best.shape[:-2], NONE)
    found = _first_drops(best, levels(best, median, grain), grain)
    plain = _first_drops(best, levels(best, median, grain, subtract_floor=False), grain)
    found = np.where((found == NONE) & (plain > 0), plain, found)
    # No wrong answer at all: enough, however few the validation examples and so however small the drop that they show.
    found = np.where(np.all(best[..., 0, :] == 0, axis=-1), 0, found)
    return np.where(np.all(best > unlearned, axis=(-2, -1)), NONE, found)


def _first_drops(
    best: Float[np.ndarray, "*resamples heads lengths"],
    level: Float[np.ndarray, "*resamples heads_and_none"],
    grain: Float[np.ndarray, " lengths"] | float,
) -> Int[np.ndarray, "*resamples"]:
    """Return the first head count whose drop in `level` is large and stays; NONE where there is none."""
    found = np.full(best.shape[:-2], NONE)
    drops = level[..., :-1] - level[..., 1:]
    solved = np.maximum(best, SOLVED)
    from_first = (best[..., 0, :].max(axis=-1) <= SMALL) | _is_even(solved) | _is_chance(solved, grain, 2.0)
    for index in reversed(range(best.shape[-2] - 1)):
        drop, later = drops[..., index], level[..., index + 2 :] - level[..., index + 1, None]
        enough = (drop >= MIN_DROP) & (-later.min(axis=-1) <= LEFT_TO_GAIN * drop) & (later.mean(axis=-1) <= 0.5 * drop)
        if index == 0:  # its drop is from no head at all, which any model makes
            enough &= from_first & ((-later.min(axis=-1) <= FIRST_TO_GAIN) | _is_chance(solved, grain, 3.0))
        found = np.where(enough, index, found)
    return found


def smallest_error(grain: Float[np.ndarray, " lengths"] | float) -> Float[np.ndarray, "..."]:
    """Return the error that all below it count as."""
    return np.asarray(np.maximum(SOLVED, FEW_WRONG * np.asarray(grain)))


def _is_even(best: Float[np.ndarray, "*resamples heads lengths"]) -> Bool[np.ndarray, "*resamples"]:
    """Whether no head count differs from the smallest: a floor of noise."""
    return np.asarray(np.abs(np.log10(best[..., 1:, :] / best[..., :1, :])).max(axis=(-2, -1)) <= EVEN)


def _is_chance(
    best: Float[np.ndarray, "*resamples heads lengths"], grain: Float[np.ndarray, " lengths"] | float, errors: float
) -> Bool[np.ndarray, "*resamples"]:
    """Whether no head count is better than the smallest by `errors` standard errors of an error rate."""
    first, others = best[..., :1, :], best[..., 1:, :]
    within = np.all(first - others <= errors * np.sqrt(first * grain), axis=(-2, -1))
    return np.asarray(within & np.all(np.asarray(grain) > 0))


def drop_transition(
    best: Float[np.ndarray, "heads lengths"],
    median: Float[np.ndarray, "heads lengths"],
    unlearned: Float[np.ndarray, "..."] | float = NOTHING_LEARNED,
    grain: Float[np.ndarray, " lengths"] | float = 0.0,
) -> DropTransition:
    """Return the drop of one table, with the reason for it or against one.

    `unlearned` is that of `unlearned_above`, `grain` that of `levels`.
    """
    if len(best) < 2:
        return DropTransition(None, ONE_HEAD_COUNT)
    if np.all(best > unlearned):
        return DropTransition(None, NOT_LEARNED)
    index = int(drop_indices(best, median, unlearned, grain))
    level = levels(best, median, grain)
    drops = level[:-1] - level[1:]
    if index != NONE:
        return _at_drop(best, index)
    if drops[-1] >= 0.5 * drops[1:].max() and drops[-1] > CREEP:
        return DropTransition(None, STILL_FALLING)
    return DropTransition(None, NO_SHARP_DROP)


def _at_drop(best: Float[np.ndarray, "heads lengths"], index: int) -> DropTransition:
    """Return the drop at a head count, in words: above a floor without a factor, which would be the scatter's."""
    means = np.mean(np.log10(np.maximum(best, SOLVED)), axis=1)
    after = 10 ** (means[index] - means[index:].min())
    floor = has_floor(best)
    if index == 0:
        further = f"lower it {after:.2g}-fold" if after >= MIN_FOLD else "add nothing"
        return DropTransition(
            0, FLOOR_THROUGHOUT if floor else f"the error is small with the fewest heads tried; more {further}"
        )
    fold = float(10 ** (means[index - 1] - means[index]))
    if floor:
        return DropTransition(index, "the error falls there to a floor that more heads hardly lower", fold)
    further = f"{after:.2g}-fold after" if after >= MIN_FOLD else "no further after"
    return DropTransition(index, f"the error falls {fold:.3g}-fold there and {further}", fold)


def has_floor(best: Float[np.ndarray, "heads lengths"]) -> bool:
    """Whether an error worth naming stays at every head count, at some length."""
    return bool(best.min(axis=0).max() > SMALL)


def length_slopes(
    best: Float[np.ndarray, "*resamples heads lengths"], lengths: tuple[int, ...]
) -> Float[np.ndarray, "*resamples heads"]:
    """Return d log(error) / d log(length) for every head count; NaN with a single length."""
    if len(lengths) < 2:
        return np.full(best.shape[:-1], np.nan)
    logs = np.log(np.maximum(best, np.finfo(float).tiny))
    return np.polyfit(np.log(lengths), logs.reshape(-1, len(lengths)).T, 1)[0].reshape(best.shape[:-1])


def slope_transition(rising: Bool[np.ndarray, " heads"]) -> int | None:
    """Find the first head count from which the error no longer rises with length, as it did before; None if silent."""
    return _turn(~rising)


def reversal_scores(best: Float[np.ndarray, "*resamples heads lengths"]) -> Float[np.ndarray, "*resamples heads"]:
    """Return R(h): the sum over T1 < T2 of max(err(h, T1) - err(h, T2), 0), divided by the range of err(h, .).

    It is NaN with one length.
    """
    count = best.shape[-1]
    if count < 2:
        return np.full(best.shape[:-1], np.nan)
    falls = [np.maximum(best[..., i] - best[..., j], 0) for i in range(count) for j in range(i + 1, count)]
    width = best.max(axis=-1) - best.min(axis=-1)
    return np.sum(falls, axis=0) / np.where(width > 0, width, 1.0)


def reversal_transition(scores: Float[np.ndarray, " heads"]) -> int | None:
    """Find the first head count from which the score stays above a ripple, as it did not before; None when silent."""
    return _turn(scores > REVERSED)


def _turn(after: Bool[np.ndarray, " heads"]) -> int | None:
    """Find where a row of False turns True for good. All False or all True says nothing."""
    stays = np.minimum.accumulate(after[::-1])[::-1]
    first = int(np.argmax(stays))
    return first if stays.any() and first > 0 else None
