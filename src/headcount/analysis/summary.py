"""Records to tables: which cells belong together, and their errors by heads, length and seed."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from .._errors import require
from ..store import Outcome, Record

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Records that differ in heads, length, seed and learning rate only. `settings` is what they share."""

    settings: dict[str, Any]
    records: tuple[Record, ...]


def experiments(records: Iterable[Record]) -> list[Experiment]:
    """Records sorted into experiments, in the order in which they come.

    Head counts are compared at one head_dim, or at one total_dim where every head count has a head_dim of its own.
    """
    groups: dict[str, tuple[dict, list[Record]]] = {}
    for group in _grouped(records, _without("heads", "head_dim")):
        one_total = len({record.cell.model.total_dim for record in group}) == 1
        settings = _without("heads", "head_dim") if one_total else _without("heads")
        for record in group:
            found = settings(record)
            groups.setdefault(json.dumps(found, sort_keys=True), (found, []))[1].append(record)
    return [Experiment(settings=settings, records=tuple(group)) for settings, group in groups.values()]


def _grouped(records: Iterable[Record], settings: Callable[[Record], dict[str, Any]]) -> list[list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(json.dumps(settings(record), sort_keys=True), []).append(record)
    return list(groups.values())


def _without(*names: str) -> Callable[[Record], dict[str, Any]]:
    """What a record shares with its experiment when `names` of the model may differ."""

    def settings(record: Record) -> dict[str, Any]:
        spec = record.cell.spec()
        model = {name: value for name, value in spec["model"].items() if name not in names}
        train = {name: value for name, value in spec["train"].items() if name != "learning_rate"}
        return {"task": spec["task"], "model": model, "train": train}

    return settings


@dataclass(frozen=True, kw_only=True)
class ErrorTable:
    """`nmse[i, j, k]` is the validation error over the variance of the target with heads[i], lengths[j], seeds[k].

    With several learning rates it is a seed's best. NaN marks a cell that diverged, failed or is missing.
    """

    heads: tuple[int, ...]
    lengths: tuple[int, ...]
    seeds: tuple[int, ...]
    nmse: Float[np.ndarray, "heads lengths seeds"]

    @property
    def best(self) -> Float[np.ndarray, "heads lengths"]:
        """The least error over seeds: what the model class can do, an optimiser's bad luck aside."""
        return np.fmin.reduce(self.nmse, axis=2)

    @property
    def mean(self) -> Float[np.ndarray, "heads lengths"]:
        """The mean over the seeds that finished."""
        finished = np.isfinite(self.nmse)
        count = np.sum(finished, axis=2)
        total = np.sum(np.where(finished, self.nmse, 0.0), axis=2)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def error_table(records: Iterable[Record]) -> ErrorTable:
    """The errors of one experiment's records."""
    records = list(records)
    require(len(records) > 0, "there are no records to make a table of.")
    heads, lengths, seeds = (
        tuple(sorted(values))
        for values in (
            {record.cell.model.heads for record in records},
            {record.cell.length for record in records},
            {record.cell.seed for record in records},
        )
    )
    nmse = np.full((len(heads), len(lengths), len(seeds)), np.nan)
    for record in records:
        if record.outcome is Outcome.FINISHED:
            cell = record.cell
            place = (heads.index(cell.model.heads), lengths.index(cell.length), seeds.index(cell.seed))
            nmse[place] = np.fmin(nmse[place], record.metrics["nmse"])
    return ErrorTable(heads=heads, lengths=lengths, seeds=seeds, nmse=nmse)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One (heads, length) over its seeds; `std` divides by one seed less than there are, NaN for a single one.

    `lost` counts seeds that diverged, failed or are missing.
    """

    heads: int
    length: int
    minimum: float
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    mean: float
    std: float
    seeds: int
    lost: int


def summaries(table: ErrorTable) -> list[Summary]:
    """Statistics over seeds for every (heads, length), by heads and then length."""
    rows = []
    for i, heads in enumerate(table.heads):
        for j, length in enumerate(table.lengths):
            values = table.nmse[i, j]
            kept = values[np.isfinite(values)]
            quantiles = np.quantile(kept, QUANTILES) if len(kept) else [np.nan] * len(QUANTILES)
            names = ("minimum", "lower_quartile", "median", "upper_quartile", "maximum")
            rows.append(
                Summary(
                    heads=heads,
                    length=length,
                    **{name: float(value) for name, value in zip(names, quantiles, strict=True)},
                    mean=float(kept.mean()) if len(kept) else np.nan,
                    std=float(kept.std(ddof=1)) if len(kept) > 1 else np.nan,
                    seeds=len(kept),
                    lost=len(values) - len(kept),
                )
            )
    return rows
