"""Judges of what it does to draw an image's place in the frame once instead of each time it is shown.

Tables are shares of wrong answers over places, heads and length. An image has only one place in the smallest frame, so
nothing is drawn there. What two shares differ by within a margin is chance.
"""

from collections.abc import Mapping

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, verdict_of

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
    """What a larger frame does to validation is as published."""
    statement = "With a place drawn once, a larger frame lowers validation accuracy at the most heads, as in Table 9."
    table = validation.ordered("places", "heads", "length")
    heads, smallest = table.values("heads")[-1], table.values("length")[0]

    def wrong(places: str, length: int) -> float:
        return table.at(places=places, heads=heads, length=length)

    # In the frame with one place nothing is drawn, so that no model is said to have it drawn once.
    one_place = np.isnan([table.at(places=ONCE, heads=count, length=smallest) for count in table.values("heads")]).all()
    larger = [length for length in table.values("length")[1:] if np.isfinite(wrong(ONCE, length))]
    if not (one_place and larger and np.isfinite(wrong(EACH_TIME, smallest))):
        return Claim(
            statement, Verdict.UNDECIDED, "it takes the smallest frame, and larger ones with places drawn once"
        )
    costs = [wrong(ONCE, length) - wrong(EACH_TIME, smallest) for length in larger]
    evidence = f"{count_of_heads(heads)}, points more than at T = {smallest}: " + "; ".join(
        f"T = {length} once {-100 * cost:+.1f}" + _each_time(wrong(EACH_TIME, smallest) - wrong(EACH_TIME, length))
        for length, cost in zip(larger, costs, strict=True)
    )
    verdict = verdict_of([cost > margin for cost in costs], [cost < -margin for cost in costs])
    return Claim(statement, verdict, evidence + _chance(margin))


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
    evidence = f"points more with a place drawn once, {count_of_heads(most)}: " + "; ".join(
        f"T = {length} {100 * gain:+.1f}" for (heads, length), gain in gained.items() if heads == most
    )
    verdict = verdict_of([x > margin for x in signed], [x < -margin for x in signed])
    return Claim(statement, verdict, evidence + _chance(margin))


def _each_time(gain: float) -> str:
    return f", each time {100 * gain:+.1f}" if np.isfinite(gain) else ""


def _chance(margin: float) -> str:
    return f"; by chance up to {100 * margin:.1f}"
