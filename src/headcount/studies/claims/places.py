"""Judges of what it does to draw an image's place in the frame once instead of each time it is shown.

Tables are shares of wrong answers over places, heads and length. An image has only one place in the smallest frame, so
nothing is drawn there. What two shares differ by within a margin is chance.
"""

from collections.abc import Mapping

import numpy as np

from ...analysis import ErrorTable, count_of_heads
from ...analysis.claim import Claim, Verdict, verdict_of

ONCE, EACH_TIME = "once", "each time"


def fitted_more_claim(training: ErrorTable, margin: float) -> Claim:
    """Places drawn once are learned with the images."""
    statement = (
        "With a place drawn once, the most heads get more of the training set right than with a new one each time."
    )
    return _judged(statement, gains(training), margin, sign=1)


def answered_less_claim(validation: ErrorTable, margin: float) -> Claim:
    """New places are augmentation."""
    statement = (
        "With a place drawn once, the most heads get less of the validation set right than with a new one each time."
    )
    return _judged(statement, gains(validation), margin, sign=-1)


def frame_claim(validation: ErrorTable, margin: float) -> Claim:
    """What a larger frame does to validation tells which of the two was published."""
    statement = (
        "At the most heads a larger frame lowers validation accuracy, as in Table 9, where a place is drawn once, and "
        "raises it where one is drawn each time."
    )
    table = validation.ordered("places", "heads", "length")
    heads, smallest = table.values("heads")[-1], table.values("length")[0]
    base = table.at(places=EACH_TIME, heads=heads, length=smallest)
    costs = {
        (length, places): table.at(places=places, heads=heads, length=length) - base
        for length in table.values("length")[1:]
        for places in table.values("places")
    }
    known = {
        length for length, _ in costs if all(np.isfinite(costs.get((length, way), np.nan)) for way in (ONCE, EACH_TIME))
    }
    if not known:
        return Claim(
            statement, Verdict.UNDECIDED, "it takes the smallest frame and a larger one with places of both kinds"
        )
    signs = {ONCE: 1, EACH_TIME: -1}
    signed = [signs[places] * cost for (length, places), cost in costs.items() if length in known]
    evidence = f"{count_of_heads(heads)}, points over T = {smallest}: " + "; ".join(
        f"T = {length} once {-100 * costs[length, ONCE]:+.1f}, each time {-100 * costs[length, EACH_TIME]:+.1f}"
        for length in sorted(known)
    )
    return Claim(statement, verdict_of([x > margin for x in signed], [x < -margin for x in signed]), evidence)


def gains(table: ErrorTable) -> dict[tuple[int, int], float]:
    """By heads and length, how much more is right with a place drawn once, where both kinds are there."""
    table = table.ordered("places", "heads", "length")
    apart = {
        (heads, length): table.at(places=EACH_TIME, heads=heads, length=length)
        - table.at(places=ONCE, heads=heads, length=length)
        for heads in table.values("heads")
        for length in table.values("length")
    }
    return {place: gain for place, gain in apart.items() if np.isfinite(gain)}


def _judged(statement: str, gained: Mapping[tuple[int, int], float], margin: float, *, sign: int) -> Claim:
    if not gained:
        return Claim(statement, Verdict.UNDECIDED, "no model was trained with places of both kinds")
    most = max(heads for heads, _ in gained)
    signed = [sign * gain for (heads, _), gain in gained.items() if heads == most]
    evidence = "points more: " + "; ".join(
        f"{count_of_heads(heads)} at T = {length} {100 * gain:+.1f}" for (heads, length), gain in gained.items()
    )
    chance = f"; by chance up to {100 * margin:.1f}"
    return Claim(statement, verdict_of([x > margin for x in signed], [x < -margin for x in signed]), evidence + chance)
