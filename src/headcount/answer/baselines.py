"""What models without attention reach, to compare the errors of models with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .table import ErrorTable

CONSTANT, POOLED = "constant", "pooled"


@dataclass(frozen=True)
class Baseline:
    """A model without attention and its validation error, in the metric of the table.

    `name` is short ("linear"); `label` is for sentences ("a linear model"). `note` says what was left out, such as
    training examples.
    """

    name: str
    label: str
    error: float
    note: str = ""


def baselines_of(table: ErrorTable, stored: Iterable[Mapping[str, Any]]) -> tuple[Baseline, ...]:
    """Return the baselines of a table at its longest length: the best constant answer first, the others by error.

    Arguments: `stored` is the attachment "baselines" of an experiment; those of other lengths, and those that were
    skipped, are left out.
    """
    length = max(table.values("length"), default=None)
    others = [
        Baseline(each["name"], each["label"], float(each["error"]), each.get("note", ""))
        for each in _at_length(stored, length)
        if each.get("error") is not None and each["name"] != CONSTANT
    ]
    label = "predicting the mean" if table.metric.name == "nmse" else "always the most frequent label"
    constant = Baseline(CONSTANT, label, _constant(table, length))
    return (constant, *sorted(others, key=lambda each: each.error))


def skipped_baselines(table: ErrorTable, stored: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what was not computed, each with the reason."""
    length = max(table.values("length"), default=None)
    return tuple(f"{each['label']}: {each['note']}" for each in _at_length(stored, length) if each["error"] is None)


def validation_examples(stored: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the number of validation examples, at the length that has the fewest; None where that is not stored."""
    return min((each["validation_examples"] for each in stored if "validation_examples" in each), default=None)


def _at_length(stored: Iterable[Mapping[str, Any]], length: Any) -> list[Mapping[str, Any]]:
    """Return the entries of one length, each name once, of the first draw of the data that is there."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for each in sorted(stored, key=lambda entry: entry.get("data_seed", 0)):
        if length is None or each.get("length", length) == length:
            chosen.setdefault(each["name"], each)
    return list(chosen.values())


def _constant(table: ErrorTable, length: Any) -> float:
    """Return the error of the best constant answer on the first draw of the data."""
    for axis, value in (("length", length), ("data_seed", min(table.values("data_seed"), default=None))):
        table = table.select(**{axis: value}) if table.has(axis) else table
    there = table.baseline[np.isfinite(table.errors)]
    return float(np.median(there)) if there.size else float(np.median(table.baseline))
