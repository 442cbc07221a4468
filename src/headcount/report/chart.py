"""What a chart shows, whoever draws it: `svg.py` for the page, `figures.py` for paper."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Float

# Okabe and Ito's palette: told apart by every common kind of colour vision. Markers differ too, for print in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
MARKERS = ("circle", "square", "triangle", "diamond", "wedge", "plus", "cross")

Kind = Literal["measured", "published", "fit"]
MARGIN = 0.3
"""Share of the way between two cells' middles that a line over them leaves free at each end."""


@dataclass(frozen=True)
class Series:
    """One line. `place` picks colour and marker, so that a measured line and its published one look related.

    `kind` picks the stroke: measured ones are solid with filled markers, published ones dashed with hollow markers,
    fits thin without markers. `low` and `high` bound a band. NaN is a gap.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    place: int = 0
    kind: Kind = "measured"
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    @property
    def colour(self) -> str:
        return COLOURS[self.place % len(COLOURS)]

    @property
    def marker(self) -> str:
        # Shifted each time the colours begin again, so that no two of 49 lines share both.
        return MARKERS[(self.place + self.place // len(COLOURS)) % len(MARKERS)]


@dataclass(frozen=True)
class Span:
    """A value on the x axis worth marking, and the interval it lies in."""

    name: str
    at: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Lines over labelled axes. `name` is its file's name, `caption` says what lines and bands are."""

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

    def limits(self) -> tuple[float, float]:
        """The least and greatest y drawn, bands included; 0.1 and 1 where nothing is."""
        edges = [edge for series in self.series for edge in (series.y, series.low, series.high) if edge is not None]
        drawn = np.concatenate([np.empty(0), *(np.asarray(edge, float) for edge in edges)])
        drawn = drawn[np.isfinite(drawn) & ((drawn > 0) | (not self.log_y))]
        return (float(drawn.min()), float(drawn.max())) if len(drawn) else (0.1, 1.0)


@dataclass(frozen=True)
class Line:
    """A line through the cells of a heat map, given as (column, row) places in its axes: 0 is the first cell's middle.

    It is drawn between the cells only, so that it hides no value; `label` stands on it, `name` is said at a touch.
    """

    name: str
    label: str
    points: tuple[tuple[float, float], ...]

    def strokes(self) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """The middle of the way from each point to the next."""
        return [
            ((x + MARGIN * (u - x), y + MARGIN * (v - y)), (u - MARGIN * (u - x), v - MARGIN * (v - y)))
            for (x, y), (u, v) in pairwise(self.points)
        ]

    @property
    def label_at(self) -> tuple[float, float]:
        """Half way from the first point to the second, where cells meet."""
        (x, y), (u, v) = self.points[:2]
        return (x + u) / 2, (y + v) / 2


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Values over two counts, coloured by their logarithm, and lines over them. NaN is an empty cell."""

    name: str
    title: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    row_label: str
    column_label: str
    values: Float[np.ndarray, "rows columns"]
    unit: str
    caption: str
    lines: tuple[Line, ...] = ()
