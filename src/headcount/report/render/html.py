"""The report: one HTML page that needs nothing but itself.

Style and script are inside it, charts are SVG, and its content policy forbids every request, so it opens from a file,
without a network, for as long as there are browsers. Equal results give equal pages.
"""

import base64
import functools
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..._version import __version__
from ...answer import Verdict
from ...answer.words import decimal
from ..chart import COLOURS, Chart, HeatMap, Series
from ..document import Document, Grid, NamedFacts, Notes, Picture, Steps, Text
from ..heads import HeadsRead
from .cells import colour_of
from .inline import Inlined, inlined
from .ticks import tick_text
from .words import spoken_time

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SIGNS = {Verdict.HOLDS: "\u2713", Verdict.DIFFERS: "\u2260", Verdict.UNDECIDED: "?"}
_KINDS = {"descended": "descended", "published": "published, dashed", "fit": "fitted lines"}
ROLES = ("prose", "warning")
"""Of texts, by which a page places them."""
_RAMP = 9
"""Colours that the scale of a heat map is drawn with."""
_SEVERAL = {Verdict.HOLDS: "hold", Verdict.DIFFERS: "differ", Verdict.UNDECIDED: "undecided"}


def page(documents: Sequence[Document], *, folder: str, warnings: Iterable[str] = ()) -> str:
    """The whole page: the answer of one document is its title; several are counted, and an overview leads to each."""
    several = len(documents) > 1
    shared = tuple(note for note in documents[0].notes if several and all(note in each.notes for each in documents))
    explained: set[str] = set()
    parts = []
    for place, document in enumerate(documents, start=1):
        new = document.unit not in explained
        explained.add(document.unit)
        part = document_html(document, place, level=2 if several else 1, explain=new, shared=shared)
        parts.append(Markup(part))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            policy=POLICY,
            style=Markup(style()),
            script=Markup(script()),
            version=__version__,
            folder=folder,
            warnings=list(warnings),
            documents=documents,
            parts=parts,
            shared=shared,
        )
    )


def document_html(
    document: Document, place: int, *, level: int = 2, explain: bool = True, shared: Iterable[str] = ()
) -> str:
    """One document, whole and by itself; a page that shows it needs `style()` and `script()`.

    Args:
        document: What is shown.
        place: Its number on the page, which makes its ids unique.
        level: The level of its heading, 1 to 6; its parts are one below.
        explain: Whether to say what the errors are.
        shared: Notes that the page has for all documents.
    """
    shown = replace(document, blocks=tuple(block for block in document.blocks if _is_on_page(block)))
    return (
        _environment()
        .get_template("document.html.j2")
        .render(
            document=shown,
            place=place,
            level=level,
            own=document.kind != "study",
            unit=document.unit if explain else "",
            shared=tuple(shared),
            texts={role: [each.plain for each in shown.blocks_of(Text) if each.role == role] for role in ROLES},
            heads=shown.blocks_of(HeadsRead),
            pictures=shown.blocks_of(Picture),
            error_grids=[grid for grid in shown.blocks_of(Grid) if grid.errors],
            facts=shown.blocks_of(NamedFacts),
            notes=shown.blocks_of(Notes),
            # The page itself needs no advice to be made.
            steps=[
                step
                for block in shown.blocks_of(Steps)
                for step in block.steps
                if not step.command.startswith("headcount report ")
            ],
        )
    )


def _is_on_page(block: Any) -> bool:
    return getattr(block, "shown", "always") != "terminal"


def figure_html(chart: Chart | HeatMap, prefix: str, *, level: int = 3) -> str:
    """One chart with its legend; `prefix` begins its ids, and no other chart of the page may have it."""
    content = '{% import "macros.html.j2" as macros with context %}{{ macros.figure(chart, prefix, level) }}'
    return _environment().from_string(content).render(chart=chart, prefix=prefix, level=level)


def style() -> str:
    """The style of every page."""
    return _asset("page.css")


def script() -> str:
    """The script of every page: themes, legends, tooltips, copying. It also works on sections that come later."""
    return _asset("page.js")


def summary(document: Document) -> str:
    """A document in a few lines of HTML, for a notebook: its answer in words, and the smallest error over seeds."""
    prose = [each.words[0] for each in document.blocks_of(Text) if each.role == "prose"]
    grids = [grid for grid in document.blocks_of(Grid) if grid.errors and grid.shown == "always"]
    return _environment().get_template("summary.html.j2").render(document=document, prose=prose, grids=grids)


def grids_html(grids: Iterable[Grid]) -> str:
    """Grids, for a page with `style()`."""
    content = (
        '{% import "macros.html.j2" as macros with context %}{% for grid in grids %}{{ macros.grid(grid) }}{% endfor %}'
    )
    return _environment().from_string(content).render(grids=grids)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("headcount.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "base64": lambda content: base64.b64encode(content).decode(),
        "error": decimal,
        "time": spoken_time,
        "png_size": _png_size,
    }
    environment.tests |= {"line_chart": lambda chart: isinstance(chart, Chart)}
    environment.globals |= {
        "signs": _SIGNS,
        "tally": _tally,
        "legend_of": _legend,
        "drawn": inlined,
        "scale_of": _scale,
        "swatches": len(COLOURS),
    }
    return environment


def _scale(chart: HeatMap) -> dict[str, Any]:
    """The ends of a map's scale in words, and the colours between them."""
    low, high = (tick_text(end, chart.scale, log=True) for end in chart.scale)
    return {"low": low, "high": high, "colours": [colour_of(place / (_RAMP - 1)) for place in range(_RAMP)]}


@functools.cache
def _asset(name: str) -> str:
    """A file of ours, which the page holds as it is."""
    return (files("headcount.report") / "assets" / name).read_text(encoding="utf-8")


def _png_size(png: bytes) -> Markup:
    """The size of a picture as attributes, so that the page does not move while it is read."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        return Markup("")
    width, height = struct.unpack(">II", png[16:24])
    return Markup(f'width="{width}" height="{height}"')


def _tally(document: Document) -> list[tuple[Verdict, str]]:
    """How many claims have each verdict, in words."""
    counts = Counter(claim.verdict for claim in document.claims)
    words = {verdict: verdict.value if counts[verdict] == 1 else several for verdict, several in _SEVERAL.items()}
    return [(verdict, f"{counts[verdict]} {words[verdict]}") for verdict in _SEVERAL if counts[verdict]]


def _legend(chart: Chart, drawing: Inlined) -> tuple[list[tuple[Series, str | None]], list[tuple[str, str]]]:
    """The buttons of a chart.

    One for each colour: its first series, and the id of its marker where one is drawn. One more for descended models,
    published lines or fits that share the colours of others.
    """
    first: dict[int, tuple[Series, str | None]] = {}
    for k, series in enumerate(chart.series):
        first.setdefault(series.place, (series, drawing.marks.get(k)))
    kinds = []
    for kind, words in _KINDS.items():
        if {s.place for s in chart.series if s.kind == kind} & {s.place for s in chart.series if s.kind != kind}:
            kinds.append((kind, words))
    return list(first.values()), kinds
