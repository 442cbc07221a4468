"""Judges of the length of training: does some number of epochs give the published accuracies?

Tables are over epochs, heads and length. Between two numbers of epochs that were tried, a share is interpolated over
the logarithm of the epochs, so that a claim is not refused for the gaps between them.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, verdict_of
from .labels import NEAR, no_gain_claim

BETWEEN = 40
"""Numbers of epochs looked at between two that were tried."""


@dataclass(frozen=True)
class Apart:
    """Ours less the published accuracy, at every number of epochs, of the cells that all of them have."""

    epochs: tuple[int, ...]
    points: Float[np.ndarray, "epochs cells"]

    @property
    def worst(self) -> dict[int, float]:
        """The largest distance of a cell, by number of epochs."""
        return dict(zip(self.epochs, np.abs(self.points).max(axis=1).tolist(), strict=True))

    @property
    def mean(self) -> dict[int, float]:
        """The mean distance over cells, by number of epochs."""
        return dict(zip(self.epochs, np.abs(self.points).mean(axis=1).tolist(), strict=True))

    @property
    def nearest(self) -> int:
        """The number of epochs tried at which the largest distance is smallest."""
        return min(self.worst, key=self.worst.__getitem__)

    def between(self) -> tuple[float, float, bool]:
        """The number of epochs, tried or between, of the smallest largest distance; that distance; is it at an end?"""
        tried = np.log(self.epochs)
        between = [np.linspace(low, high, BETWEEN) for low, high in itertools.pairwise(tried)]
        places = np.unique(np.concatenate([tried, *between]))
        cells = [np.interp(places, tried, column) for column in self.points.T]
        worst = np.abs(cells).max(axis=0)
        best = int(np.argmin(worst))
        return float(np.exp(places[best])), float(worst[best]), best in (0, len(places) - 1)


def apart(table: ErrorTable, published: ErrorTable, *, rise: bool = False) -> Apart | None:
    """How far a table is from the published one; `rise`: each share is compared with that of the fewest heads first.

    None where no cell that was published is there at every number of epochs.
    """
    ours = table.ordered("epochs", "heads", "length")
    points = published.aligned(ours) - ours.errors
    points = points[:, 1:] - points[:, :1] if rise else points
    cells = points.reshape(len(points), -1)
    cells = cells[:, np.isfinite(cells).all(axis=0)]
    return Apart(tuple(ours.values("epochs")), cells) if cells.size else None


def together(parts: Sequence[Apart | None]) -> Apart | None:
    """Several tables as one; None where one of them has no cells."""
    known = [each for each in parts if each is not None]
    if not known or len(known) < len(parts):
        return None
    return Apart(known[0].epochs, np.concatenate([each.points for each in known], axis=1))


def met_claim(what: str, distance: Apart | None, *, whole: bool) -> Claim:
    """One number of epochs brings every cell within five points; judged only where the whole recipe was followed.

    It differs where no number between those tried does either, unless the nearest is the fewest or the most tried.
    """
    statement = f"Some number of epochs brings {what} within {100 * NEAR:.0f} points of the published one."
    if distance is None or len(distance.epochs) < 2:
        return Claim(statement, Verdict.UNDECIDED, "no published cell was measured at two numbers of epochs")
    nearest, (place, least, at_end) = distance.nearest, distance.between()
    row = distance.points[distance.epochs.index(nearest)]
    evidence = (
        f"nearest {nearest} epochs: {int(np.sum(np.abs(row) <= NEAR))} of {len(row)} cells, ours less published from "
        f"{100 * row.min():+.1f} to {100 * row.max():+.1f} points; largest distance by epochs: "
        + "; ".join(f"{epochs} {100 * worst:.1f}" for epochs, worst in distance.worst.items())
    )
    if distance.worst[nearest] > NEAR:
        evidence += f"; interpolated it is least at {place:.1f} epochs, {100 * least:.1f}"
    verdict = verdict_of([distance.worst[nearest] <= NEAR], [least > NEAR and not at_end])
    return Claim(statement, verdict if whole else Verdict.UNDECIDED, evidence)


def no_gain_somewhere_claim(validation: ErrorTable, margins: Mapping[int, float], *, whole: bool) -> Claim:
    """At one of the numbers of epochs more heads do not help validation."""
    statement = "At some number of epochs the most heads answer no more validation queries than the fewest, at any T."
    judged = {epochs: no_gain_claim(validation.select(epochs=epochs), margin) for epochs, margin in margins.items()}
    evidence = "; ".join(f"{epochs} epochs {claim.verdict.value}: {claim.evidence}" for epochs, claim in judged.items())
    verdicts = [claim.verdict for claim in judged.values()]
    verdict = verdict_of([Verdict.HOLDS in verdicts], [set(verdicts) == {Verdict.DIFFERS}])
    return Claim(statement, verdict if whole else Verdict.UNDECIDED, evidence)


def epochs_needed(table: ErrorTable, published: ErrorTable) -> dict[tuple[int, int], str]:
    """The epochs at which a share is first the published one, interpolated, by heads and length; "> 30" beyond."""
    ours = table.ordered("epochs", "heads", "length")
    epochs, printed = ours.values("epochs"), published.aligned(ours)
    needed = {}
    for i, heads in enumerate(ours.values("heads")):
        for j, length in enumerate(ours.values("length")):
            above = ours.errors[:, i, j] - printed[i, j]
            if np.isfinite(above).all():
                needed[heads, length] = _first_reached(epochs, above)
    return needed


def _first_reached(epochs: Sequence[int], above: Float[np.ndarray, " epochs"]) -> str:
    """Where what is above zero first is not, over the logarithm of the epochs."""
    reached = np.flatnonzero(above <= 0)
    if not len(reached):
        return f"> {epochs[-1]}"
    last = int(reached[0])
    if last == 0:
        return f"{epochs[0]}" if above[0] == 0 else f"< {epochs[0]}"
    share = above[last - 1] / (above[last - 1] - above[last])
    return f"{float(epochs[last - 1]) * (epochs[last] / epochs[last - 1]) ** share:.1f}"
