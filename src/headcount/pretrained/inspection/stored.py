"""The stored facts of an inspection, by name. No torch."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import StoreError
from .increases import Increases, resampled

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

    def parts(self, kind: str) -> dict[str, Any]:
        """The facts called "kind/..", by what follows."""
        return {name.split("/", 1)[1]: each for name, each in self.stored.items() if name.startswith(f"{kind}/")}

    def layers(self) -> range:
        """Every layer of the model."""
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
