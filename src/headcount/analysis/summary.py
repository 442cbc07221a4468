"""Records to tables: which cells belong together, and their errors by heads, length and seed."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from .._errors import require
from ..models import EncoderSpec
from ..store import Cell, Outcome, Record

NMSE = "validation error (NMSE)"
ERROR_RATE = "validation error (share of wrong answers)"
"""What errors are, as an axis would say it."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Records that differ in heads, length, seed and learning rate only, or in rank too. `settings` is what they share.

    Ranks are what a sweep over heads and rank adds: there `is_map` holds, and `bottleneck` is what to ask.
    """

    settings: dict[str, Any]
    records: tuple[Record, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank among the records."""
        return tuple(sorted({record.cell.model.rank for record in self.records}))

    @property
    def is_map(self) -> bool:
        """Whether some head count was tried at several ranks."""
        return _is_map(self.records)


def experiments(records: Iterable[Record]) -> list[Experiment]:
    """Records sorted into experiments, in the order in which they come.

    Head counts are compared at one head_dim, or at one total_dim where every head count has a head_dim of its own. A
    sweep over heads and rank is one experiment: at one head_dim, at one heads x head_dim, or, for encoders, whose
    head_dim follows rank unless given, with the two equal. A class-token model's rank follows head_dim, so two sweeps
    of it at two head_dims stay two experiments.
    """
    groups: dict[str, tuple[dict, list[Record]]] = {}

    def add(group: Iterable[Record], settings: Callable[[Record], dict[str, Any]]) -> None:
        for record in group:
            found = settings(record)
            groups.setdefault(json.dumps(found, sort_keys=True), (found, []))[1].append(record)

    for group in _grouped(records, _without("heads", "head_dim", "rank")):
        maps = _maps(group)
        for part, names in maps:
            add(part, _without(*names))
        mapped = {id(record) for part, _ in maps for record in part}
        for part, names in _lines([record for record in group if id(record) not in mapped]):
            add(part, _without(*names))
    return [Experiment(settings=settings, records=tuple(group)) for settings, group in groups.values()]


def _maps(group: list[Record]) -> list[tuple[list[Record], tuple[str, ...]]]:
    """The sweeps over heads and rank in a group that shares all else, each with what its records differ in."""
    models = [record.cell.model for record in group]
    if _is_map(group) and len({m.heads for m in models}) > 1 and len({m.heads * m.head_dim for m in models}) == 1:
        return [(group, ("heads", "head_dim", "rank"))]
    by_head_dim = [part for part in _grouped(group, _without("heads", "rank")) if _is_map(part)]
    maps: list[tuple[list[Record], tuple[str, ...]]] = [(part, ("heads", "rank")) for part in by_head_dim]
    # A model of full rank and full head_dim belongs to the sweep at that head_dim and to the one where both are equal.
    tied = [r for r in group if isinstance(r.cell.model, EncoderSpec) and r.cell.model.head_dim == r.cell.model.rank]
    mapped = {id(record) for part in by_head_dim for record in part}
    if _is_map(tied) and any(id(record) not in mapped for record in tied):
        maps.append((tied, ("heads", "head_dim", "rank")))
    return maps


def _is_map(records: Sequence[Record]) -> bool:
    """Whether some head count comes with several ranks."""
    sizes = {(record.cell.model.heads, record.cell.model.rank) for record in records}
    return len(sizes) > len({heads for heads, _ in sizes})


def _lines(group: list[Record]) -> list[tuple[list[Record], tuple[str, ...]]]:
    """The sweeps over heads alone in a group that shares all else, each with what its records differ in."""
    models = [record.cell.model for record in group]
    # An encoder's heads share a total of ranks; what they carry is as wide as the rank, or one width for all.
    if len({m.heads for m in models}) > 1 and all(isinstance(m, EncoderSpec) for m in models):
        tied = all(m.head_dim == m.rank for m in models)
        if len({m.total_dim for m in models}) == 1 and (tied or len({m.head_dim for m in models}) == 1):
            return [(group, ("heads", "rank", "head_dim") if tied else ("heads", "rank"))]
    lines: list[tuple[list[Record], tuple[str, ...]]] = []
    for part in _grouped(group, _without("heads", "head_dim")):
        one_total = len({record.cell.model.total_dim for record in part}) == 1
        lines.append((part, ("heads", "head_dim") if one_total else ("heads",)))
    return lines


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
    """`errors[i, j, k]` is the error with heads[i], lengths[j], seeds[k]; `unit` says of what, and in what.

    With several learning rates it is a seed's best. NaN marks a cell that diverged, failed or is missing.
    """

    heads: tuple[int, ...]
    lengths: tuple[int, ...]
    seeds: tuple[int, ...]
    errors: Float[np.ndarray, "heads lengths seeds"]
    unit: str = NMSE

    @property
    def best(self) -> Float[np.ndarray, "heads lengths"]:
        """The least error over seeds: what the model class can do, an optimiser's bad luck aside."""
        return np.fmin.reduce(self.errors, axis=2)

    @property
    def mean(self) -> Float[np.ndarray, "heads lengths"]:
        """The mean over the seeds that finished."""
        finished = np.isfinite(self.errors)
        count = np.sum(finished, axis=2)
        total = np.sum(np.where(finished, self.errors, 0.0), axis=2)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def error_table(records: Iterable[Record], *, metric: str | None = None, unit: str | None = None) -> ErrorTable:
    """The errors of one experiment's records: what head counts are compared by, or another metric, less being better.

    `unit` names that metric.
    """
    records = list(records)
    (heads, lengths, seeds), errors = errors_by(
        records, lambda cell: cell.model.heads, lambda cell: cell.length, lambda cell: cell.seed, metric=metric
    )
    return ErrorTable(heads=heads, lengths=lengths, seeds=seeds, errors=errors, unit=unit or unit_of(records))


def unit_of(records: Iterable[Record]) -> str:
    """What an error of these records is, in words."""
    return ERROR_RATE if any("error" in record.metrics for record in records) else NMSE


def errors_by(
    records: Iterable[Record], *axes: Callable[[Cell], int], metric: str | None = None
) -> tuple[list[tuple[int, ...]], Float[np.ndarray, "..."]]:
    """The values each axis takes, in order, and the least error at each place; NaN where nothing finished."""
    records = list(records)
    require(len(records) > 0, "there are no records to make a table of.")
    values = [tuple(sorted({axis(record.cell) for record in records})) for axis in axes]
    errors = np.full([len(taken) for taken in values], np.nan)
    for record in records:
        if record.outcome is Outcome.FINISHED:
            place = tuple(taken.index(axis(record.cell)) for taken, axis in zip(values, axes, strict=True))
            errors[place] = np.fmin(errors[place], record.error if metric is None else record.metrics[metric])
    return values, errors


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
            values = table.errors[i, j]
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
