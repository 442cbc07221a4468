"""The claims of the first paper about real data, each judged on accuracies by heads and length."""

import numpy as np
from jaxtyping import Float

from ..analysis.comparison import Claim, Verdict, count_of_heads, decided, verdict_of
from ..analysis.signals import REVERSED, reversal_scores
from .labelled import Accuracies

NEAR = 0.05
"""Accuracies within this share are the published ones."""


def transition_claim(found: Accuracies, transition: int, small: float) -> Claim:
    """From `transition` heads on, and not before, at most a share `small` of the training answers is wrong."""
    statement = (
        f"{transition} heads are the first of those tried that get all but {small:.0%} of the training set at every T."
    )
    if not {transition} <= set(found.heads) or min(found.heads) >= transition:
        return Claim(statement, Verdict.UNDECIDED, f"{transition} heads and fewer were not both tried")
    worst = np.nanmax(found.errors, axis=1)
    enough = [heads for heads, error in zip(found.heads, worst, strict=True) if error <= small]
    evidence = "largest share wrong over lengths, while training: " + "; ".join(
        f"{count_of_heads(heads)} {error:.1%}" for heads, error in zip(found.heads, worst, strict=True)
    )
    first = f"ours: {count_of_heads(enough[0])}" if enough else "ours: none"
    return Claim(statement, decided(bool(enough) and enough[0] == transition), f"{first}; {evidence}")


def growth_claim(found: Accuracies, transition: int) -> Claim:
    """Below the transition longer sequences are harder."""
    statement = f"Below {transition} heads training accuracy falls with length."
    lost = found.training[:, 0] - found.training[:, -1]
    falls = {
        heads: float(fall)
        for heads, fall in zip(found.heads, lost, strict=True)
        if heads < transition and np.isfinite(fall)
    }
    if len(found.lengths) < 2 or not falls:
        return Claim(statement, Verdict.UNDECIDED, "no such head count was measured at two lengths")
    evidence = f"accuracy lost from T = {found.lengths[0]} to {found.lengths[-1]}, in points: " + "; ".join(
        f"{count_of_heads(heads)} {100 * fall:+.1f}" for heads, fall in falls.items()
    )
    noise = found.training_noise
    verdict = verdict_of([fall > noise for fall in falls.values()], [fall < -noise for fall in falls.values()])
    return Claim(statement, verdict, evidence)


def levelling_claim(found: Accuracies, transition: int) -> Claim:
    """More heads take the length's toll away."""
    statement = f"From {transition} heads on length costs less training accuracy than below."
    if len(found.lengths) < 2:
        return Claim(statement, Verdict.UNDECIDED, "one length says nothing about growth")
    lost = found.training[:, 0] - found.training[:, -1]
    few, many = (
        [value for heads, value in zip(found.heads, lost, strict=True) if (heads >= transition) is above]
        for above in (False, True)
    )
    if not few or not many or not np.isfinite([*few, *many]).all():
        return Claim(statement, Verdict.UNDECIDED, "head counts on both sides were not measured at all lengths")
    evidence = (
        f"points lost from T = {found.lengths[0]} to {found.lengths[-1]}: {100 * np.mean(few):.1f} on average below, "
        f"{100 * np.mean(many):.1f} from there on"
    )
    return Claim(statement, decided(float(np.mean(many)) < float(np.mean(few))), evidence)


def reversal_claim(found: Accuracies, theirs: Float[np.ndarray, "heads lengths"], transition: int) -> Claim:
    """The weighted reversal score of the training errors turns positive at the transition."""
    statement = f"The weighted reversal score turns positive at {transition} heads."
    ours, published = reversal_scores(found.errors), reversal_scores(1 - theirs)
    scores = {heads: float(score) for heads, score in zip(found.heads, ours, strict=True) if np.isfinite(score)}
    few = [score <= REVERSED for heads, score in scores.items() if heads < transition]
    many = [score > REVERSED for heads, score in scores.items() if heads >= transition]
    if len(found.lengths) < 3 or not few or not many:
        return Claim(statement, Verdict.UNDECIDED, "it takes three lengths and head counts on both sides")
    printed = dict(zip(found.heads, published, strict=True))
    evidence = "R(h) (of the published means): " + "; ".join(
        f"{count_of_heads(heads)} {score:.2f}" + (f" ({printed[heads]:.2f})" if np.isfinite(printed[heads]) else "")
        for heads, score in scores.items()
    )
    return Claim(statement, decided(all(few) and all(many)), evidence)


def overfitting_claim(found: Accuracies) -> Claim:
    """Validation accuracy falls again at many heads."""
    statement = "Validation accuracy is highest at a middle head count and falls again at the largest."
    best, last = np.nanmax(found.validation, axis=0), found.validation[-1]
    falls = best - last
    if len(found.heads) < 3 or not np.isfinite(falls).all():
        return Claim(statement, Verdict.UNDECIDED, "it takes three head counts at every length")
    evidence = f"points below the best at {count_of_heads(found.heads[-1])}: " + "; ".join(
        f"T = {length} {100 * fall:.1f}" for length, fall in zip(found.lengths, falls, strict=True)
    )
    verdict = verdict_of([bool(fall > found.validation_noise) for fall in falls], [bool(fall <= 0) for fall in falls])
    return Claim(statement, verdict, evidence)


def nearness_claim(what: str, ours: np.ndarray, theirs: np.ndarray, *, whole: bool) -> Claim:
    """Every accuracy is within five points of the published one; judged only where the whole recipe was followed."""
    statement = f"Every {what} accuracy is within {100 * NEAR:.0f} points of the published one."
    apart = ours - theirs
    known = np.isfinite(apart)
    if not known.any():
        return Claim(statement, Verdict.UNDECIDED, "no published cell was measured")
    near = int(np.sum(np.abs(apart[known]) <= NEAR))
    evidence = (
        f"{near} of {int(known.sum())} cells; ours less published from {100 * apart[known].min():+.1f} to "
        f"{100 * apart[known].max():+.1f} points"
    )
    return Claim(statement, decided(near == int(known.sum())) if whole else Verdict.UNDECIDED, evidence)
