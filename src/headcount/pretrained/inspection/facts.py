"""The stored facts of an inspection by name, and loss increases with their intervals. No torch.

There is one rule of intervals, for pages, model cards and JSON: an interval holds 90 % of resamples of the held-out
examples, widened where they are few.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..._draws import named_generator
from ...answer.answer_base import Interval
from ...answer.bootstrap import RESAMPLES, TAIL, interval_of
from ...errors import StoreError

TOLERANCE = 0.01
"""Default loss increase that is allowed, as a share of the loss's scale."""
ASKED = "asked"
"""The last run's request: tolerance, effort, and the names of all facts it measures."""
SPENT = "spent"
"""The cost of the facts so far: seconds by fact, the most memory, tokens read."""
LAST_FACT = "cost"
"""The same, stored when an inspection has ended."""
ABOUT_THE_RUN = (ASKED, SPENT, LAST_FACT)
NO_LOSS = 1e12
"""A loss that is no number counts as this: never within a tolerance."""
_Z = 1.6448536269514722
"""The normal quantile at 1 - `TAIL`."""


@dataclass(frozen=True, eq=False)
class Increases:
    """Mean held-out loss increases, of all examples and of every resample.

    A curve has the places that were tried in `at`, fewest first; the last is the original, whose increase is 0.
    """

    mean: Float[np.ndarray, " places"]
    drawn: Float[np.ndarray, "resamples places"]
    at: tuple[int, ...] = ()

    @cached_property
    def bounds(self) -> Float[np.ndarray, "2 places"]:
        """The ends of the intervals."""
        return np.quantile(self.drawn, [TAIL, 1 - TAIL], axis=0)

    def needed(self, budget: float) -> Interval:
        """The fewest that are enough: there, and with more, the increase is at most `budget`."""
        index, drawn = int(_first_enough(self.mean, budget)), _first_enough(self.drawn, budget)
        low, high = interval_of(self.at, index, drawn)
        if self.at[0] == 0 and min(index, np.quantile(drawn, TAIL, method="inverted_cdf")) == 0:
            low = 0  # none at all was tried, and may do
        return Interval(self.at[index], low, high)

    def without_original(self) -> "Increases":
        return Increases(self.mean[:-1], self.drawn[:, :-1], self.at[:-1])

    def as_dict(self) -> dict[str, list[float]]:
        low, high = self.bounds
        return {"at": list(self.at), "mean": self.mean.tolist(), "low": low.tolist(), "high": high.tolist()}


def as_json(value: Any) -> Any:
    """A reading as JSON: dataclasses by their fields or `as_dict`; None for a number that is not finite."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if is_dataclass(value):
        return as_json(vars(value))
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _first_enough(mean: Float[np.ndarray, "*resamples places"], budget: float) -> Int[np.ndarray, "*resamples"]:
    """The first place from which on no increase is above the budget; the last place is always enough."""
    within = mean <= budget
    within[..., -1] = True
    stays = np.logical_and.accumulate(within[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.argmax(stays, axis=-1))


def resampled(increases: Float[np.ndarray, "rows examples"]) -> Increases:
    """The mean increase of every row; all rows of the same number of examples share their draws.

    Example:
        >>> resampled(np.array([[0.0, 1.0, 2.0, 3.0]])).bounds.round(1).ravel().tolist()
        [0.3, 3.1]
    """
    mean, count = increases.mean(axis=1), increases.shape[1]
    return Increases(mean, mean + widening(count) * (_shares(count) @ increases.T - mean))


@lru_cache(1)
def _shares(count: int) -> Float[np.ndarray, "resamples examples"]:
    """The weight of each held-out example in every resample."""
    drawn = named_generator(0, "held-out examples").integers(count, size=(RESAMPLES, count))
    return np.stack([np.bincount(row, minlength=count) for row in drawn]) / count


def widening(count: int) -> float:
    """The factor on the spread of resamples of `count` examples that makes intervals those of Student's t.

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
    """The facts of an inspection, and its losses compared with those of the original."""

    def __init__(self, stored: Mapping[str, Any], tolerance: float | None = None):
        self.stored = stored
        asked = self.fact(ASKED)
        self.tolerance = tolerance = float(asked.get("tolerance", TOLERANCE)) if tolerance is None else tolerance
        self.effort = str(asked.get("effort") or "")
        self.model, self.data = self.fact("model"), self.fact("data")
        self.base = np.asarray(self.fact("base").get("losses", ()), float)
        scale = float(self.data.get("scale") or 0.0)
        self.scale = scale if np.isfinite(scale) else 0.0
        self.budget = max(0.0, tolerance) * self.scale

    def fact(self, name: str) -> Mapping[str, Any]:
        """A fact; empty where it is missing."""
        return self.stored.get(name) or {}

    def by_part(self, kind: str) -> dict[str, Any]:
        """The facts called "kind/..", by what follows."""
        return {name.split("/", 1)[1]: each for name, each in self.stored.items() if name.startswith(f"{kind}/")}

    def layers(self) -> range:
        return range(int(self.model.get("layers") or 0))

    def number(self, name: str, layer: int) -> int:
        """A number of the model's, which may differ between layers; 0 where it is not known."""
        value = self.model.get(name) or 0
        return int(value[layer] if isinstance(value, list) else value)

    def increases(self, losses: Any, fact: str) -> Increases:
        """The loss increases of rows of held-out losses. Raises StoreError where they are of other examples."""
        rows = np.atleast_2d(np.asarray(losses, float))
        if rows.shape[-1] != len(self.base):
            raise StoreError(
                f"{fact} has losses of {rows.shape[-1]} held-out examples, the original of {len(self.base)}; "
                "run `headcount inspect` into a new folder."
            )
        return resampled(np.where(np.isfinite(rows), np.minimum(rows, NO_LOSS), NO_LOSS) - np.nan_to_num(self.base))

    def curve(self, content: Mapping[str, Any], at: str, full: int, fact: str) -> Increases | None:
        """The loss increase against what `content[at]` names, with the original at `full`; None where it is missing."""
        if not content.get(at) or not len(self.base):
            return None
        found = self.increases(content["losses"], fact)
        rows = {int(place): row for row, place in enumerate(content[at]) if int(place) < full}
        order = [rows[place] for place in sorted(rows)]
        return replace(
            found,
            at=(*sorted(rows), full),
            mean=np.append(found.mean[order], 0.0),
            drawn=np.pad(found.drawn[:, order], ((0, 0), (0, 1))),
        )


def is_complete(facts: Iterable[str]) -> bool:
    """Whether an inspection with facts of these names has ended."""
    return LAST_FACT in set(facts)


def measured_facts(names: Iterable[str]) -> int:
    """Count the facts that are measured of the model."""
    return sum(name not in ABOUT_THE_RUN for name in names)


def measured_words(stored: Mapping[str, Any]) -> str:
    """Say how many facts are measured, and of how many where the inspection says what it was asked for."""
    measured, asked = measured_facts(stored), stored.get(ASKED)
    facts = asked.get("facts") if isinstance(asked, dict) else None
    wanted = f" of {len(facts)}" if isinstance(facts, list) and facts else ""
    return f"{measured}{wanted} facts measured"
