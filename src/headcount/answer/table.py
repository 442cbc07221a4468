"""Errors over named axes: measured ones from an experiment's records, and published ones."""

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from ..errors import InputError, require
from ..store import Experiment, Outcome, Record
from .metric import NMSE, Metric, metric_of

if TYPE_CHECKING:
    import pandas

How = Literal["best", "mean", "median", "worst"]
SEED = "seed"
BEST_OVER = "learning_rate"
"""The axis a table does not have: a seed counts with its best learning rate."""
QUANTILES = {"minimum": 0.0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "maximum": 1.0}


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorTable:
    """Errors with one dimension per axis, in the order of `axes`; NaN marks a cell that diverged, failed or is missing.

    `baseline` is the error of the best constant answer and `noise` its standard error over the validation examples (0
    where unknown); both are given in any shape that broadcasts to `errors`. A published table has a `source`, the
    `statistic` over seeds that was printed ("mean" or "minimum") and the `deviation` printed next to it.
    `diverged` is the number of models where every one of them diverged, and otherwise 0.

    Example:
        >>> import numpy as np, headcount as hc
        >>> table = hc.ErrorTable(axes={"heads": (1, 2), "seed": (0, 1)}, errors=np.array([[0.5, 0.4], [0.1, 0.2]]))
        >>> table.best.tolist(), table.at(heads=2, seed=1)
        ([0.4, 0.1], 0.2)
    """

    axes: Mapping[str, tuple[Any, ...]]
    errors: Float[np.ndarray, "..."]
    metric: Metric = NMSE
    baseline: Float[np.ndarray, "..."] = field(default=None)  # type: ignore[assignment]
    noise: Float[np.ndarray, "..."] = field(default=None)  # type: ignore[assignment]
    source: str = ""
    statistic: str = ""
    deviation: Float[np.ndarray, "..."] | None = None
    diverged: int = 0

    def __post_init__(self):
        axes = {axis: tuple(values) for axis, values in self.axes.items()}
        errors = np.asarray(self.errors, float)
        shape = tuple(len(values) for values in axes.values())
        require(errors.shape == shape, f"axes of sizes {shape} need errors of that shape, got {errors.shape}.")
        usual = 1.0 if self.metric.baseline is None else self.metric.baseline
        parts = {
            "axes": axes,
            "errors": errors,
            "baseline": np.broadcast_to(np.asarray(usual if self.baseline is None else self.baseline, float), shape),
            "noise": np.broadcast_to(np.asarray(0.0 if self.noise is None else self.noise, float), shape),
        }
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def has(self, axis: str) -> bool:
        """Whether the table has an axis of this name."""
        return axis in self.axes

    def index(self, axis: str) -> int:
        """Which dimension of `errors` an axis is. Raises InputError where there is no such axis."""
        require(axis in self.axes, f'there is no axis "{axis}"; the axes are {", ".join(self.axes)}.')
        return list(self.axes).index(axis)

    def values(self, axis: str) -> tuple[Any, ...]:
        """The values along an axis; none where there is no such axis."""
        return self.axes.get(axis, ())

    @property
    def relative(self) -> Float[np.ndarray, "..."]:
        """Errors as a share of the best constant answer's."""
        return self.errors / self.baseline

    @property
    def best(self) -> Float[np.ndarray, "..."]:
        """The best over seeds: what the model class can do, an optimiser's bad luck aside."""
        return self.reduced(SEED).errors

    @property
    def mean(self) -> Float[np.ndarray, "..."]:
        """The mean over the seeds that finished."""
        return self.reduced(SEED, "mean").errors

    def reduced(self, axis: str, how: How = "best") -> "ErrorTable":
        """The table without an axis: the best, mean, median or worst over what is there along it.

        A table that has no such axis is returned as it is.
        """
        if not self.has(axis):
            return self
        place = self.index(axis)
        others = {name: values for name, values in self.axes.items() if name != axis}
        finite = np.isfinite(self.errors)
        if how in ("best", "worst"):
            smallest = (how == "best") is self.metric.less_is_better
            # Relative errors: along an axis such as data_seed the baselines of labels differ.
            filled = np.where(finite, self.relative, np.inf if smallest else -np.inf)
            chosen = np.expand_dims((np.argmin if smallest else np.argmax)(filled, axis=place), place)

            def taken(values: np.ndarray) -> np.ndarray:
                return np.take_along_axis(values, chosen, axis=place).squeeze(place)

            parts = {"baseline": taken(self.baseline), "noise": taken(self.noise)}
            errors = np.where(finite.any(axis=place), taken(self.errors), np.nan)
            return replace(self, axes=others, errors=errors, deviation=None, **parts)
        count = np.sum(finite, axis=place)

        def mean(values: np.ndarray, otherwise: float) -> np.ndarray:
            total = np.sum(np.where(finite, values, 0.0), axis=place)
            return np.where(count > 0, total / np.maximum(count, 1), otherwise)

        ranked = np.sort(np.moveaxis(np.where(finite, self.errors, np.nan), place, -1), axis=-1)
        errors = mean(self.errors, np.nan) if how == "mean" else middle_of(ranked)
        parts = {"baseline": mean(self.baseline, 1.0), "noise": mean(self.noise, 0.0)}
        return replace(self, axes=others, errors=errors, deviation=None, **parts)

    def select(self, **kept: Any) -> "ErrorTable":
        """The part with these values: one value drops its axis, several restrict it, in the order they are given.

        Raises InputError for an axis or a value that the table does not have.
        """
        table = self
        for axis, wanted in kept.items():
            several = not isinstance(wanted, str) and isinstance(wanted, Iterable)
            values, place = table.values(axis), table.index(axis)
            places = []
            for value in wanted if several else (wanted,):
                require(value in values, f"axis {axis} has {', '.join(map(str, values))}, not {value}.")
                places.append(values.index(value))
            chosen = np.array(places, int) if several else places[0]
            axes = dict(table.axes)
            if several:
                axes[axis] = tuple(values[i] for i in places)
            else:
                del axes[axis]
            parts = {
                name: None if array is None else np.asarray(np.take(array, chosen, axis=place))
                for name, array in table._arrays().items()
            }
            table = replace(table, axes=axes, **parts)
        return table

    def ordered(self, *axes: str) -> "ErrorTable":
        """The same table with these axes first, in this order."""
        order = [*axes, *(axis for axis in self.axes if axis not in axes)]
        places = [self.index(axis) for axis in order]
        parts = {name: None if array is None else array.transpose(places) for name, array in self._arrays().items()}
        return replace(self, axes={axis: self.axes[axis] for axis in order}, **parts)

    def merged(self, axis: str, into: str) -> "ErrorTable":
        """The table without an axis: its values are joined to those of another, such as "random 0", "descended 1".

        A table that has no such axis is returned as it is.
        """
        if not self.has(axis):
            return self
        table = self.ordered(*(name for name in self.axes if name not in (axis, into)), axis, into)
        pairs = [f"{first} {second}" for first in table.values(axis) for second in table.values(into)]
        axes = {name: values for name, values in table.axes.items() if name not in (axis, into)} | {into: tuple(pairs)}
        parts = {
            name: None if array is None else array.reshape(*array.shape[:-2], len(pairs))
            for name, array in table._arrays().items()
        }
        merged = replace(table, axes=axes, **parts)
        there = [bool(np.isfinite(merged.errors[..., place]).any()) for place in range(len(pairs))]
        return merged.select(**{into: [pair for pair, kept in zip(pairs, there, strict=True) if kept] or pairs[:1]})

    def with_axes(self, *axes: str) -> "ErrorTable":
        """The same table with these axes first, an axis of the one value 1 for each that it lacks."""
        table = self
        for axis in axes:
            if not table.has(axis):
                parts = {name: None if array is None else array[..., None] for name, array in table._arrays().items()}
                table = replace(table, axes=dict(table.axes) | {axis: (1,)}, **parts)
        return table.ordered(*axes)

    def _arrays(self) -> dict[str, np.ndarray | None]:
        return {name: getattr(self, name) for name in ("errors", "baseline", "noise", "deviation")}

    def at(self, **coordinates: Any) -> float:
        """The error of one cell, given by a value per axis; NaN where there is none."""
        require(
            coordinates.keys() == self.axes.keys(),
            f"a cell has coordinates {', '.join(self.axes)}, got {', '.join(coordinates)}.",
        )
        if any(value not in self.axes[axis] for axis, value in coordinates.items()):
            return float("nan")
        return float(self.errors[tuple(self.axes[axis].index(coordinates[axis]) for axis in self.axes)])

    def deviation_at(self, **coordinates: Any) -> float:
        """The deviation printed next to one cell of a published table; NaN where there is none."""
        if self.deviation is None:
            return float("nan")
        return replace(self, errors=self.deviation, deviation=None).at(**coordinates)

    def aligned(self, other: "ErrorTable") -> Float[np.ndarray, "..."]:
        """This table's errors at the values of `other`'s axes, NaN where absent; axes that `other` lacks stay whole."""
        errors = self.errors
        for place, (axis, values) in enumerate(self.axes.items()):
            wanted = other.axes.get(axis, values)
            known = np.array([value in values for value in wanted], bool)
            errors = np.take(errors, [values.index(value) if value in values else 0 for value in wanted], axis=place)
            shape = [-1 if i == place else 1 for i in range(errors.ndim)]
            errors = np.where(known.reshape(shape), errors, np.nan)
        return errors

    def trimmed(self) -> "ErrorTable":
        """The table without values of an axis at which nothing is there."""
        finite = np.isfinite(self.errors)
        kept = {}
        for place, (axis, values) in enumerate(self.axes.items()):
            rows = np.moveaxis(finite, place, 0)
            kept[axis] = [value for value, row in zip(values, rows, strict=True) if row.any()]
        return self.select(**kept)

    def lines(self, axis: str) -> list[tuple[dict[str, Any], dict[Any, float]]]:
        """The errors along an axis, by its value: one line per combination of the other axes, where one is there."""
        last = self.ordered(*(name for name in self.axes if name != axis))
        others = [
            dict(zip(last.axes, place, strict=False)) for place in itertools.product(*list(last.axes.values())[:-1])
        ]
        rows = last.errors.reshape(len(others), len(self.values(axis)))
        lines = [
            (
                at,
                {
                    value: float(error)
                    for value, error in zip(self.values(axis), row, strict=True)
                    if np.isfinite(error)
                },
            )
            for at, row in zip(others, rows, strict=True)
        ]
        return [(at, line) for at, line in lines if line]

    def cells(self) -> list[tuple[dict[str, Any], float]]:
        """Every cell's coordinates and error, the last axis changing fastest."""
        places = itertools.product(*self.axes.values())
        return [
            (dict(zip(self.axes, place, strict=True)), float(error))
            for place, error in zip(places, self.errors.ravel(), strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Statistics over seeds: a row per cell of the other axes, the last of them changing fastest.

        A row has its coordinates, the `QUANTILES`, the `mean`, the `std` (divided by one seed less than there are, NaN
        for a single one), how many `seeds` finished, and how many were `lost`: diverged, failed or missing.
        """
        axes = {axis: values for axis, values in self.axes.items() if axis != SEED}
        errors = np.moveaxis(self.errors, self.index(SEED), -1) if self.has(SEED) else self.errors[..., None]
        rows = []
        for place, values in zip(itertools.product(*axes.values()), errors.reshape(-1, errors.shape[-1]), strict=True):
            kept = values[np.isfinite(values)]
            row: dict[str, Any] = dict(zip(axes, place, strict=True))
            quantiles = np.quantile(kept, list(QUANTILES.values())) if len(kept) else np.full(len(QUANTILES), np.nan)
            row |= dict(zip(QUANTILES, quantiles.tolist(), strict=True))
            row["mean"] = float(kept.mean()) if len(kept) else np.nan
            row["std"] = float(kept.std(ddof=1)) if len(kept) > 1 else np.nan
            rows.append(row | {"seeds": len(kept), "lost": len(values) - len(kept)})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """As JSON: the metric, the axes, and the errors as nested lists with None for NaN."""
        plain = self.errors.astype(object)
        plain[~np.isfinite(self.errors)] = None
        axes = {axis: list(values) for axis, values in self.axes.items()}
        return {"metric": self.metric.name, "label": self.metric.label, "axes": axes, "errors": plain.tolist()}

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per cell: a column per axis, and the error under its metric's name.

        Raises InputError where pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise InputError("a data frame needs pandas, which is not installed: pip install pandas") from error
        return pandas.DataFrame([place | {self.metric.name: error} for place, error in self.cells()])


def joined(tables: Mapping[str, ErrorTable], axis: str) -> ErrorTable:
    """Tables with the same axes as one, with a further last axis that has their names; NaN where one lacks a place."""
    first = next(iter(tables.values()))
    values = {name: {value for each in tables.values() for value in each.values(name)} for name in first.axes}
    axes = {name: tuple(sorted(known, key=numbers_first)) for name, known in values.items()}
    whole = ErrorTable(axes=axes, errors=np.full([len(known) for known in axes.values()], np.nan), metric=first.metric)
    errors = np.stack([each.aligned(whole) for each in tables.values()], axis=-1)
    return ErrorTable(axes=axes | {axis: tuple(tables)}, errors=errors, metric=first.metric)


def numbers_first(value: Any) -> tuple[bool, Any]:
    """Sort numbers by size, words after them."""
    return isinstance(value, str), value


def middle_of(ranked: Float[np.ndarray, "*cells seeds"]) -> Float[np.ndarray, "*cells"]:
    """The median, along the last axis, of values sorted with NaN last; NaN where all are."""
    if not np.isnan(ranked[..., -1]).any():
        size = ranked.shape[-1]
        return (ranked[..., (size - 1) // 2] + ranked[..., size // 2]) / 2
    count = np.sum(~np.isnan(ranked), axis=-1, keepdims=True)
    low, high = (np.take_along_axis(ranked, place, axis=-1) for place in (np.maximum(count - 1, 0) // 2, count // 2))
    return np.where(count > 0, (low + high) / 2, np.nan)[..., 0]


def error_table(experiment: Experiment, records: Iterable[Record], *, metric: Metric | None = None) -> ErrorTable:
    """The errors of an experiment's records over its axes, less the learning rate, of which the best counts.

    Arguments: `records` may hold those of other experiments, which are ignored; `metric` is what head counts are
    compared by where none is given. The axes have the values that some record has. Raises InputError where none of the
    records is the experiment's.
    """
    own = experiment.own(records)
    require(len(own) > 0, f"there are no records of the experiment {experiment.name}.")
    metric = metric or metric_of(own)
    placed = [experiment.places[record.cell.key] for record in own]
    kept = [(i, axis) for i, axis in enumerate(experiment.axes) if axis != BEST_OVER]
    columns = {axis: list(map(operator.itemgetter(i), placed)) for i, axis in kept}
    values = {axis: set(column) for axis, column in columns.items()}
    axes = {axis: tuple(value for value in experiment.values(axis) if value in values[axis]) for _, axis in kept}
    shape = [len(along) for along in axes.values()]
    errors, baseline, noise = (np.full(shape, np.nan).ravel() for _ in range(3))
    along = []
    for axis, column in columns.items():
        places = {value: place for place, value in enumerate(axes[axis])}
        along.append(np.fromiter(map(places.__getitem__, column), int, len(own)))
    at = np.asarray(np.ravel_multi_index(tuple(along), shape)) if along else np.zeros(len(own), int)
    measured = _metric(own, metric.name)
    done = np.array([record.finished for record in own]) & ~np.isnan(measured)
    better = np.fmin if metric.less_is_better else np.fmax
    better.at(errors, at[done], measured[done])
    if metric.baseline is None:
        baseline[at[done]], noise[at[done]] = (_metric(own, name)[done] for name in ("baseline", "baseline_noise"))
    errors, baseline, noise = (flat.reshape(shape) for flat in (errors, baseline, noise))
    usual = 1.0 if metric.baseline is None else metric.baseline
    return ErrorTable(
        axes=axes,
        errors=errors,
        metric=metric,
        baseline=np.where(np.isnan(baseline), usual, baseline),
        noise=np.where(np.isnan(noise), 0.0, noise),
        diverged=len(own) if all(record.outcome is Outcome.DIVERGED for record in own) else 0,
    )


def _metric(records: Sequence[Record], name: str) -> Float[np.ndarray, " records"]:
    """A metric of each; NaN where a record lacks it."""
    return np.array([record.metrics.get(name, np.nan) for record in records], float)
