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
    """Return the page: the answer of one document is its title; several are counted, and an overview leads to each."""
    content = Markup(page_content(documents, folder=folder, warnings=warnings))
    shown = {"policy": POLICY, "style": Markup(style()), "script": Markup(_asset("page.js"))}
    return _rendered("page", **shown, version=__version__, folder=folder, content=content)


def page_content(documents: Sequence[Document], *, folder: str, warnings: Iterable[str] = ()) -> str:
    """Return what is between the head and the foot of a page."""
    several = len(documents) > 1
    shared = [note for note in documents[0].notes if all(note in each.notes for each in documents)] if several else []
    parts, units = [], [document.unit for document in documents]
    for place, document in enumerate(documents):
        unit = "" if document.unit in units[:place] else document.unit  # is said once
        parts.append(Markup(_document_html(document, place + 1, level=2 if several else 1, unit=unit, shared=shared)))
    return _rendered("content", folder=folder, warnings=list(warnings), documents=documents, parts=parts, shared=shared)


def _document_html(document: Document, place: int, *, level: int, unit: str, shared: Sequence[str]) -> str:
    """Write one document; `level` is that of its heading, and the page has `shared` notes for all documents."""
    shown = replace(document, blocks=tuple(each for each in document.blocks if _is_on_page(each)))
    return _rendered(
        "document",
        document=shown,
        place=place,
        level=level,
        own=document.kind != "study",
        unit=unit,
        shared=shared,
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


def _is_on_page(block: Any) -> bool:
    return getattr(block, "shown", "always") != "terminal"


def style() -> str:
    """Return the style of every page."""
    return _asset("page.css")


def summary(document: Document) -> str:
    """Return a document in a few lines of HTML, for a notebook: its answer in words, the smallest error over seeds."""
    prose = [each.words[0] for each in document.blocks_of(Text) if each.role == "prose"]
    grids = [grid for grid in document.blocks_of(Grid) if grid.errors and grid.shown == "always"]
    return _rendered("summary", document=document, prose=prose, grids=grids)


def _rendered(template: str, **content: Any) -> str:
    return _environment().get_template(f"{template}.html.j2").render(**content)


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
    """Return the ends of a map's scale in words, and the colours between them."""
    low, high = (tick_text(end, chart.scale, log=True) for end in chart.scale)
    return {"low": low, "high": high, "colours": [colour_of(place / (_RAMP - 1)) for place in range(_RAMP)]}


@functools.cache
def _asset(name: str) -> str:
    """Read a file of ours, which the page holds as it is."""
    return (files("headcount.report") / "assets" / name).read_text(encoding="utf-8")


def _png_size(png: bytes) -> Markup:
    """Return the size of a picture as attributes, so that the page does not move while it is read."""
    width, height = struct.unpack(">II", png[16:24])
    return Markup(f'width="{width}" height="{height}"')


def _tally(document: Document) -> list[tuple[Verdict, str]]:
    """Count the claims of each verdict, in words."""
    counts = Counter(claim.verdict for claim in document.claims)
    words = {verdict: verdict.value if counts[verdict] == 1 else several for verdict, several in _SEVERAL.items()}
    return [(verdict, f"{counts[verdict]} {words[verdict]}") for verdict in _SEVERAL if counts[verdict]]


def _legend(chart: Chart, drawing: Inlined) -> tuple[list[tuple[Series, str | None]], list[tuple[str, str]]]:
    """Return the buttons of a chart.

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
