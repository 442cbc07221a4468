"""What a chart shows; `render/figure.py` draws it."""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from ..answer.words import decimal
from ..store import Value

# Okabe and Ito's palette, distinct for every common kind of colour vision. Markers differ too, for print in grey.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#1b1f24")
MARKERS = ("circle", "square", "triangle", "diamond", "wedge", "plus", "cross")

Kind = Literal["measured", "descended", "published", "fit"]
MIN_DRAWN, MAX_DRAWN = 1e-30, 1e30
"""Values beyond these are not drawn: no axis shows them next to others."""

SCALE = (1e-5, 1.0)
"""The ends of the colours of every heat map of errors: shares of the best constant answer's."""
SCALE_LABEL = "share of a constant answer's error"


@dataclass(frozen=True)
class Series:
    """One line.

    `place` picks colour and marker, so a measured line and its published counterpart look related. `kind` picks the
    stroke: measured lines are solid with filled markers, descended ones dotted and published ones dashed, both with
    hollow markers, fits thin without markers. `low` and `high` bound a band; where there are `points`, one per seed,
    those are drawn in its place. `thin` lines have no markers and no tooltips: one of many seeds. NaN is a gap.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    place: int = 0
    kind: Kind = "measured"
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    points: tuple[tuple[float, float], ...] = ()
    thin: bool = False

    @property
    def colour(self) -> str:
        return COLOURS[self.place % len(COLOURS)]

    @property
    def marker(self) -> str:
        # Shifted each time the colours begin again, so that no two of 49 lines share both.
        return MARKERS[(self.place + self.place // len(COLOURS)) % len(MARKERS)]


@dataclass(frozen=True)
class Span:
    """A marked value on the x axis and its interval."""

    name: str
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Level:
    """A value that lines are compared with, drawn as a thin horizontal line; `words` are its tooltip.

    `value` is written after the name; neighbours of one value share a text. The axis is stretched to reach an `anchor`;
    another level outside it is a text at its edge.
    """

    name: str
    words: str
    at: float
    value: str = ""
    anchor: bool = True


@dataclass(frozen=True)
class Drop:
    """A fall of the error from `high` to `low` at a value on the x axis, and the words written next to it."""

    words: str
    at: float
    high: float
    low: float


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Lines over labelled axes. `name` is the file's name; `caption` says what lines, points and bands are.

    `spread` names what a band is over, in a marker's tooltip.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[float, ...]
    series: tuple[Series, ...]
    caption: str
    log_x: bool = False
    log_y: bool = True
    span: Span | None = None
    levels: tuple[Level, ...] = ()
    drop: Drop | None = None
    spread: str = "seeds"

    def limits(self) -> tuple[float, float]:
        """Return the smallest and largest y drawn, bands, points and anchors included; 0.1 and 1 where nothing is."""
        edges = [edge for series in self.series for edge in (series.y, series.low, series.high) if edge is not None]
        edges += [tuple(y for _, y in series.points) for series in self.series]
        edges.append(tuple(level.at for level in self.levels if level.anchor))
        return _limits(np.concatenate([np.empty(0), *(self.drawable(edge) for edge in edges)]))

    def drawable(self, values: tuple[float, ...]) -> Float[np.ndarray, " values"]:
        """Return the values, NaN where the axis has no place for them."""
        return _drawable(values, self.log_y)

    def heights(self, series: Series) -> Float[np.ndarray, " values"]:
        """Return the y of each mark of a series, NaN where either axis has no place for the mark."""
        return np.where(np.isnan(_drawable(series.x, self.log_x)), np.nan, self.drawable(series.y))

    def drawable_ticks(self) -> tuple[float, ...]:
        """Return those of `x_ticks` that the axis has a place for."""
        return tuple(itertools.compress(self.x_ticks, ~np.isnan(_drawable(self.x_ticks, self.log_x))))

    def x_limits(self) -> tuple[float, float]:
        """Return the smallest and largest x of ticks, marks and points; 0.1 and 1 where nothing is."""
        places = [self.x_ticks, *(series.x for series in self.series)]
        places += [tuple(x for x, _ in series.points) for series in self.series]
        return _limits(np.concatenate([_drawable(each, self.log_x) for each in places]))

    def tip(self, series: Series, i: int) -> str:
        """Return what a marker says when it is pointed at."""
        text = f"{series.name}, {_without_unit(self.x_label)} {series.x[i]:g}: {decimal(series.y[i])}"
        if series.low is not None and series.high is not None and series.high[i] > series.low[i]:
            text += f" ({self.spread} {decimal(series.low[i])} to {decimal(series.high[i])})"
        return text


@dataclass(frozen=True)
class Line:
    """A line through the cells of a heat map. `points` are (column, row) indices; 0 is the first cell's centre.

    It is drawn between the centres only and hides no value. `label` is written on it, `name` is its tooltip.
    """

    name: str
    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Values over two axes, with lines over them. NaN is an empty cell.

    A cell's colour is the logarithm of its value over `baseline`, the error of the best constant answer, on one scale
    for all maps of errors (`SCALE`). Where values are `counts`, it is the share of the largest. `words` are written in
    the cells in place of the values. `downward`: the first row is at the top.
    """

    name: str
    title: str
    rows: tuple[Value, ...]
    columns: tuple[Value, ...]
    row_label: str
    column_label: str
    values: Float[np.ndarray, "rows columns"]
    unit: str
    caption: str
    baseline: Float[np.ndarray, "rows columns"] | float = 1.0
    lines: tuple[Line, ...] = ()
    counts: bool = False
    words: tuple[tuple[str, ...], ...] = ()
    scale: tuple[float, float] = SCALE
    scale_label: str = SCALE_LABEL
    downward: bool = False

    def colour_shares(self) -> Float[np.ndarray, "rows columns"]:
        """Return where each cell lies on the scale, from 0 (dark, a small error) to 1; NaN where nothing is."""
        if self.counts:
            known = self.values[np.isfinite(self.values)]
            return self.values / (known.max() + 1 if known.size else 1.0)
        low, high = np.log10(self.scale)
        with np.errstate(invalid="ignore", divide="ignore"):
            decades = np.log10(np.maximum(self.values / self.baseline, 0.0))
        return np.where(np.isnan(self.values), np.nan, np.clip((decades - low) / (high - low), 0.0, 1.0))

    def tip(self, i: int, j: int) -> str:
        """Return what a cell says when it is pointed at."""
        value = self.values[i, j]
        size = f"{_without_unit(self.row_label)} {self.rows[i]}, {_without_unit(self.column_label)} {self.columns[j]}"
        if self.words:
            return f"{size}: {self.unit} {self.words[i][j]}"
        return f"{size}: {self.unit} {decimal(value)}" if np.isfinite(value) else f"{size}: nothing finished"


def _drawable(values: tuple[float, ...], log: bool) -> Float[np.ndarray, " values"]:
    """Return the values, NaN where a linear or a logarithmic axis has no place for them."""
    numbers = np.asarray(values, float)
    return np.where((np.abs(numbers) <= MAX_DRAWN) & ((numbers >= MIN_DRAWN) | (not log)), numbers, np.nan)


def _limits(values: Float[np.ndarray, " values"]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.1, 1.0)


def _without_unit(label: str) -> str:
    return label.split(" (")[0]
