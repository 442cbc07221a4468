"""The pages that are served: what `headcount report` and `compare` show, in a frame that follows a run."""

import functools
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..report.render.words import spoken_time
from ..store import Live
from ..store.live import clock
from .folder import Folder

if TYPE_CHECKING:
    from .certificates import CertificatesPage

ASSETS = {
    "page.css": ("headcount.report", "text/css"),
    "page.js": ("headcount.report", "text/javascript"),
    "live.css": ("headcount.serve", "text/css"),
    "live.js": ("headcount.serve", "text/javascript"),
}


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
        return self._render("now", folder=folder, certificates=folder.has_certificates)

    def compare(self, names: Sequence[str], chosen: Sequence[str], content: str) -> str:
        """Return two folders side by side below the choice of them."""
        known = {name: name or self.root for name in names}
        first, second = chosen or ("", "")
        choices = [("first folder", "first", known, first), ("second folder", "second", known, second)]
        return self._choice("Compare two folders", choices, content)

    def certificates(self, folder: Folder, shown: "CertificatesPage") -> str:
        """Return the certificates of a folder, below the choice of a pair."""
        (key, question), title = (
            shown.chosen,
            f"Sequences that the models of {folder.name or self.root} cannot tell apart",
        )
        choices = [("model", "key", shown.models, key), ("pair", "where", shown.questions, question)]
        return self._choice(title, choices, shown.content)

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
