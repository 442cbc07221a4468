"""Judges of shares of wrong answers, means over seeds, by heads and length; `published` tables are beside them.

`margin` is the difference within which two shares are equal, as far as the examples they were counted on can tell.
"""

import numpy as np

from ...answer import ErrorTable, Surface, count_of_heads
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided, verdict_of
from ...answer.signals import REVERSED, reversal_scores

NEAR = 0.05
"""Accuracies within this share are the published ones."""
SURFACE_ERROR = 0.25
"""The mean absolute error of the logarithm up to which a fitted surface is followed."""


def first_fit_claim(training: ErrorTable, transition: int, small: float) -> Claim:
    """From `transition` heads on, and not before, at most a share `small` of the training answers is wrong."""
    statement = (
        f"{transition} heads are the first of those tried that get all but {small:.0%} of the training set at every T."
    )
    tried = training.values("heads")
    if transition not in tried or min(tried) >= transition:
        return Claim(statement, Verdict.UNDECIDED, f"{transition} heads and fewer were not both tried")
    worst = training.reduced("length", "worst").errors
    enough = [heads for heads, error in zip(tried, worst, strict=True) if error <= small]
    evidence = "largest share wrong over lengths, while training: " + "; ".join(
        f"{count_of_heads(heads)} {error:.1%}" for heads, error in zip(tried, worst, strict=True)
    )
    whose = "published" if training.source else "ours"
    first = f"{whose}: {count_of_heads(enough[0]) if enough else 'none'}"
    return Claim(statement, decided(bool(enough) and enough[0] == transition), f"{first}; {evidence}")


def length_costs_claim(training: ErrorTable, transition: int, margin: float) -> Claim:
    """Below the transition longer sequences are harder."""
    statement = f"Below {transition} heads training accuracy falls with length."
    tolls = {heads: toll for heads, toll in _tolls(training).items() if heads < transition and np.isfinite(toll)}
    lengths = training.values("length")
    if len(lengths) < 2 or not tolls:
        return Claim(statement, Verdict.UNDECIDED, "no such head count was measured at two lengths")
    evidence = f"accuracy lost from T = {lengths[0]} to {lengths[-1]}, in points: " + "; ".join(
        f"{count_of_heads(heads)} {100 * toll:+.1f}" for heads, toll in tolls.items()
    )
    verdict = verdict_of([toll > margin for toll in tolls.values()], [toll < -margin for toll in tolls.values()])
    return Claim(statement, verdict, evidence)


def levelling_claim(training: ErrorTable, transition: int) -> Claim:
    """More heads take the length's toll away."""
    statement = f"From {transition} heads on length costs less training accuracy than below."
    lengths = training.values("length")
    if len(lengths) < 2:
        return Claim(statement, Verdict.UNDECIDED, "one length says nothing about growth")
    tolls = _tolls(training)
    few, many = ([toll for heads, toll in tolls.items() if (heads >= transition) is above] for above in (False, True))
    if not few or not many or not np.isfinite([*few, *many]).all():
        return Claim(statement, Verdict.UNDECIDED, "head counts on both sides were not measured at all lengths")
    evidence = (
        f"points lost from T = {lengths[0]} to {lengths[-1]}: {100 * np.mean(few):.1f} on average below, "
        f"{100 * np.mean(many):.1f} from there on"
    )
    return Claim(statement, decided(float(np.mean(many)) < float(np.mean(few))), evidence)


def reversal_turns_claim(training: ErrorTable, published: ErrorTable | None, transition: int) -> Claim:
    """The weighted reversal score of the training errors turns positive at the transition."""
    statement = f"The weighted reversal score turns positive at {transition} heads."
    table = training.ordered("heads", "length")
    nothing = np.full_like(table.errors, np.nan)
    ours, theirs = (
        dict(zip(table.values("heads"), reversal_scores(errors), strict=True))
        for errors in (table.errors, nothing if published is None else published.aligned(table))
    )
    ours = {heads: score for heads, score in ours.items() if np.isfinite(score)}
    few = [score <= REVERSED for heads, score in ours.items() if heads < transition]
    many = [score > REVERSED for heads, score in ours.items() if heads >= transition]
    if len(table.values("length")) < 3 or not few or not many:
        return Claim(statement, Verdict.UNDECIDED, "it takes three lengths and head counts on both sides")
    evidence = f"R(h){'' if published is None else ' (of the published means)'}: " + "; ".join(
        f"{count_of_heads(heads)} {score:.2f}" + (f" ({theirs[heads]:.2f})" if np.isfinite(theirs[heads]) else "")
        for heads, score in ours.items()
    )
    if training.source:
        evidence = "R(h): " + "; ".join(f"{count_of_heads(heads)} {score:.2f}" for heads, score in ours.items())
    return Claim(statement, decided(all(few) and all(many)), evidence)


def overfitting_claim(validation: ErrorTable, margin: float) -> Claim:
    """Validation accuracy falls again at many heads."""
    statement = "Validation accuracy is highest at a middle head count and falls again at the largest."
    heads, errors = validation.values("heads"), validation.ordered("heads", "length").errors
    falls = errors[-1] - validation.reduced("heads").errors
    if len(heads) < 3 or not np.isfinite(falls).all():
        return Claim(statement, Verdict.UNDECIDED, "it takes three head counts at every length")
    evidence = f"points below the best at {count_of_heads(heads[-1])}: " + "; ".join(
        f"T = {length} {100 * fall:.1f}" for length, fall in zip(validation.values("length"), falls, strict=True)
    )
    return Claim(statement, verdict_of([bool(f > margin) for f in falls], [bool(f <= 0) for f in falls]), evidence)


def no_gain_claim(validation: ErrorTable, margin: float) -> Claim:
    """More heads need not help: refuted by a rise beyond the margin, true where a rise of five points is ruled out."""
    statement = "The most heads answer no more validation queries than the fewest, at any T."
    heads, errors = validation.values("heads"), validation.ordered("heads", "length").errors
    gains = dict(zip(validation.values("length"), (errors[0] - errors[-1]).tolist(), strict=True))
    if len(heads) < 2 or not np.isfinite(list(gains.values())).all():
        return Claim(statement, Verdict.UNDECIDED, "the fewest and the most heads were not both measured at every T")
    evidence = (
        f"points gained from {count_of_heads(heads[0])} to {count_of_heads(heads[-1])}, to within {100 * margin:.1f}: "
        + "; ".join(f"T = {length} {100 * gain:+.1f}" for length, gain in gains.items())
    )
    level, rising = ([gain + margin <= NEAR for gain in gains.values()], [gain > margin for gain in gains.values()])
    return Claim(statement, verdict_of(level, rising), evidence)


def nearness_claim(what: str, table: ErrorTable, published: ErrorTable, *, whole: bool) -> Claim:
    """Every accuracy is within five points of the published one; judged only where the whole recipe was followed."""
    statement = f"Every {what} accuracy is within {100 * NEAR:.0f} points of the published one."
    apart = published.aligned(table) - table.ordered(*published.axes).errors
    known = np.isfinite(apart)
    if not known.any():
        return Claim(statement, Verdict.UNDECIDED, "no published cell was measured")
    near = int(np.sum(np.abs(apart[known]) <= NEAR))
    evidence = (
        f"{near} of {int(known.sum())} cells; ours less published from {100 * apart[known].min():+.1f} to "
        f"{100 * apart[known].max():+.1f} points"
    )
    return Claim(statement, decided(near == int(known.sum())) if whole else Verdict.UNDECIDED, evidence)


def surface_claim(fit: Surface | None, *, a: float, delta: float) -> Claim:
    """The training error follows the published form; `a` and `delta` are the published numbers."""
    statement = "The training error follows c T^b exp(a h / T^delta) with a < 0 < b, to within a factor of e^0.25."
    if fit is None:
        return Claim(statement, Verdict.UNDECIDED, "too few cells to fit four numbers")
    evidence = (
        f"a = {fit.a:.2f} (published {a:.2f}), delta = {fit.delta:.2f} ({delta}), b = {fit.b:.2f}, "
        f"c = {fit.c:.3g}; mean absolute error of the logarithm {fit.log_error:.2f} over {fit.cells} cells"
    )
    return Claim(statement, decided(fit.a < 0 < fit.b and fit.log_error <= SURFACE_ERROR), evidence)


def _tolls(training: ErrorTable) -> dict[int, float]:
    """What the longest sequences cost over the shortest, by heads; NaN where one of them is missing."""
    errors = training.ordered("heads", "length").errors
    return dict(zip(training.values("heads"), (errors[:, -1] - errors[:, 0]).tolist(), strict=True))
