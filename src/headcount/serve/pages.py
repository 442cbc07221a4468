"""The pages that are served: what `headcount report` and `compare` show, in a frame that follows a run."""

import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..report.render.words import spoken_time
from ..store import Live
from ..store.live import clock
from .certificates import CertificatesPage, has_certificates
from .folder import Folder

if TYPE_CHECKING:
    from ..report.section import Section

ASSETS = {
    "page.css": ("headcount.report", "text/css"),
    "page.js": ("headcount.report", "text/javascript"),
    "live.css": ("headcount.serve", "text/css"),
    "live.js": ("headcount.serve", "text/javascript"),
}


def report_content(sections: "Sequence[Section]", warnings: Iterable[str] = ()) -> str:
    """Return the content of the page that `headcount report` writes of these sections, or the warnings alone."""
    if not sections:
        return "".join(Markup('<p class="warning">{}</p>').format(words) for words in warnings)
    from ..report.render.html import page

    found = re.search(r"<main[^>]*>(.*)</main>", page(list(sections), folder="", warnings=warnings), re.DOTALL)
    assert found is not None
    return found[1]


class Pages:
    """Pages whose links begin with `base`, the token's part of every address; `root` names what is served."""

    def __init__(self, base: str, root: str):
        self.base, self.root = base, root

    def list(self, rows: str) -> str:
        """Return the page of all folders."""
        return self._frame(self.root, Markup('<div id="list">{}</div>').format(Markup(rows)), f"{self.base}/events")

    def rows(self, folders: Iterable[Folder]) -> str:
        """Return the folders, the one that changed last first."""
        newest = sorted(folders, key=lambda folder: (-folder.looked.changed, folder.name))
        return self._render("rows", folders=newest, gone=not os.path.isdir(self.root))

    def folder(self, folder: Folder) -> str:
        """Return a results folder: what a run does at the moment, and the page of the report."""
        content = Markup('<div id="now">{}</div><div id="report" data-version="{}">{}</div>')
        content = content.format(Markup(self.now(folder)), folder.version, Markup(folder.page))
        return self._frame(folder.name or self.root, content, f"{self.base}/events/{_address(folder.name)}")

    def now(self, folder: Folder) -> str:
        """Return what happens in a folder at the moment."""
        return self._render("now", folder=folder, certificates=has_certificates(folder.path))

    def compare(self, names: Sequence[str], chosen: Sequence[str], folders: "Mapping[str, Sequence[Section]]") -> str:
        """Return two folders side by side below the choice of them; the choice alone where none are given."""
        known = {name: name or self.root for name in names}
        chosen = [*chosen, *[""] * (2 - len(chosen))]
        choices = [
            (f"{place} folder", place, known, which) for place, which in zip(("first", "second"), chosen, strict=True)
        ]
        return self._choice("Compare two folders", choices, comparison_content(folders) if folders else "")

    def certificates(self, folder: Folder, shown: CertificatesPage) -> str:
        """Return the certificates of a folder, below the choice of a pair."""
        key, question = shown.chosen
        choices = [("model", "key", shown.models, key), ("pair", "where", shown.questions, question)]
        images = (
            Markup('<figure class="picture"><img src="{}" alt="drawn by headcount collide"></figure>').format(each)
            for each in shown.pictures
        )
        content = f"{report_content([shown.section])}{''.join(images)}"
        return self._choice(
            f"Sequences that the models of {folder.name or self.root} cannot tell apart", choices, content
        )

    def message(self, title: str, words: str) -> str:
        """Return a page of one sentence."""
        return self._frame(title, Markup("<h1>{}</h1><p>{}</p>").format(title, words))

    def _choice(self, title: str, choices: Sequence[Any], content: str) -> str:
        return self._frame(title, Markup(self._render("choice", title=title, choices=choices, content=Markup(content))))

    def _frame(self, title: str, content: Markup, events: str = "") -> str:
        return self._render("frame", title=title, content=content, events=events)

    def _render(self, template: str, **content: Any) -> str:
        page = _environment().get_template(f"{template}.html.j2").render(base=self.base, root=self.root, **content)
        return page.encode(errors="replace").decode()  # bytes of a folder's name that are not UTF-8 are question marks


def comparison_content(folders: "Mapping[str, Sequence[Section]]") -> str:
    """Return several folders side by side."""
    from ..report.compare import compared, comparison_chart, named_sections
    from ..report.render.words import number
    from ..report.section import Grid, Section

    comparison = compared(named_sections(folders))
    grids = [
        Grid(
            title="Answers",
            columns=("", "answer"),
            rows=tuple((name, each.headline) for name, each in comparison.sections.items()),
        )
    ]
    for table in comparison.tables:
        for length in table.lengths:
            rows = [
                (str(row.value), *(f"{number(cell.best)}{' *' if cell.differs else ''}" for cell in row.cells))
                for row in table.rows
                if row.length == length
            ]
            title = f"{table.metric} at {length} tokens, best of all; *: all seeds are better, or all worse"
            grids.append(Grid(title=title, columns=(table.axis, *table.names), rows=tuple(rows)))
    section = Section(
        name="comparison",
        title="Comparison",
        asks="Which differ?",
        headline=" and ".join(folders),
        grids=tuple(grids),
        charts=tuple(map(comparison_chart, comparison.tables)),
        notes=comparison.notes,
    )
    return report_content([section])


def asset(name: str) -> tuple[str, str] | None:
    """Return the content and the type of a file of ours."""
    if name not in ASSETS:
        return None
    package, kind = ASSETS[name]
    return (files(package) / "assets" / name).read_text(encoding="utf-8"), f"{kind}; charset=utf-8"


def _address(name: str) -> str:
    return quote(os.fsencode(name))


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("headcount.serve"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"address": _address, "clock": clock, "doing": _doing}
    return environment


def _doing(live: Live) -> str:
    """Say in a line what a run does at the moment."""
    (ready, needed), (done, expected) = live.programs, live.steps
    why = f" ({live.why})" if live.why else ""
    if live.phase == "preparing":
        return "preparing"
    compiling = f"compiling {ready + 1} of {needed} programs" if ready < needed else ""
    if live.phase == "compiling":
        return f"{compiling or 'compiling'}{why}"
    left = "" if live.seconds_left is None else f", about {spoken_time(live.seconds_left)} left"
    words = f"training{why}: {done:,} of {expected:,} model-steps{left}"
    return f"{words}; {compiling}" if compiling else words
