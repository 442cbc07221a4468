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
    few = [i for i, heads in enumerate(found.heads) if heads < transition]
    falls = found.training[few, 0] - found.training[few, -1]
    known = np.isfinite(falls)
    if len(found.lengths) < 2 or not known.any():
        return Claim(statement, Verdict.UNDECIDED, "no such head count was measured at two lengths")
    shortest, longest = min(found.lengths), max(found.lengths)
    evidence = f"accuracy lost from T = {shortest} to {longest}, in points: " + "; ".join(
        f"{count_of_heads(found.heads[i])} {100 * fall:+.1f}" for i, fall in zip(few, falls, strict=True)
    )
    return Claim(
        statement, verdict_of(falls[known] > found.training_noise, falls[known] < -found.training_noise), evidence
    )


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
    if not np.isfinite(ours).any() or len(found.lengths) < 3:
        return Claim(statement, Verdict.UNDECIDED, "it takes three lengths to see a reversal")
    evidence = "R(h) (of the published means): " + "; ".join(
        f"{count_of_heads(heads)} {score:.2f} ({other:.2f})"
        for heads, score, other in zip(found.heads, ours, published, strict=True)
    )
    few = [score <= REVERSED for heads, score in zip(found.heads, ours, strict=True) if heads < transition]
    many = [score > REVERSED for heads, score in zip(found.heads, ours, strict=True) if heads >= transition]
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
    return Claim(statement, verdict_of(falls > found.validation_noise, falls <= 0), evidence)


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
