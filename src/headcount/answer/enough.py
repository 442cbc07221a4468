"""The fewest heads that are enough: an answer where the error falls with heads, and no sharp drop says how many.

A head count is enough if its error is above the best head count's by at most a tenth of what heads gain over the fewest
tried, and by no more than the standard error of that difference; or by less than five per cent of the error itself.
This is a choice for these models and these data. Nothing follows from it about the task, and no theorem is about it:
those are about `needs`.

A model of more heads can do what one of fewer does, so the errors are fitted by a curve that never rises (isotonic
regression): one lucky model among worse ones of more heads is chance, and does not set the mark for the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from .._draws import named_generator
from .answer_base import Answer, Interval, Unknown
from .bootstrap import bootstrap, interval_of
from .heads_rule import MAX_MISSED, NOT_ON_EVERY_DRAW, chance_missed
from .metric import Metric
from .signals import ALIKE, NO_SHARP_DROP, SOLVED, STILL_FALLING, UNSTABLE
from .table import ErrorTable
from .words import count_of_heads, difference_words

WITHIN = 0.1
"""A head count is enough if it leaves at most this share of what heads gain over the fewest tried."""
CHANCE = 1.645
"""Standard errors of a difference that chance exceeds, in one direction, one time in twenty."""
MOST = 1000
"""Examples are asked for where a million times as many would be enough."""
MIN_SHARED = 3
"""Head counts that draws of the data must share to be averaged."""
GRADUAL = (NO_SHARP_DROP, STILL_FALLING, UNSTABLE)
"""Reasons of no transition where something was learned, and heads may be compared by their errors."""


@dataclass(frozen=True)
class ErrorCurve:
    """The error of every head count, fewest first, which never rises, and what more heads gain.

    `measured` are the errors before the fit. `apart` are the standard errors of the differences between head counts
    over the validation examples. Errors are means over lengths and draws of the data; leading axes are resamples.
    """

    errors: Float[np.ndarray, "*resamples heads"]
    measured: Float[np.ndarray, "*resamples heads"]
    apart: Float[np.ndarray, "heads heads"]

    @classmethod
    def fitted(
        cls,
        measured: Float[np.ndarray, "*resamples heads"],
        deviation: Float[np.ndarray, " heads"],
        apart: Float[np.ndarray, "heads heads"],
    ) -> "ErrorCurve":
        """Return the curve of measured errors, each with the standard error of its own."""
        # Where all starts got stuck, training found less than fewer heads do: what is above chance is left out.
        kept = np.minimum(measured, np.minimum.accumulate(measured, axis=-1) + CHANCE * deviation)
        return cls(never_rising(kept, 1 / deviation**2), measured, apart)

    @property
    def gains(self) -> Float[np.ndarray, "*resamples heads"]:
        """How far the error of every head count is above the smallest."""
        return self.errors - self.errors[..., -1:]

    @property
    def margins(self) -> Float[np.ndarray, "*resamples heads"]:
        """The standard error of every gain, against the head count of the best model; 0 for those that share it."""
        best = np.argmin(self.measured, axis=-1)
        return np.where(self.gains > 0, self.apart[best], 0.0)

    @property
    def flat(self) -> Bool[np.ndarray, "*resamples"]:
        """Whether more heads than the fewest tried gain no more than chance does, or hardly anything."""
        return np.asarray(self.gains[..., 0] <= np.maximum(CHANCE * self.margins[..., 0], self.trifle[..., 0]))

    @property
    def trifle(self) -> Float[np.ndarray, "*resamples one"]:
        """The share of the smallest error within which errors are alike, whatever the sampling error."""
        return (ALIKE - 1) * np.maximum(self.errors[..., -1:], 0.0)

    def gain(self, place: int, more: int) -> tuple[float, float]:
        """Return what the head count at one place gains over that at another, and the margin that chance leaves."""
        return float(self.errors[place] - self.errors[more]), CHANCE * float(self.apart[place, more])

    def within(self, share: float) -> Int[np.ndarray, "*resamples"]:
        """Return the place of the fewest heads that leave at most this share of what heads gain."""
        return self._fewest(share * self.gains[..., :1])

    def enough(self, share: float) -> Int[np.ndarray, "*resamples"]:
        """Return the place of the fewest heads that do so, and whose error is not above the best one's by more than
        the standard error of that difference."""
        return self._fewest(np.minimum(share * self.gains[..., :1], self.margins))

    def _fewest(self, tolerance: Float[np.ndarray, "*resamples heads"]) -> Int[np.ndarray, "*resamples"]:
        place = np.argmax(self.gains <= np.maximum(tolerance, self.trifle), axis=-1)
        return np.asarray(np.where(self.flat, 0, place))


@dataclass(frozen=True)
class DataDraws:
    """Errors over heads, length and seed on every draw of the data, of the same head counts; and what chance does.

    `deviation` and `apart` are standard errors over the validation examples of all draws: of a head count's mean error,
    and of the differences between head counts. `effective` is how many draws without common examples they rest on.
    """

    tables: Sequence[ErrorTable]
    deviation: Float[np.ndarray, " heads"]
    apart: Float[np.ndarray, "heads heads"]
    effective: float = 1.0

    @classmethod
    def of(cls, tables: Sequence[ErrorTable], examples: int, paired: Iterable[Mapping[str, Any]]) -> "DataDraws":
        """Return the head counts that all draws have; the first draw alone where these are few.

        Standard errors are those that were stored, `paired`, and without them those of separate examples.
        """
        first = tables[0].values("heads")
        heads = tuple(count for count in first if all(count in table.values("heads") for table in tables))
        if len(heads) < MIN_SHARED or heads[0] != first[0]:
            tables, heads = tables[:1], first
        alike = [table.select(heads=heads) for table in tables]
        best = [table.reduced("seed") for table in alike]
        deviation = np.sqrt(np.mean([sampling_errors(each, examples) ** 2 for each in best], axis=0))
        apart = np.hypot(deviation[:, None], deviation) * (1 - np.eye(len(heads)))
        stored = [entry for entry in paired if set(heads) <= set(entry["heads"])]
        kept = sorted({entry["data_seed"] for entry in stored})[: len(alike)]
        if len(kept) == len(alike):
            entries = [entry for entry in stored if entry["data_seed"] in kept]
            draws = effective_draws(len(kept), entries[0]["share"])
            means = draws * len({entry["length"] for entry in entries})
            apart = np.sqrt(np.mean([_squares(entry, heads) for entry in entries], axis=0) / means)
            return cls(alike, deviation / np.sqrt(draws), apart, draws)
        return cls(alike, deviation, apart)

    @property
    def curve(self) -> ErrorCurve:
        """The curve of the mean over draws."""
        return self._curve(np.mean([table.reduced("seed").errors.mean(axis=1) for table in self.tables], axis=0))

    def by_seeds(self, resamples: int, seed: int) -> ErrorCurve:
        """Return curves of resampled seeds."""
        return self._curve(self._resampled(resamples, seed))

    def by_examples(self, resamples: int, seed: int) -> ErrorCurve:
        """Return curves of resampled seeds and validation examples."""
        drawn = self._resampled(resamples, seed)
        # Noise whose differences have these standard errors: what all head counts share cancels.
        centre = np.eye(len(self.apart)) - 1 / len(self.apart)
        values, vectors = np.linalg.eigh(-0.5 * centre @ self.apart**2 @ centre)
        noise = named_generator(seed, "resampled validation examples").normal(size=drawn.shape)
        return self._curve(drawn + noise * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)

    def _resampled(self, resamples: int, seed: int) -> Float[np.ndarray, "resamples heads"]:
        best = [bootstrap(table.errors, resamples, seed + i).best for i, table in enumerate(self.tables)]
        return np.mean(best, axis=(0, -1))

    def _curve(self, measured: Float[np.ndarray, "*resamples heads"]) -> ErrorCurve:
        return ErrorCurve.fitted(measured, self.deviation, self.apart)


def never_rising(
    errors: Float[np.ndarray, "*resamples heads"], weights: Float[np.ndarray, " heads"]
) -> Float[np.ndarray, "*resamples heads"]:
    """Return the least-squares fit that never rises, by its min-max formula: all rows at once.

    It is the smallest, over beginnings a up to a place, of the largest mean from a to an end b from that place on.
    """
    count = errors.shape[-1]
    sums = np.cumsum(np.concatenate([np.zeros((*errors.shape[:-1], 1)), errors * weights], axis=-1), axis=-1)
    totals = np.cumsum(np.concatenate([[0.0], weights]))
    begin, end = np.arange(count)[:, None], np.arange(1, count + 1)
    valid = begin < end
    means = (sums[..., None, 1:] - sums[..., :-1, None]) / np.where(valid, totals[1:] - totals[:-1, None], 1.0)
    means = np.where(valid, means, -np.inf)
    largest = np.flip(np.maximum.accumulate(np.flip(means, axis=-1), axis=-1), axis=-1)  # over ends from a place on
    return np.min(np.where(begin <= np.arange(count), largest, np.inf), axis=-2)


def _squares(entry: Mapping[str, Any], heads: Sequence[int]) -> Float[np.ndarray, "heads heads"]:
    """Return the squared standard errors of the differences between these head counts on one draw at one length."""
    places = [entry["heads"].index(count) for count in heads]
    return np.square(np.asarray(entry["errors"])[np.ix_(places, places)])


def effective_draws(draws: int, share: float) -> float:
    """Return how many draws without common examples know as much as these, each of which validates this share."""
    return (1 - (1 - share) ** draws) / share if share > 0 else float(draws)


def enough_heads(
    draws: Sequence[ErrorTable],
    found: Answer,
    *,
    examples: int,
    resamples: int,
    seed: int,
    within: float = WITHIN,
    paired: Iterable[Mapping[str, Any]] = (),
) -> Answer:
    """Return an answer of the kind "enough" in place of one without a transition; that one where heads say nothing.

    Args:
        draws: Errors over heads, length and seed on every draw of the data, of head counts with enough finished seeds.
            They are averaged over the head counts that all have.
        found: The answer by the drop.
        examples: How many validation examples the errors are means over.
        resamples: How often seeds and validation examples are drawn again for the interval.
        seed: Draws them.
        within: The share of what heads gain over the fewest tried that may be given away.
        paired: What `attach_paired_errors` stored.
    """
    gradual = found.reason in GRADUAL or found.reason.endswith(NOT_ON_EVERY_DRAW)
    if found.kind != "none" or not gradual or len(draws[0].values("heads")) < 2:
        return found
    data = DataDraws.of(draws, examples, paired)
    curve, by_seeds, again = data.curve, data.by_seeds(resamples, seed), data.by_examples(resamples, seed)
    first, place = data.tables[0], int(curve.enough(within))
    heads = first.values("heads")
    at = heads[place]
    unknowns: dict[Unknown, Interval] = {
        "seeds": Interval(at, *interval_of(heads, place, by_seeds.within(within))),
        "data": Interval(at, *interval_of(heads, place, again.within(within))),
    }
    if place > 0:
        missed = chance_missed(first.relative, first.values("seed"), place, SOLVED) > MAX_MISSED
        unknowns["search"] = Interval(at, heads[place - 1] if missed else at, at)
    needs = Interval(at, min(each.low for each in unknowns.values()), max(each.high for each in unknowns.values()))
    gains = {count: curve.gain(place, i) for i, count in enumerate(heads) if i > place}
    metric = first.metric
    more = _would_tell(curve, place, examples * data.effective, within)
    return replace(
        found,
        kind="enough",
        limit="neither" if curve.flat else "heads",
        error=float(first.reduced("seed").errors[place].max()),
        support=float(np.mean(again.within(within) == place)),
        silent=None,
        gains=gains,
        notes=(*found.notes, *_too_few(curve, more, metric, within)),
        unknowns=unknowns,
        sentence=_enough_sentence(needs, gains, bool(curve.flat), metric) + _telling(needs, more),
        needs={"heads": needs},
    )


def sampling_errors(best: ErrorTable, examples: int) -> Float[np.ndarray, " heads"]:
    """Return the standard error, over validation examples, of every head count's mean error over lengths."""
    errors = sampling_error(best.metric, best.errors, examples_of(best.baseline, best.noise, examples))
    return np.sqrt((errors**2).sum(axis=1)) / best.errors.shape[1]


def examples_of(
    baseline: Float[np.ndarray, "*models"] | float, noise: Float[np.ndarray, "*models"] | float, examples: int
) -> Float[np.ndarray, "*models"]:
    """Return of how many examples a share of wrong answers is known as well, by the standard error of the baseline.

    They are fewer than there are for a mean over classes, and for labels of tokens, which share a sequence.
    """
    baseline, noise = np.asarray(baseline, float), np.asarray(noise, float)
    known = baseline * (1 - baseline) / np.where(noise > 0, noise, 1.0) ** 2
    return np.where((noise > 0) & (known > 0), known, float(examples))


def sampling_error(
    metric: Metric, errors: Float[np.ndarray, "*models"] | float, examples: Float[np.ndarray, "*models"] | int
) -> Float[np.ndarray, "*models"]:
    """Return the standard error of errors over as many validation examples.

    Of a share of wrong answers, where none counts as one; of a mean square, that of normal residuals, as small as what
    counts as solved.
    """
    if metric.baseline is None:
        share = (np.asarray(errors) * examples + 1) / (examples + 2)
        return np.asarray(np.sqrt(share * (1 - share) / examples))
    return np.asarray(np.sqrt(2 / examples) * np.maximum(errors, SOLVED))


def _enough_sentence(needs: Interval, gains: Mapping[int, tuple[float, float]], flat: bool, metric: Metric) -> str:
    """Return the verdict, with what the best of more heads would gain."""
    verb = "is" if needs.at == 1 else "are"
    enough = f"{count_of_heads(needs.at)} {verb} enough [{needs.low}, {needs.high}]"
    if not gains:
        return f"{enough}, the most that were tried; more may gain"
    most = max(gains, key=lambda count: (gains[count][0], count))
    gain, margin = (difference_words(metric, each) for each in gains[most])
    more = "no more than chance" if flat else f"{gain}, plus or minus {margin}"
    return f"{enough}; {most} would gain {more}"


def _would_tell(curve: ErrorCurve, place: int, examples: float, within: float) -> int | None:
    """Return how many validation examples would show what these cannot; None where they can, or no number would."""
    visible, wanted = _visible(curve, place), _wanted(curve, within)
    return _rounded(examples * (visible / wanted) ** 2) if visible > wanted > visible / MOST else None


def _visible(curve: ErrorCurve, place: int) -> float:
    """Return the gain that chance would exceed one time in twenty."""
    best = int(np.argmin(curve.measured))
    return CHANCE * float(curve.apart[0, best] if curve.flat else curve.apart[: place + 1, best].max())


def _wanted(curve: ErrorCurve, within: float) -> float:
    """Return the gain to be seen: a share of what heads gain, or where they gain nothing, of the error."""
    return within * float(curve.errors[0] if curve.flat else curve.gains[0])


def _telling(needs: Interval, more: int | None) -> str:
    """Say how many validation examples would narrow an interval of several larger head counts."""
    return "" if more is None or needs.high <= needs.at + 1 else f"; about {more:,} validation examples would tell"


def _too_few(curve: ErrorCurve, more: int | None, metric: Metric, within: float) -> tuple[str, ...]:
    """Say what these validation examples show, and what more of them would."""
    if more is None:
        return ()
    visible = difference_words(metric, _visible(curve, int(curve.enough(within))))
    wanted = difference_words(metric, _wanted(curve, within))
    return (f"these validation examples show a gain of {visible}; about {more:,} would show {wanted}",)


def _rounded(count: float) -> int:
    """Return a count to two digits."""
    return int(float(f"{count:.1e}"))
