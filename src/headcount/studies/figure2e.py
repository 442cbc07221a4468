"""Figure 2e: the weighted reversal score of Table 2's errors."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..analysis import answer_from_table, error_table
from ..analysis.comparison import Claim, Verdict, count_of_heads, decided, measured_like
from ..analysis.signals import REVERSED, reversal_scores
from ..engine import Sweep
from ..report.chart import Series
from ..report.charts import reversal_chart
from ..report.section import Section
from ..store import Record
from . import table2
from .base import AbstractStudy, Scale

TRANSITION = table2.STUDY.transition


@dataclass(frozen=True, kw_only=True)
class ReversalStudy(AbstractStudy):
    """Table 2's sweep, read by R(h): how often, and how much, the error falls with length instead of rising."""

    def sweep(self, scale: Scale) -> Sweep:
        return table2.STUDY.sweep(scale)

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(records)
        published = table2.STUDY.published
        theirs, means, least = (
            reversal_scores(errors) for errors in (published.beside(table), measured_like(table, published), table.best)
        )
        chart = reversal_chart(
            table.heads,
            (
                Series("best of seeds", table.heads, tuple(least), place=0),
                Series("mean over seeds", table.heads, tuple(means), place=1),
                Series("from the published means", table.heads, tuple(theirs), place=2, kind="published"),
            ),
        )
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(table.heads, least),
            claims=_claims(table.heads, least, means, theirs),
            answer=answer_from_table(table),
            charts=(chart,),
            notes=(
                "The paper draws this figure and prints no numbers; the published score is computed from Table 2.",
                "All seeds share one set of examples a length, and from D heads on which length has the smaller error "
                "is mostly that set's draw; a positive score there says no more than that the error stopped growing.",
                *self.choices(scale),
            ),
        )


def _headline(heads: tuple[int, ...], scores: np.ndarray) -> str:
    positive = [count for count, score in zip(heads, scores, strict=True) if score > REVERSED]
    if not np.isfinite(scores).any():
        return "One length has no reversals"
    if not positive:
        return "Errors reverse with length at no head count"
    return f"Errors reverse with length at {' and '.join(map(str, positive))} heads"


def _claims(heads: tuple[int, ...], ours: np.ndarray, means: np.ndarray, theirs: np.ndarray) -> tuple[Claim, ...]:
    def judge(statement: str, chosen: list[int], fine: np.ndarray) -> Claim:
        chosen = [i for i in chosen if np.isfinite(ours[i])]
        if not chosen:
            return Claim(statement, Verdict.UNDECIDED, "it takes two lengths at these heads")
        evidence = "R(h) of the best of seeds (of the published means): " + "; ".join(
            f"{count_of_heads(heads[i])} {ours[i]:.2f}, of our means {means[i]:.2f} ({theirs[i]:.2f})" for i in chosen
        )
        return Claim(statement, decided(bool(np.all(fine[chosen]))), evidence)

    places = range(len(heads))
    return (
        judge("Below D heads the score is near zero.", [i for i in places if heads[i] < TRANSITION], ours <= REVERSED),
        judge("From D heads on it is positive.", [i for i in places if heads[i] >= TRANSITION], ours > REVERSED),
    )


STUDY = ReversalStudy(
    name="figure2e",
    title="Figure 2e",
    asks="Where the dependence on length turns round: the weighted reversal score of Table 2's errors.",
    efforts=table2.STUDY.efforts,
)
