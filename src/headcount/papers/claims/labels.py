"""Judge shares of wrong answers, means over seeds, by heads and length, together with the published tables.

`margin` is the difference within which two shares are equal, as far as the examples they were counted on can tell.
"""

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...answer.claim import ClaimResult
from ...answer.signals import REVERSED, reversal_scores
from ..fits import Surface
from .judge import Case, Cases, claims_that, exactly, in_points, judge

NEAR = 0.05
"""Accuracies within this share are the published ones."""
POINTS = f"{100 * NEAR:.0f} points"
SURFACE_ERROR = 0.25
"""The mean absolute error of the logarithm up to which a fitted surface is followed."""


def beyond_margin(words: str, difference: float, margin: float) -> Case:
    """A difference is above zero, as far as the margin tells; refuted where it is below."""
    return Case(words, difference > margin, difference < -margin)


@claims_that(
    "{transition} heads are the first of those tried that get all but {small:.0%} of the training set at every T.",
    "{transition} heads and fewer were not both tried",
)
def first_fit_claim(training: ErrorTable, transition: int, small: float) -> Cases:
    tried, worst = training.values("heads"), training.reduced("length", "worst").errors
    if transition in tried and min(tried) < transition:
        first = next((heads for heads, error in zip(tried, worst, strict=True) if error <= small), None)
        shares = "; ".join(f"{count_of_heads(heads)} {error:.1%}" for heads, error in zip(tried, worst, strict=True))
        whose, found = "published" if training.source else "ours", "none" if first is None else count_of_heads(first)
        words = f"{whose}: {found}; largest share wrong over lengths, while training: {shares}"
        yield exactly(words, first == transition)


@claims_that(
    "Below {transition} heads training accuracy falls with length.", "no such head count was measured at two lengths"
)
def length_costs_claim(training: ErrorTable, transition: int, margin: float) -> Cases:
    lengths = training.values("length")
    yield f"accuracy lost from T = {lengths[0]} to {lengths[-1]}, in points: "
    for heads, toll in _tolls(training).items():
        if len(lengths) > 1 and heads < transition and np.isfinite(toll):
            yield beyond_margin(f"{count_of_heads(heads)} {100 * toll:+.1f}", toll, margin)


def levelling_claim(training: ErrorTable, transition: int) -> ClaimResult:
    statement = f"From {transition} heads on length costs less training accuracy than below."
    tolls, lengths = _tolls(training), training.values("length")
    few, many = ([toll for heads, toll in tolls.items() if (heads >= transition) is above] for above in (False, True))
    if len(lengths) < 2:
        return judge(statement, [], "one length says nothing about growth")
    below, after = (float(np.mean(side)) if side else np.nan for side in (few, many))
    words = f"points lost from T = {lengths[0]} to {lengths[-1]}: {100 * below:.1f} on average below, "
    case = exactly(f"{words}{100 * after:.1f} from there on", after < below)
    known = np.isfinite([below, after]).all()
    return judge(statement, [case] if known else [], "head counts on both sides were not measured at all lengths")


@claims_that(
    "The weighted reversal score turns positive at {transition} heads.",
    "it takes three lengths and head counts on both sides",
)
def reversal_turns_claim(training: ErrorTable, published: ErrorTable | None, transition: int) -> Cases:
    table = training.ordered("heads", "length")
    printed = None if training.source or published is None else published
    theirs = np.full_like(table.errors, np.nan) if printed is None else printed.aligned(table)
    scores = zip(table.values("heads"), reversal_scores(table.errors), reversal_scores(theirs), strict=True)
    known = {heads: (ours, reference) for heads, ours, reference in scores if np.isfinite(ours)}
    if len(table.values("length")) < 3 or len({heads >= transition for heads in known}) < 2:
        return
    yield f"R(h){'' if printed is None else ' (of the published means)'}: "
    for heads, (ours, reference) in known.items():
        also = f" ({reference:.2f})" if np.isfinite(reference) else ""
        yield exactly(f"{count_of_heads(heads)} {ours:.2f}{also}", (ours > REVERSED) == (heads >= transition))


@claims_that(
    "Validation accuracy is highest at a middle head count and falls again at the largest.",
    "it takes three head counts at every length",
)
def overfitting_claim(validation: ErrorTable, margin: float) -> Cases:
    heads, errors = validation.values("heads"), validation.ordered("heads", "length").errors
    falls = errors[-1] - validation.reduced("heads").errors
    if len(heads) > 2 and np.isfinite(falls).all():
        yield f"points below the best at {count_of_heads(heads[-1])}: "
        for length, fall in zip(validation.values("length"), falls, strict=True):
            yield Case(f"T = {length} {100 * fall:.1f}", fall > margin, fall <= 0)


@claims_that(
    "The most heads answer no more validation queries than the fewest, at any T.",
    "the fewest and the most heads were not both measured at every T",
)
def no_gain_claim(validation: ErrorTable, margin: float) -> Cases:
    """More heads need not help: refuted by a rise beyond the margin, true where a rise of five points is ruled out."""
    heads, errors = validation.values("heads"), validation.ordered("heads", "length").errors
    gains = errors[0] - errors[-1]
    if len(heads) > 1 and np.isfinite(gains).all():
        ends = f"from {count_of_heads(heads[0])} to {count_of_heads(heads[-1])}"
        yield f"points gained {ends}, to within {100 * margin:.1f}: "
        for length, gain in zip(validation.values("length"), gains.tolist(), strict=True):
            yield Case(f"T = {length} {100 * gain:+.1f}", gain + margin <= NEAR, gain > margin)


@claims_that(f"Every {{what}} accuracy is within {POINTS} of the published one.", "no published cell was measured")
def nearness_claim(what: str, table: ErrorTable, published: ErrorTable, *, whole: bool) -> Cases:
    """Every accuracy is within five points of the published one; judged only where the whole recipe was followed."""
    apart = published.aligned(table) - table.ordered(*published.axes).errors
    known = apart[np.isfinite(apart)]
    if known.size:
        near = int(np.sum(np.abs(known) <= NEAR))
        words = f"{near} of {known.size} cells; ours less published {in_points(known)}"
        yield exactly(words, near == known.size)


@claims_that(
    "The training error follows c T^b exp(a h / T^delta) with a < 0 < b, to within a factor of e^0.25.",
    "too few cells to fit four numbers",
)
def surface_claim(fit: Surface | None, *, a: float, delta: float) -> Cases:
    """The training error follows the published form; `a` and `delta` are the published numbers."""
    if fit is not None:
        yield exactly(
            f"a = {fit.a:.2f} (published {a:.2f}), delta = {fit.delta:.2f} ({delta}), b = {fit.b:.2f}, "
            f"c = {fit.c:.3g}; mean absolute error of the logarithm {fit.log_error:.2f} over {fit.cells} cells",
            fit.a < 0 < fit.b and fit.log_error <= SURFACE_ERROR,
        )


def _tolls(training: ErrorTable) -> dict[int, float]:
    """The share that the longest sequences cost over the shortest, by heads; NaN where one of them is missing."""
    errors = training.ordered("heads", "length").errors
    return dict(zip(training.values("heads"), (errors[:, -1] - errors[:, 0]).tolist(), strict=True))
