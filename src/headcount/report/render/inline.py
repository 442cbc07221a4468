"""Charts as SVG inside the page: matplotlib's drawing, with the page's colours, tooltips and handles for its script.

Colours become CSS variables, so a chart follows light, dark and print. Every mark carries its value twice: as a
<title>, which any browser and screen reader shows, and as data-tip for the page's own hover box. Elements of one series
share data-place and data-kind, by which the legend's buttons hide them. Ids begin with the chart's own prefix.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as Tree

from ..chart import COLOURS, Chart, HeatMap
from .figure import draw_bare, to_svg
from .ink import GROUND, INK, QUIET, RULE, page_size

REACH = "8"
"""Radius within which a marker is pointed at."""
ROUND = "2.5"
"""Radius of a cell's corners."""
_VARIABLES = {colour: f"var(--p{place})" for place, colour in enumerate(COLOURS)} | {
    INK: "var(--ink)",
    QUIET: "var(--quiet)",
    RULE: "var(--rule)",
    GROUND: "var(--raised)",
}
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True)
class Inlined:
    """A chart for the page. `marks` are the ids of its markers, by series; a legend can use them."""

    svg: str
    marks: dict[int, str]


def inlined(chart: Chart | HeatMap, prefix: str) -> Inlined:
    """Draw a chart for the page. `prefix` begins its ids, and no other chart of the page may have it."""
    drawing = Tree.fromstring(to_svg(draw_bare(chart)))
    if isinstance(chart, Chart):
        title = f"{chart.title}: {chart.y_label} against {chart.x_label}"
    else:
        title = f"{chart.title}: {chart.unit} by {chart.row_label} and {chart.column_label}"
    builder = _Builder(chart, prefix, Tree.Element("svg"))
    width, height = map(str, page_size(chart))
    # With its size given, the page does not move while it is laid out.
    builder.svg.attrib |= {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    builder.svg.attrib |= {"role": "img", "tabindex": "0", "aria-label": title}
    for group in drawing.iter(f"{_SVG}g"):
        role, *indices = group.get("id", "").split(" ")
        if role in _ROLES:
            _ROLES[role](builder, group, role, *map(int, indices))
    return Inlined(Tree.tostring(builder.svg, encoding="unicode"), builder.marks)


_TIPS: dict[str, Callable[..., str]] = {
    "span": lambda chart: chart.span.name,
    "level": lambda chart, *levels: "; ".join(chart.levels[k].words for k in levels),
    "cell": lambda chart, i, j: chart.tip(i, j),
    "equal": lambda chart, k: chart.lines[k].name,
}
"""What groups of artists say when they are pointed at, by role."""
_OWN_COLOURS = {"cell": ("fill",), "equal": ("fill", "stroke")}


class _Builder:
    """Copies what a drawing shows into `svg`, role by role."""

    def __init__(self, chart: Any, prefix: str, svg: Tree.Element):
        self.chart, self.prefix, self.svg = chart, prefix, svg
        self.defs = Tree.SubElement(svg, "defs")
        self.shapes: dict[str, str] = {}  # a marker's outline to its id
        self.names: dict[str, str] = {}  # matplotlib's id to ours
        self.marks: dict[int, str] = {}
        self.groups: dict[tuple[str, tuple[int, ...]], Tree.Element] = {}  # what shares a tooltip

    def plain(self, group: Tree.Element, role: str, *series: int) -> None:
        """Copy labels, ticks, grid lines, the axis, and the band of a series."""
        for child in self.shown(group):
            child.set("class", role)
            (self.series(*series) if series else self.svg).append(child)

    def tipped(self, group: Tree.Element, role: str, *indices: int) -> None:
        """Copy what says the same when it is pointed at: the artists of these indices share a group."""
        if (role, indices) not in self.groups:
            kind = {} if role == "cell" else {"class": role}
            self.groups[role, indices] = _tipped(self.svg, _TIPS[role](self.chart, *indices), kind)
        for child in self.shown(group, _OWN_COLOURS.get(role, ())):
            box = role == "cell" and child.tag == "path"
            self.groups[role, indices].append(_rectangle(child) if box else child)

    def seeds(self, group: Tree.Element, role: str, k: int) -> None:
        """Copy the points of a series."""
        points = list(self.shown(group))
        if points:
            _alike(self.series(k), points, {"class": role}).extend(points)

    def marked_line(self, group: Tree.Element, role: str, k: int) -> None:
        """Copy the line of a series, and its markers with what they say."""
        series, parent, points = self.chart.series[k], self.series(k), []
        for child in self.shown(group):
            if child.tag == "use":
                points.append(child)
            else:
                child.set("class", role)
                parent.append(child)
        if not points:
            return
        self.marks[k] = points[0].get("href", "")
        alike = _alike(parent, points, {})
        known = [i for i, y in enumerate(self.chart.heights(series)) if y == y]
        for i, point in zip(known, points, strict=True):
            spot = _tipped(alike, self.chart.tip(series, i), {"class": "point"})
            reach = {"class": "reach", "cx": point.get("x", ""), "cy": point.get("y", ""), "r": REACH}
            Tree.SubElement(spot, "circle", reach)
            spot.append(point)

    def series(self, k: int) -> Tree.Element:
        """Add a new group of a series."""
        series = self.chart.series[k]
        names = {"class": f"series {series.kind}", "data-place": str(series.place), "data-kind": series.kind}
        return Tree.SubElement(self.svg, "g", names)

    def shown(self, group: Tree.Element, own_colours: tuple[str, ...] = ()) -> Iterator[Tree.Element]:
        """Copy paths, markers and text of a group as the page has them; colours of `own_colours` stay as they are."""
        for defs in group.iter(f"{_SVG}defs"):
            for shape in defs:
                self.define(shape)
        defined = {shape for defs in group.iter(f"{_SVG}defs") for shape in defs}
        for element in group.iter():
            tag = element.tag.removeprefix(_SVG)
            if tag not in ("path", "use", "text") or element in defined:
                continue
            style = _style(element.get("style", ""), own_colours)
            names = ("d", "x", "y") if tag != "use" else ("x", "y")
            copy = Tree.Element(tag, {name: _short(element.get(name, "")) for name in names if element.get(name)})
            if tag == "use":
                copy.set("href", f"#{self.names[element.get(_LINK, '')[1:]]}")
            if tag == "text":
                copy.text = element.text
                copy.set("font-size", style.pop("font-size").removesuffix("px"))
                copy.set("text-anchor", style.pop("text-anchor", "start"))
                style.pop("font-family")
                if not element.get("transform", "").startswith("rotate(-0 "):
                    copy.set("transform", _short(element.get("transform", "")))
            if style:
                copy.set("style", ";".join(f"{name}:{value}" for name, value in style.items()))
            yield copy

    def define(self, shape: Tree.Element) -> None:
        """Define a marker's outline, once for all series that have it."""
        outline = _short(shape.get("d", ""))
        if outline not in self.shapes:
            self.shapes[outline] = f"{self.prefix}-{len(self.shapes)}"
            Tree.SubElement(self.defs, "path", {"id": self.shapes[outline], "d": outline})
        self.names[shape.get("id", "")] = self.shapes[outline]


_ROLES: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("axis", "grid", "tick", "label", "band", "drop"), _Builder.plain),
    **dict.fromkeys(_TIPS, _Builder.tipped),
    "seeds": _Builder.seeds,
    "line": _Builder.marked_line,
}


def _tipped(parent: Tree.Element, tip: str, attributes: dict[str, str]) -> Tree.Element:
    """Add a new group that says `tip` when it is pointed at."""
    group = Tree.SubElement(parent, "g", attributes | {"data-tip": tip})
    Tree.SubElement(group, "title").text = tip
    return group


def _alike(parent: Tree.Element, points: Iterable[Tree.Element], attributes: dict[str, str]) -> Tree.Element:
    """Add a new group that has the style of its points."""
    style, *_ = [point.attrib.pop("style", "") for point in points]
    return Tree.SubElement(parent, "g", attributes | {"style": style})


def _style(text: str, own_colours: tuple[str, ...]) -> dict[str, str]:
    """Return the declarations of a style, with variables for the colours of the palette."""
    pairs = (declaration.split(":", 1) for declaration in text.split(";") if ":" in declaration)
    style = {name.strip(): value.strip() for name, value in pairs}
    for name in ("fill", "stroke"):
        if name in style and (name not in own_colours or style[name] == INK):
            style[name] = _VARIABLES.get(style[name], style[name])
    return style


def _short(numbers: str) -> str:
    """Round coordinates to a hundredth of a point, on one line."""
    rounded = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), " ".join(numbers.split()))
    return re.sub(r" ?([MLCQz]) ?", r"\1", rounded)


def _rectangle(path: Tree.Element) -> Tree.Element:
    """Convert the path of a cell to a <rect> with round corners."""
    corners = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]
    x, y = corners[0::2], corners[1::2]
    box = {"x": min(x), "y": min(y), "width": max(x) - min(x), "height": max(y) - min(y)}
    attributes = {name: f"{value:.2f}" for name, value in box.items()}
    return Tree.Element("rect", {"class": "cell", **attributes, "rx": ROUND, "style": path.get("style", "")})
