"""The stored facts of an inspection: losses as increases over the original, resampled, and what is still missing."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..._draws import named_generator
from ...answer.answer_base import Interval
from ...answer.bootstrap import RESAMPLES, TAIL, interval_of
from ...errors import StoreError

TOLERANCE = 0.01
"""Loss increase that is allowed, as a share of the loss's scale."""
LAST_FACT = "cost"
"""Attached when an inspection has ended: without it more is to come."""
ASKED = "asked"
"""What the last run was asked for, which decides no fact: tolerance, effort, and the names of all facts it measures."""
ABOUT_THE_RUN = (ASKED, "spent", LAST_FACT)
"""Attachments that are not measured of the model."""
LAYER_FACTS = ("importance", "curve", "rank", "redundancy")
NO_LOSS = 1e12
"""A loss that is no number counts as this: never within a tolerance."""
_Z = 1.6448536269514722
"""The normal quantile at 1 - `TAIL`."""


@dataclass(frozen=True, eq=False)
class IncreaseCurve:
    """Mean held-out loss increase at every place that was tried, fewest first, and its bounds over resamples.

    `drawn` has the mean of every resample. The last place is the original, whose increase is 0.
    """

    at: tuple[int, ...]
    mean: Float[np.ndarray, " places"]
    drawn: Float[np.ndarray, "resamples places"]

    @cached_property
    def bounds(self) -> Float[np.ndarray, "2 places"]:
        """What 90 % of resamples lie in."""
        return np.quantile(self.drawn, [TAIL, 1 - TAIL], axis=0)

    def needed(self, budget: float) -> Interval:
        """The fewest that are enough: there, and with more, the increase is at most `budget`."""
        index, drawn = int(_first_enough(self.mean, budget)), _first_enough(self.drawn, budget)
        low, high = interval_of(self.at, index, drawn)
        if self.at[0] == 0 and min(index, np.quantile(drawn, TAIL, method="inverted_cdf")) == 0:
            low = 0  # none at all was tried, and may do
        return Interval(self.at[index], low, high)


def _first_enough(mean: Float[np.ndarray, "*resamples places"], budget: float) -> Int[np.ndarray, "*resamples"]:
    """The first place from which on no increase is above the budget; the last place is always enough."""
    within = mean <= budget
    within[..., -1] = True
    stays = np.logical_and.accumulate(within[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.argmax(stays, axis=-1))


class Increases(NamedTuple):
    """Mean loss increases over held-out examples: of all of them, and of every resample, widened where they are few."""

    mean: Float[np.ndarray, " rows"]
    drawn: Float[np.ndarray, "resamples rows"]

    @property
    def bounds(self) -> Float[np.ndarray, "2 rows"]:
        """What 90 % of resamples lie in."""
        return np.quantile(self.drawn, [TAIL, 1 - TAIL], axis=0)


def resampled(increases: Float[np.ndarray, "rows examples"]) -> Increases:
    """The mean increase of every row, resampled with the draws that all rows of as many examples share.

    Example:
        >>> resampled(np.array([[0.0, 1.0, 2.0, 3.0]])).bounds.round(1).ravel().tolist()
        [0.3, 3.1]
    """
    mean, count = increases.mean(axis=1), increases.shape[1]
    return Increases(mean, mean + widening(count) * (_shares(count) @ increases.T - mean))


@lru_cache(1)
def _shares(count: int) -> Float[np.ndarray, "resamples examples"]:
    """How much each held-out example counts in every resample."""
    drawn = named_generator(0, "held-out examples").integers(count, size=(RESAMPLES, count))
    return np.stack([np.bincount(row, minlength=count) for row in drawn]) / count


def widening(count: int) -> float:
    """By what the spread of resamples of `count` examples is multiplied, so that intervals are those of Student's t.

    Resamples of few examples spread too little: 8 with normal losses give 83 % coverage instead of 90 %, with this
    factor 90 %. The quantile of t is its expansion in 1 / degrees of freedom.

    Example:
        >>> round(widening(8), 2), round(widening(1000), 2)
        (1.23, 1.0)
    """
    if count < 2:
        return 1.0
    z, freedom = _Z, count - 1
    quantile = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    quantile += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return math.sqrt(count / freedom) * quantile / z


class Facts:
    """The attachments of an inspection, and losses compared with those of the original."""

    def __init__(self, attachments: Mapping[str, Any], tolerance: float | None = None):
        self.attachments = attachments
        asked: Mapping[str, Any] = attachments.get(ASKED) or {}
        self.tolerance = tolerance = float(asked.get("tolerance", TOLERANCE)) if tolerance is None else tolerance
        self.effort = str(asked.get("effort") or "")
        self.model: Mapping[str, Any] = attachments.get("model") or {}
        self.data: Mapping[str, Any] = attachments.get("data") or {}
        self.base = np.asarray((attachments.get("base") or {}).get("losses", ()), float)
        scale = float(self.data.get("scale") or 0.0)
        self.scale = scale if np.isfinite(scale) else 0.0
        self.budget = max(0.0, tolerance) * self.scale

    def of(self, fact: str) -> Mapping[str, Any]:
        """An attachment; empty where it is missing."""
        return self.attachments.get(fact) or {}

    def layers(self) -> tuple[int, ...]:
        """Every layer of the model: as many as it says, or those with a fact."""
        count = int(self.model.get("layers") or 0)
        named = {int(name.split("/")[1]) for name in self.attachments if name.split("/")[0] in LAYER_FACTS}
        return tuple(range(max([count, *(index + 1 for index in named)])))

    def heads_of(self, layer: int) -> int:
        """Heads of a layer."""
        importance, curve = self.of(f"importance/{layer}"), self.of(f"curve/{layer}")
        if importance.get("magnitude"):
            return len(importance["magnitude"])
        if curve.get("kept"):
            return max(curve["kept"])
        return self.number("heads", layer)

    def number(self, name: str, layer: int) -> int:
        """A number of the model's, which may differ between layers; 0 where it is not known."""
        value = self.model.get(name) or 0
        return int(value[layer] if isinstance(value, list) else value)

    def descent(self) -> Mapping[str, Any]:
        """The descent as far as it went."""
        stretches = [name for name in self.attachments if name.startswith("descent/")]
        furthest = max(stretches, key=lambda name: int(name.split("/")[1]), default="")
        return self.of("descent") or self.of(furthest)

    def peers(self) -> dict[str, Mapping[str, Any]]:
        """The orders of other criteria, by name, as far as they are measured."""
        parts = [self.of("peers")]
        parts += [value for name, value in self.attachments.items() if name.startswith("peer/")]
        return {name: peer for part in parts for name, peer in part.items()}

    def configurations(self) -> list[Mapping[str, Any]]:
        """The configurations that are measured, the original first where it is one of them."""
        parts = [value for name, value in self.attachments.items() if name.startswith("configuration/")]
        parts.sort(key=lambda each: each.get("parameters") or 0, reverse=True)
        return list(self.attachments.get("configurations") or parts)

    def increases(self, losses: Any, fact: str) -> Increases:
        """The loss increases of rows of held-out losses. Raises StoreError where they are of other examples."""
        rows = np.atleast_2d(np.asarray(losses, float))
        if rows.shape[-1] != len(self.base):
            raise StoreError(
                f"{fact} has losses of {rows.shape[-1]} held-out examples, the original of {len(self.base)}; "
                "run `headcount inspect` into a new folder."
            )
        return resampled(np.where(np.isfinite(rows), np.minimum(rows, NO_LOSS), NO_LOSS) - np.nan_to_num(self.base))

    def curve(self, content: Mapping[str, Any], at: str, full: int, fact: str) -> IncreaseCurve | None:
        """The loss increase against what `content[at]` names, with the original at `full`; None where it is missing."""
        if not content.get(at) or not len(self.base):
            return None
        mean, drawn = self.increases(content["losses"], fact)
        places = [int(place) for place in content[at]]
        rows = {place: row for row, place in enumerate(places) if place < full}
        order = [rows[place] for place in sorted(rows)]
        nothing = np.zeros((len(drawn), 1))
        return IncreaseCurve(
            (*sorted(rows), full), np.append(mean[order], 0.0), np.concatenate([drawn[:, order], nothing], axis=1)
        )


def is_complete(facts: Iterable[str]) -> bool:
    """Whether an inspection with facts of these names has ended."""
    return LAST_FACT in set(facts)


def measured_facts(names: Iterable[str]) -> int:
    """How many of these attachments are facts of the model."""
    return sum(name not in ABOUT_THE_RUN for name in names)


def measured_words(attachments: Mapping[str, Any]) -> str:
    """How many facts are measured, and of how many where the inspection says what it was asked for."""
    measured, asked = measured_facts(attachments), attachments.get(ASKED)
    facts = asked.get("facts") if isinstance(asked, dict) else None
    wanted = f" of {len(facts)}" if isinstance(facts, list) and facts else ""
    return f"{measured}{wanted} facts measured"


def missing_facts(attachments: Mapping[str, Any]) -> tuple[str, ...]:
    """What an inspection that has not ended still lacks, in words; empty where it has.

    Ranks are missing only where the effort measures them; a folder that does not say what it was asked for counts as
    one whose effort does, until a later fact is there.
    """
    if is_complete(attachments):
        return ()
    layers = int((attachments.get("model") or {}).get("layers") or 0)
    names = {
        "importance": "importance of heads",
        "curve": "heads needed",
        "rank": "rank needed",
        "redundancy": "redundancy",
    }
    missing = [name for name in ("model", "data", "base") if name not in attachments]
    wanted = (attachments.get(ASKED) or {}).get("facts") or ()
    kinds = {name.split("/")[0] for name in wanted or attachments}
    if "rank" not in kinds and (wanted or "redundancy" in kinds):  # redundancy is measured after it
        del names["rank"]
    for fact, words in names.items():
        lacking = sum(f"{fact}/{layer}" not in attachments for layer in range(layers))
        if lacking:
            missing.append(f"{words} ({lacking} of {layers} layers)")
    whole = {"descent": "heads removed from the whole model", "configurations": "configurations"}
    return (*missing, *(words for fact, words in whole.items() if fact not in attachments))
