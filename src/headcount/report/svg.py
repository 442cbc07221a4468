"""Charts drawn for the page: plain SVG whose colours are CSS variables, so that it follows light, dark and print.

Every mark carries its value twice: as a <title>, which any browser and screen reader shows, and as data-tip for the
page's own hover box. Elements of one series share data-place and data-kind, by which the legend's buttons hide them.
"""

import html
import math
from dataclasses import dataclass

import matplotlib
import numpy as np

from .chart import Chart, HeatMap, Line, Series

WIDTH, HEIGHT = 480, 330
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 14, 46

_MARKS = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "square": "M-3.6 -3.6h7.2v7.2h-7.2z",
    "triangle": "M0 -4.6l4.6 8h-9.2z",
    "diamond": "M0 -5l5 5l-5 5l-5 -5z",
    "wedge": "M0 4.6l4.6 -8h-9.2z",
    "plus": "M-1.6 -4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "cross": "M-4.4 -2.4l2 -2l2.4 2.4l2.4 -2.4l2 2l-2.4 2.4l2.4 2.4l-2 2l-2.4 -2.4l-2.4 2.4l-2 -2l2.4 -2.4z",
}


def mark_path(marker: str) -> str:
    """The outline of a marker about the origin, for the chart and its legend."""
    return _MARKS[marker]


@dataclass(frozen=True)
class Axes:
    """From values to places on the drawing."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    log_x: bool
    log_y: bool

    def x(self, value: float) -> float:
        return LEFT + _share(value, self.x_low, self.x_high, self.log_x) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - _share(value, self.y_low, self.y_high, self.log_y) * (HEIGHT - TOP - BOTTOM)


def _share(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low)


def line_chart(chart: Chart) -> str:
    """The chart as an <svg>."""
    axes, y_ticks = _axes(chart)
    parts = [_span(chart, axes), _grid(chart, axes, y_ticks)]
    # Bands lie under all lines, published lines under measured ones.
    parts += [_band(series, axes) for series in chart.series]
    order = {"fit": 0, "published": 1, "measured": 2}
    parts += [_line(chart, series, axes) for series in sorted(chart.series, key=lambda s: order[s.kind])]
    label = html.escape(f"{chart.title}: {chart.y_label} against {chart.x_label}")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _axes(chart: Chart) -> tuple[Axes, list[float]]:
    low, high = chart.limits()
    if chart.log_y:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        last = max(last, first + 1)
        y_low, y_high = 10.0**first, 10.0**last
        stride = -(-(last - first) // 8)
        ticks = [10.0**power for power in range(first, last + 1, stride)]
    else:
        y_low, y_high = min(0.0, low), high if high > min(0.0, low) else low + 1.0
        step = _round_step((y_high - y_low) / 5)
        y_high = y_low + math.ceil((y_high - y_low) / step) * step
        ticks = [y_low + i * step for i in range(round((y_high - y_low) / step) + 1)]
    x_low, x_high = min(chart.x_ticks), max(chart.x_ticks)
    if chart.log_x:
        margin = max(1.08, (x_high / x_low) ** 0.04)
        x_low, x_high = x_low / margin, x_high * margin
    else:
        margin = max(0.3, 0.04 * (x_high - x_low))
        x_low, x_high = x_low - margin, x_high + margin
    return Axes(x_low, x_high, y_low, y_high, chart.log_x, chart.log_y), ticks


def _round_step(step: float) -> float:
    scale = 10.0 ** math.floor(math.log10(step))
    return next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= step * (1 - 1e-9))


def _grid(chart: Chart, axes: Axes, y_ticks: list[float]) -> str:
    parts = []
    for tick in y_ticks:
        y = axes.y(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(tick, chart)}</text>')
    bottom = HEIGHT - BOTTOM
    for tick in _readable(chart.x_ticks, axes):
        x = axes.x(tick)
        parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v4"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{WIDTH - RIGHT}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="label" x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{html.escape(chart.x_label)}</text>"
    )
    height = (TOP + bottom) / 2
    parts.append(
        f'<text class="label" transform="translate(13 {height:.0f}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(chart.y_label)}</text>"
    )
    return "".join(parts)


def _readable(ticks: tuple[float, ...], axes: Axes) -> list[float]:
    """The ticks whose labels do not run into each other."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or axes.x(tick) - axes.x(kept[-1]) >= 22:
            kept.append(tick)
    return kept


def _tick(value: float, chart: Chart) -> str:
    if not chart.log_y:
        return f"{value:g}"
    return f'10<tspan dy="-5" class="power">{round(math.log10(value))}</tspan>'.replace("-", "\u2212").replace(
        'dy="\u22125"', 'dy="-5"'
    )


def _span(chart: Chart, axes: Axes) -> str:
    if chart.span is None:
        return ""
    span = chart.span
    left, right = (axes.x(min(max(edge, axes.x_low), axes.x_high)) for edge in (span.low - 0.5, span.high + 0.5))
    top, bottom, at = TOP, HEIGHT - BOTTOM, axes.x(span.at)
    name = html.escape(span.name)
    return (
        f'<g class="span" data-tip="{name}"><title>{name}</title>'
        f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{bottom - top}"/>'
        f'<path d="M{at:.1f} {top}V{bottom}"/></g>'
    )


def _points(series: Series, values: tuple[float, ...], axes: Axes) -> list[tuple[float, float] | None]:
    """Places of the values, None at gaps."""
    return [
        (axes.x(x), axes.y(y)) if math.isfinite(y) and (y > 0 or not axes.log_y) else None
        for x, y in zip(series.x, values, strict=True)
    ]


def _runs(points: list[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """The points cut at gaps."""
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _band(series: Series, axes: Axes) -> str:
    if series.low is None or series.high is None:
        return ""
    lower, upper = (_points(series, edge, axes) for edge in (series.low, series.high))
    both = [low is not None and high is not None for low, high in zip(lower, upper, strict=True)]
    lower, upper = (
        _runs([point if there else None for point, there in zip(edge, both, strict=True)]) for edge in (lower, upper)
    )
    areas = [f'<path class="band" d="{_path(low + high[::-1])}z"/>' for low, high in zip(lower, upper, strict=True)]
    return f"<g {_belongs(series)}>{''.join(areas)}</g>"


def _line(chart: Chart, series: Series, axes: Axes) -> str:
    points = _points(series, series.y, axes)
    parts = [f'<path class="line" d="{_path(run)}"/>' for run in _runs(points) if len(run) > 1]
    if series.kind != "fit":
        for i, point in enumerate(points):
            if point is not None:
                tip = html.escape(_tip(chart, series, i))
                parts.append(
                    f'<g class="point" transform="translate({point[0]:.1f} {point[1]:.1f})" data-tip="{tip}">'
                    f'<title>{tip}</title><circle class="reach" r="11"/><path d="{_MARKS[series.marker]}"/></g>'
                )
    return f"<g {_belongs(series)}>{''.join(parts)}</g>"


def _tip(chart: Chart, series: Series, i: int) -> str:
    form = "{:.3g}" if not chart.log_y else "{:.2e}"
    text = f"{series.name}, {_said(chart.x_label)} {series.x[i]:g}: {form.format(series.y[i])}"
    if series.low is not None and series.high is not None:
        text += f" (seeds {form.format(series.low[i])} to {form.format(series.high[i])})"
    return text


def _said(label: str) -> str:
    """An axis's name without what its numbers are counted in."""
    return label.split(" (")[0]


def _belongs(series: Series) -> str:
    return f'class="series p{series.place % 7} {series.kind}" data-place="{series.place}" data-kind="{series.kind}"'


def heat_map(chart: HeatMap) -> str:
    """The heat map as an <svg>, the largest row on top."""
    known = chart.values[np.isfinite(chart.values) & (chart.values > 0)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.1, 1.0)
    wide = (WIDTH - LEFT - RIGHT) / len(chart.columns)
    tall = (HEIGHT - TOP - BOTTOM) / len(chart.rows)
    size, gap = min(13, 0.23 * wide, 0.7 * tall), min(1.0, wide / 8, tall / 8)
    every_row, every_column = math.ceil(15 / tall), math.ceil(32 / wide)
    parts = []
    for (i, j), value in np.ndenumerate(chart.values):
        x, y = LEFT + j * wide, HEIGHT - BOTTOM - (i + 1) * tall
        there = math.isfinite(value)
        tip = html.escape(
            f"{_said(chart.row_label)} {chart.rows[i]}, {_said(chart.column_label)} {chart.columns[j]}: "
            + (f"{chart.unit} {value:.2e}" if there else "nothing finished")
        )
        fill, ink = _colour(value, low, high) if there else ("none", "currentColor")
        parts.append(
            f'<g data-tip="{tip}"><title>{tip}</title>'
            f'<rect class="cell" x="{x + gap:.2f}" y="{y + gap:.2f}" width="{wide - 2 * gap:.2f}" '
            f'height="{tall - 2 * gap:.2f}" '
            f'rx="3" fill="{fill}"/>'
            f'<text x="{x + wide / 2:.1f}" y="{y + tall / 2 + size / 3:.1f}" style="fill:{ink}" font-size="{size:.1f}" '
            f'text-anchor="middle">{f"{value:.1e}" if there else "-"}</text></g>'
        )
    parts += [_over_cells(line, wide, tall) for line in chart.lines]
    parts += [
        f'<text class="tick" x="{LEFT - 8}" y="{HEIGHT - BOTTOM - (i + 0.5) * tall + 4:.1f}" '
        f'text-anchor="end">{row}</text>'
        for i, row in enumerate(chart.rows)
        if i % every_row == 0
    ]
    parts += [
        f'<text class="tick" x="{LEFT + (j + 0.5) * wide:.1f}" y="{HEIGHT - BOTTOM + 17}" '
        f'text-anchor="middle">{column}</text>'
        for j, column in enumerate(chart.columns)
        if j % every_column == 0
    ]
    middle, height = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="label" x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{html.escape(chart.column_label)}</text>"
        f'<text class="label" transform="translate(13 {height:.0f}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(chart.row_label)}</text>"
    )
    label = html.escape(f"{chart.title}: {chart.unit} by {chart.row_label} and {chart.column_label}")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _over_cells(line: Line, wide: float, tall: float) -> str:
    """A line over cells of this size, dark on a light edge, which shows on every colour of the map and in any theme."""

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return LEFT + (point[0] + 0.5) * wide, HEIGHT - BOTTOM - (point[1] + 0.5) * tall

    path = "".join(_path([place(start), place(end)]) for start, end in line.strokes())
    (x, y), name, size = place(line.label_at), html.escape(line.name), min(9.5, 0.2 * wide, 0.5 * tall)
    light, dark = 'stroke="#ffffff" stroke-width="3.4"', 'stroke="#222222" stroke-width="1.2"'
    return (
        f'<g class="equal" data-tip="{name}"><title>{name}</title>'
        f'<path d="{path}" fill="none" stroke-linecap="round" {light}/><path d="{path}" fill="none" {dark}/>'
        f'<text x="{x:.1f}" y="{y + size / 3:.1f}" font-size="{size:.1f}" text-anchor="middle" stroke="#ffffff" '
        f'stroke-width="2.6" style="fill:#222222;paint-order:stroke">{html.escape(line.label)}</text></g>'
    )


def _colour(value: float, low: float, high: float) -> tuple[str, str]:
    """Fill by the logarithm on cividis, which reads the same in every colour vision, and ink that shows on it."""
    share = _share(max(value, low), low, high, log=True) if high > low else 0.5
    red, green, blue, _ = matplotlib.colormaps["cividis"](share)
    fill = f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
    return fill, "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.45 else "#ffffff"
