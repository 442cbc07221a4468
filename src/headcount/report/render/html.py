"""The report: one HTML page that needs nothing but itself.

Style and script are inside it, charts are SVG, and its content policy forbids every request, so it opens from a file,
without a network, for as long as there are browsers. Equal results give equal pages.
"""

import base64
import functools
import math
import struct
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..._version import __version__
from ...answer import Verdict
from ..chart import COLOURS, Chart, HeatMap, Series
from ..section import Section
from .cells import colour_of
from .evidence import evidence_rows
from .inline import Inlined, inlined
from .rows import error_rows, other_draws
from .ticks import tick_text
from .words import number, spoken_time

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SIGNS = {Verdict.HOLDS: "\u2713", Verdict.DIFFERS: "\u2260", Verdict.UNDECIDED: "?"}
_KINDS = {"descended": "descended", "published": "published, dashed", "fit": "fitted lines"}
_UNITS = {
    True: "NMSE is the mean squared error over the target's variance: 1 is as good as predicting the mean, 0 is exact",
    False: "Errors are shares of wrong answers",
}
_RAMP = 9
"""Colours that the scale of a heat map is drawn with."""
_SEVERAL = {Verdict.HOLDS: "hold", Verdict.DIFFERS: "differ", Verdict.UNDECIDED: "undecided"}


def page(sections: list[Section], *, folder: str, warnings: Iterable[str] = ()) -> str:
    """The whole page: the answer of one section is its title; several are counted, and an overview leads to each."""
    several = len(sections) > 1
    shared = tuple(note for note in sections[0].notes if several and all(note in s.notes for s in sections))
    explained: set[bool] = set()
    parts = []
    for place, section in enumerate(sections, start=1):
        new = section.trained_model is None and section.counts_variance not in explained
        explained |= {section.counts_variance} if new else set()
        parts.append(Markup(section_html(section, place, level=2 if several else 1, explain=new, shared=shared)))
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
            sections=sections,
            parts=parts,
            shared=shared,
        )
    )


def section_html(
    section: Section, place: int, *, level: int = 2, explain: bool = True, shared: Iterable[str] = ()
) -> str:
    """One section, whole and by itself; a page that shows it needs `style()` and `script()`.

    Args:
        section: What is shown.
        place: Its number on the page, which makes its ids unique.
        level: The level of its heading, 1 to 6; its parts are one below.
        explain: Whether to say what the errors are.
        shared: Notes that the page has for all sections.
    """
    return (
        _environment()
        .get_template("section.html.j2")
        .render(
            section=section,
            heading=_heading(section),
            place=place,
            level=level,
            own=section.experiment is not None or section.trained_model is not None,
            unit=_UNITS[section.counts_variance] if explain and section.trained_model is None else "",
            shared=tuple(shared),
            # The page itself needs no advice to be made.
            steps=[step for step in section.next_steps if not step.command.startswith("headcount report ")],
        )
    )


def _heading(section: Section) -> str:
    """The headline; without the reason why there is no answer where prose and evidence say it."""
    if section.answer is None or not section.prose or section.answer.kind != "none":
        return section.headline
    return section.headline.removesuffix(f": {section.answer.reason}")


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


def summary(section: Section) -> str:
    """A section in a few lines of HTML, for a notebook: its answer in words, and the smallest error over seeds."""
    return _environment().get_template("summary.html.j2").render(section=section, errors=error_rows(section))


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
        "error": number,
        "ratio": lambda value: f"\u00d7{value:.2g}" if value < 100 else f"\u00d7{value:.0f}",
        "time": spoken_time,
        "known": math.isfinite,
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
        "error_rows": error_rows,
        "other_draws": other_draws,
        "evidence_rows": evidence_rows,
        "lost": _lost,
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


def _tally(section: Section) -> list[tuple[Verdict, str]]:
    """How many claims have each verdict, in words."""
    counts = [(verdict, sum(claim.verdict is verdict for claim in section.claims)) for verdict in Verdict]
    return [(verdict, f"{count} {verdict if count == 1 else _SEVERAL[verdict]}") for verdict, count in counts if count]


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


def _lost(section: Section) -> str:
    """How many models failed or diverged, in one sentence, and those that are missing where no warning counts them."""
    origin = section.provenance
    if origin is None:
        return ""
    lost, missing = [], 0 if section.warning else origin.missing
    if missing:
        lost.append(f"{missing} of {origin.cells + missing} models are not trained yet")
    lost += [f"{origin.outcomes[name]} {name}" for name in ("failed", "diverged") if origin.outcomes.get(name)]
    if not lost:
        return ""
    again = "; run the same command again to continue" if missing and origin.commands else ""
    reason = f" ({origin.messages[0]})" if origin.messages else ""
    return f"{', '.join(lost)}{again}. The page shows the others.{reason}"
