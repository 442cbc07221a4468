"""The fewest heads that are enough: an answer where the error falls with heads, and no sharp drop says how many.

A head count is enough if its error is above the best head count's by at most a tenth of what heads gain over the fewest
tried, and by no more than the standard error of that difference. This is a choice for these models and these data.
Nothing follows from it about the task, and no theorem is about it: those are about `needs`.

A model of more heads can do what one of fewer does, so the errors are fitted by a curve that never rises (isotonic
regression): one lucky model among worse ones of more heads is chance, and does not set the mark for the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import isotonic_regression

from .._draws import named_generator
from .answer_base import Answer, Interval, Unknown
from .bootstrap import bootstrap, interval_of
from .heads_rule import MAX_MISSED, NOT_ON_EVERY_DRAW, chance_missed
from .metric import Metric
from .signals import NO_SHARP_DROP, SOLVED, STILL_FALLING, UNSTABLE
from .table import ErrorTable
from .words import count_of_heads, difference_words

WITHIN = 0.1
"""A head count is enough if it leaves at most this share of what heads gain over the fewest tried."""
CHANCE = 1.645
"""Standard errors of a difference that chance exceeds, in one direction, one time in twenty."""
MOST = 1000
"""Examples are asked for where a million times as many would be enough."""
GRADUAL = (NO_SHARP_DROP, STILL_FALLING, UNSTABLE)
"""Reasons of no transition where something was learned, and heads may be compared by their errors."""


@dataclass(frozen=True)
class ErrorCurve:
    """The error of every head count, fewest first, its standard error, and what more heads gain; it never rises.

    All are means over lengths; leading axes are resamples.
    """

    errors: Float[np.ndarray, "*resamples heads"]
    deviation: Float[np.ndarray, "*resamples heads"]

    @classmethod
    def of(cls, errors: Float[np.ndarray, "*resamples heads"], deviation: Float[np.ndarray, " heads"]) -> "ErrorCurve":
        """Return the curve of errors as they were measured, each with the standard error of its own."""
        # Where all starts got stuck, training found less than fewer heads do: what is above chance is left out.
        rows = np.minimum(errors, np.minimum.accumulate(errors, axis=-1) + CHANCE * deviation)
        rows = rows.reshape(-1, errors.shape[-1])
        fitted = [isotonic_regression(row, weights=1 / deviation**2, increasing=False).x for row in rows]
        return cls(np.reshape(fitted, errors.shape), np.broadcast_to(deviation, errors.shape))

    @property
    def gains(self) -> Float[np.ndarray, "*resamples heads"]:
        """How far the error of every head count is above the smallest."""
        return self.errors - self.errors[..., -1:]

    @property
    def margins(self) -> Float[np.ndarray, "*resamples heads"]:
        """The standard error of every gain; 0 for the head counts that share the best model."""
        apart = self.errors > self.errors[..., -1:]
        return np.where(apart, np.hypot(self.deviation, self.deviation[..., -1:]), 0.0)

    @property
    def flat(self) -> Bool[np.ndarray, "*resamples"]:
        """Whether more heads than the fewest tried gain no more than chance does."""
        return np.asarray(self.gains[..., 0] <= CHANCE * self.margins[..., 0])

    def gain(self, place: int, more: int) -> tuple[float, float]:
        """Return what the head count at one place gains over that at another, and the margin that chance leaves."""
        margin = CHANCE * float(np.hypot(self.deviation[place], self.deviation[more]))
        return float(self.errors[place] - self.errors[more]), margin

    def enough(self, within: float) -> Int[np.ndarray, "*resamples"]:
        """Return the place of the fewest heads that are enough."""
        tolerance = np.minimum(within * self.gains[..., :1], self.margins)
        return np.asarray(np.where(self.flat, 0, np.argmax(self.gains <= tolerance, axis=-1)))


def enough_heads(
    draws: Sequence[ErrorTable], found: Answer, *, examples: int, resamples: int, seed: int, within: float = WITHIN
) -> Answer:
    """Return an answer of the kind "enough" in place of one without a transition; that one where heads say nothing.

    Args:
        draws: Errors over heads, length and seed on every draw of the data, of head counts with enough finished seeds.
            The first draw answers, and the others widen the interval.
        found: The answer by the drop.
        examples: How many validation examples the errors are means over.
        resamples: How often seeds and validation examples are drawn again for the interval.
        seed: Draws them.
        within: The share of what heads gain over the fewest tried that may be given away.
    """
    gradual = found.reason in GRADUAL or found.reason.endswith(NOT_ON_EVERY_DRAW)
    if found.kind != "none" or not gradual or len(draws[0].values("heads")) < 2:
        return found
    (first, again), *others = [_curves(draw, examples, resamples, seed) for draw in draws]
    heads, place = draws[0].values("heads"), int(first.enough(within))
    at = heads[place]
    unknowns: dict[Unknown, Interval] = {"seeds": Interval(at, *interval_of(heads, place, again.enough(within)))}
    if others:
        there = [
            draw.values("heads")[int(curve.enough(within))] for draw, (curve, _) in zip(draws[1:], others, strict=True)
        ]
        unknowns["data"] = Interval(at, min(at, *there), max(at, *there))
    if place > 0:
        missed = chance_missed(draws[0].relative, draws[0].values("seed"), place, SOLVED) > MAX_MISSED
        unknowns["search"] = Interval(at, heads[place - 1] if missed else at, at)
    needs = Interval(at, min(each.low for each in unknowns.values()), max(each.high for each in unknowns.values()))
    gains = {count: first.gain(place, i) for i, count in enumerate(heads) if i > place}
    metric = draws[0].metric
    return replace(
        found,
        kind="enough",
        limit="neither" if first.flat else "heads",
        error=float(draws[0].reduced("seed").errors[place].max()),
        support=float(np.mean(again.enough(within) == place)),
        silent=None,
        gains=gains,
        notes=(*found.notes, *_too_few(first, place, examples, metric, within)),
        unknowns=unknowns,
        sentence=_enough_sentence(needs, gains, bool(first.flat), metric),
        needs={"heads": needs},
    )


def _curves(table: ErrorTable, examples: int, resamples: int, seed: int) -> tuple[ErrorCurve, ErrorCurve]:
    """Return the curve of one draw of the data, and those of resampled seeds and validation examples."""
    best, drawn = table.reduced("seed"), bootstrap(table.errors, resamples, seed).best.mean(axis=2)
    deviation = sampling_errors(best, examples)
    noise = deviation * named_generator(seed, "resampled validation examples").normal(size=drawn.shape)
    return ErrorCurve.of(best.errors.mean(axis=1), deviation), ErrorCurve.of(drawn + noise, deviation)


def sampling_errors(best: ErrorTable, examples: int) -> Float[np.ndarray, " heads"]:
    """Return the standard error, over validation examples, of every head count's mean error over lengths.

    Of a share of wrong answers, where none counts as one; of a mean square, that of normal residuals, as small as what
    counts as solved.
    """
    errors = best.errors
    if best.metric.baseline is None:
        share = (errors * examples + 1) / (examples + 2)
        variance = share * (1 - share) / examples
    else:
        variance = 2 * np.maximum(errors, SOLVED) ** 2 / examples
    return np.sqrt(variance.sum(axis=1)) / errors.shape[1]


def _enough_sentence(needs: Interval, gains: Mapping[int, tuple[float, float]], flat: bool, metric: Metric) -> str:
    """Return the verdict, with what the best of more heads would gain."""
    if not gains:
        return f"no fewer than {needs.at} heads [{needs.low}, {needs.high}], the most that were tried; more may gain"
    most = max(gains, key=lambda count: gains[count][0])
    gain, margin = (difference_words(metric, each) for each in gains[most])
    more = "no more than chance" if flat else f"{gain}, plus or minus {margin}"
    verb = "is" if needs.at == 1 else "are"
    return f"{count_of_heads(needs.at)} {verb} enough [{needs.low}, {needs.high}]; {most} would gain {more}"


def _too_few(curve: ErrorCurve, place: int, examples: int, metric: Metric, within: float) -> tuple[str, ...]:
    """Say how many validation examples would show what these cannot."""
    visible = CHANCE * float(curve.margins[0] if curve.flat else curve.margins[: place + 1].max())
    wanted = within * float(curve.errors[0] if curve.flat else curve.gains[0])
    if not visible > wanted > visible / MOST:
        return ()
    more = examples * (visible / wanted) ** 2
    return (
        f"{examples:,} validation examples show a gain of {difference_words(metric, visible)}; "
        f"about {_rounded(more):,} would show {difference_words(metric, wanted)}",
    )


def _rounded(count: float) -> int:
    """Return a count to two digits."""
    return int(float(f"{count:.1e}"))
