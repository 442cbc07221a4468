"""The report: one HTML page that needs nothing but itself.

Style and script are inside it, charts are SVG, and its content policy forbids every request, so it opens from a file,
without a network, for as long as there are browsers. Equal results give equal pages.
"""

import base64
import functools
import itertools
import math
from collections.abc import Iterable
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..._version import __version__
from ...analysis import Verdict
from ...store import Experiment, Record
from ..chart import COLOURS, Chart, Series
from ..provenance import Provenance
from ..section import Section, experiment_section
from .evidence import evidence_rows
from .inline import Inlined, inlined
from .rows import error_rows, other_draws
from .words import number, spoken_time

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SIGNS = {Verdict.HOLDS: "\u2713", Verdict.DIFFERS: "\u2260", Verdict.UNDECIDED: "?"}
_KINDS = {"descended": "descended, dotted", "published": "published, dashed", "fit": "fitted lines"}
_SEVERAL = {Verdict.HOLDS: "hold", Verdict.DIFFERS: "differ", Verdict.UNDECIDED: "undecided"}


def page(sections: list[Section], *, folder: str, warnings: Iterable[str] = ()) -> str:
    """The whole page.

    Sections that read the same models are one result, and the first one's headline is the title; with several results
    the title counts them and an overview follows.
    """
    shared = tuple(note for note in sections[0].notes if len(sections) > 1 and all(note in s.notes for s in sections))
    results = len({s.provenance.keys if s.provenance else s.name for s in sections})
    numbers = itertools.count(1)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            policy=POLICY,
            style=_asset("page.css"),
            script=_asset("page.js"),
            version=__version__,
            folder=folder,
            heading=sections[0].headline if results == 1 else f"{len(sections)} results in {folder}",
            about_rank=any(section.about_rank for section in sections),
            about_variance={section.counts_variance for section in sections},
            warnings=list(warnings),
            sections=sections,
            drawings=[[(chart, inlined(chart, f"chart{next(numbers)}")) for chart in s.charts] for s in sections],
            shared=shared,
        )
    )


def section_html(section: Section, place: int) -> str:
    """One section as a part of another page, which has the style and the script of this one."""
    drawings = [(chart, inlined(chart, f"chart{place}-{number}")) for number, chart in enumerate(section.charts)]
    content = '{% import "macros.html.j2" as macros %}{% include "section.html.j2" %}'
    template = _environment().from_string(content)
    return template.render(section=section, place=place, drawn=drawings, shared=())


def summary(experiment: Experiment, records: Iterable[Record]) -> str:
    """An experiment in a few lines of HTML, for a notebook: its answer, and the smallest error over seeds."""
    section = experiment_section(experiment, records)
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
    }
    environment.tests |= {"line_chart": lambda chart: isinstance(chart, Chart)}
    environment.globals |= {
        "signs": _SIGNS,
        "tally": _tally,
        "legend": _legend,
        "swatches": len(COLOURS),
        "error_rows": error_rows,
        "other_draws": other_draws,
        "evidence_rows": evidence_rows,
        "lost": _lost,
    }
    return environment


def _asset(name: str) -> Markup:
    """A file of ours, which the page holds as it is."""
    return Markup((files("headcount.report") / "assets" / name).read_text(encoding="utf-8"))


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


def _lost(provenance: Provenance | None) -> str:
    """What a section lacks, in one sentence; empty where nothing is missing."""
    if provenance is None:
        return ""
    lost = []
    if provenance.missing:
        lost.append(f"{provenance.missing} of {provenance.cells + provenance.missing} models are not trained yet")
    lost += [f"{provenance.outcomes[name]} {name}" for name in ("failed", "diverged") if provenance.outcomes.get(name)]
    if not lost:
        return ""
    again = "; run the same command again to continue" if provenance.missing and provenance.commands else ""
    reason = f" ({provenance.messages[0]})" if provenance.messages else ""
    return f"{', '.join(lost)}{again}. The page shows the others.{reason}"
