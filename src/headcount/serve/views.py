"""Pages and fragments of pages. Templates of the report are used as they are; every word is escaped."""

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..answer.words import decimal
from ..report.render.words import spoken_time
from ..store import Live
from ..store.live import clock
from .certificates import has_certificates
from .curves import drawn_curves
from .folder import Folder

if TYPE_CHECKING:
    from ..report.document import Document

ASSETS = {
    "report.css": ("headcount.report", "page.css", "text/css"),
    "report.js": ("headcount.report", "page.js", "text/javascript"),
    "live.css": ("headcount.serve", "live.css", "text/css"),
    "live.js": ("headcount.serve", "live.js", "text/javascript"),
}


class Views:
    """Pages whose links begin with `base`, the token's part of every address; `root` names what is served."""

    def __init__(self, base: str, root: str):
        self.base, self.root = base, root

    def page(self, template: str, **content: Any) -> str:
        """A whole page."""
        return self._render(f"{template}.html.j2", **content)

    def list_rows(self, folders: Iterable[Folder], *, gone: bool) -> Markup:
        """The folders, the one that changed last first."""
        newest = sorted(folders, key=lambda folder: (-folder.looked.changed, folder.name))
        return Markup(self._render("rows.html.j2", folders=newest, gone=gone))

    def now(self, folder: Folder) -> Markup:
        """What goes on in a folder at the moment."""
        live = folder.looked.live
        drawn = drawn_curves(live.curves) if live is not None and folder.looked.state == "running" else None
        links = {"certificates": has_certificates(folder.path), "heads": folder.contents.has_heads}
        return Markup(self._render("now.html.j2", folder=folder, drawn=drawn, **links))

    def prepare(self) -> None:
        """Import what draws sections: it takes a second, once, which is no measure of how long drawing takes."""

    def documents(self, documents: "Sequence[Document]") -> Markup:
        """What `headcount report` shows of a folder."""
        if not documents:
            return Markup()
        from ..report.render.html import document_html

        drawn = [Markup(document_html(document, place)) for place, document in enumerate(documents, start=1)]
        return Markup(_shown("\n".join(drawn)))

    def comparison(self, folders: "Mapping[str, Sequence[Document]]") -> Markup:
        """The documents of several folders side by side."""
        from ..report.compare import NAMES, compared, comparison_chart, comparison_grids, differing, named_documents
        from ..report.render.html import figure_html, grids_html

        comparison = compared(named_documents(folders))
        tables = [
            {
                "figure": Markup(figure_html(comparison_chart(table), f"compared{place}")),
                "grids": Markup(grids_html(comparison_grids(table))),
                "marked": table.values(NAMES)[0] if differing(table).any() else "",
            }
            for place, table in enumerate(comparison.tables)
        ]
        return Markup(self._render("comparison.html.j2", comparison=comparison, tables=tables))

    def _render(self, template: str, **content: Any) -> str:
        return _shown(_environment().get_template(template).render(base=self.base, root=self.root, **content))


def asset(name: str) -> tuple[str, str] | None:
    """The content and the type of a file of ours."""
    if name not in ASSETS:
        return None
    package, file, kind = ASSETS[name]
    content = (files(package) / "assets" / file).read_text(encoding="utf-8")
    return content, f"{kind}; charset=utf-8"


def _shown(page: str) -> str:
    """What can be sent: bytes of a folder's name that are not UTF-8 are question marks."""
    return page.encode(errors="replace").decode()


def _address(name: str) -> str:
    return quote(os.fsencode(name))


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=ChoiceLoader([PackageLoader("headcount.serve"), PackageLoader("headcount.report")]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"address": _address, "clock": clock, "doing": _doing, "error": decimal}
    parts: Any = environment.get_template("parts.html.j2").module
    environment.globals |= {name: getattr(parts, name) for name in ("status", "progress", "curves", "heatmap")}
    return environment


def _doing(live: Live) -> str:
    """What a run does at the moment, in a line."""
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
