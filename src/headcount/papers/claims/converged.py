"""Judges of changes to the training: which of them bring errors near to the published ones?"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, verdict_of
from .ratios import folds, log_ratios

BASE = "base"
NEAR = 3.0
"""Times the published error that still counts as reaching it."""
DATA = ("examples", "fresh")
"""First words of the changes that are to the training examples."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way of training for one published table: our errors at `heads` heads, by length and seed.

    `printed` are the published errors by length. `name` is "base", or the changes, separated by commas.
    """

    name: str
    table: str
    heads: int
    errors: ErrorTable
    printed: dict[int, float]

    @property
    def single(self) -> bool:
        return self.name != BASE and ", " not in self.name

    @property
    def joint(self) -> bool:
        return ", " in self.name

    @property
    def more_data(self) -> bool:
        return self.single and self.name.split()[0] in DATA

    @functools.cached_property
    def best(self) -> dict[int, float]:
        """The best of seeds by length, where one has finished."""
        row = self.errors.select(heads=self.heads).reduced("seed").ordered("length")
        pairs = zip(row.values("length"), row.errors, strict=True)
        return {length: float(error) for length, error in pairs if np.isfinite(error)}

    @property
    def ratios(self) -> dict[int, float]:
        """Our error over the published one by length."""
        return {length: error / self.printed[length] for length, error in self.best.items()}

    @property
    def times(self) -> float:
        """The geometric mean of the ratios; 0 where an error is, NaN where nothing has finished."""
        values = np.array(list(self.ratios.values()))
        with np.errstate(divide="ignore"):
            return float(np.exp(np.mean(np.log(values)))) if len(values) else np.nan

    def words(self) -> str:
        parts = (f"T = {length} {ratio:.3g}" for length, ratio in self.ratios.items())
        return f"{self.name} ({'-fold, '.join(parts)}-fold)"


def reached_claim(variants: Sequence[Variant], table: str, title: str, *, joint: bool) -> Claim:
    """One of the changes, single or joint, brings every error of a table within threefold of the published one."""
    which = "Changes together bring" if joint else "One change alone brings"
    statement = f"{which} every error of {title} within a factor {NEAR:g} of the published one."
    tried = [each for each in variants if each.table == table and (each.joint if joint else each.single) and each.best]
    if not tried:
        return Claim(statement, Verdict.UNDECIDED, "no such change was trained")
    lengths = {length for each in variants if each.table == table for length in each.best}
    whole = [each for each in tried if each.best.keys() == lengths]
    reached = [each for each in whole if max(each.ratios.values()) <= NEAR]
    nearest = sorted(reached or whole or tried, key=lambda each: each.times)
    base = [each for each in variants if each.table == table and each.name == BASE and each.best]
    evidence = f"{len(reached)} of {len(tried)} do; nearest of them: {'; '.join(each.words() for each in nearest[:2])}"
    evidence += f"; without a change: {base[0].words()}" if base else ""
    return Claim(statement, verdict_of([bool(reached)], [not reached and len(whole) == len(tried)]), evidence)


def data_claim(variants: Sequence[Variant], titles: dict[str, str]) -> Claim:
    """More training examples lower the error more than any other single change."""
    statement = "More training examples lower the error more than any other single change."
    holds, differs, parts = [], [], []
    for table, title in titles.items():
        singles = [each for each in variants if each.table == table and each.single and each.best]
        data = sorted((each for each in singles if each.more_data), key=lambda each: each.times)
        others = sorted((each for each in singles if not each.more_data), key=lambda each: each.times)
        ratios = {
            each.name: log_ratios(each.errors, each.heads, data[0].errors, data[0].heads)
            for each in (others if data else [])
        }
        known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
        holds.append(bool(known) and len(known) == len(others) and all(low > 0 for low, _, _ in known.values()))
        differs += [high < 0 for _, _, high in known.values()]
        if known:
            closest = min(known, key=lambda name: known[name][1])
            parts.append(f"{title}: {closest} errs {folds(known[closest])} of {data[0].name}")
    evidence = "; ".join(parts)
    if not evidence:
        return Claim(statement, Verdict.UNDECIDED, "not measured with enough seeds")
    return Claim(statement, verdict_of(holds, differs), f"next to it, best of seeds [90 % of resamples]: {evidence}")
