"""One results folder: looked at often, which is cheap; read and drawn when its results change, which is not.

It is read at most every second, for no more than a quarter of the time while a run goes, and once for all viewers.
"""

import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import HeadcountError
from ..registry import reader_of
from ..store import FILE_NAME, Live, Progress, Store, read_live
from ..store.folders import WRITING, run_state
from ..store.live import State, how_it_ended

if TYPE_CHECKING:
    from ..report.document import Document

READ_SECONDS = 1.0
SHARE = 0.25
"""Of the time that reading a folder may take while a run changes it, and searching for folders."""
CERTIFICATES = Path("collisions", "certificates.json")
"""What `headcount collide` writes into a folder."""


class Contents(NamedTuple):
    """Results as of a `stamp`; `error` says why they could not be read, and the rest is older then."""

    stamp: tuple[int, ...] = ()
    progress: tuple[Progress, ...] = ()
    documents: "tuple[Document, ...]" = ()
    warnings: tuple[str, ...] = ()
    error: str = ""

    @property
    def headlines(self) -> tuple[str, ...]:
        return tuple(document.headline for document in self.documents)

    @property
    def known_headlines(self) -> tuple[str, ...]:
        """The headlines that say something already."""
        found = [(each.headline, None if each.source is None else each.source.answer) for each in self.documents]
        return tuple(headline for headline, answer in found if answer is None or answer.kind != "none")

    @property
    def is_part(self) -> bool:
        """Whether some answer is from a part of the models asked for."""
        found = [each.source.coverage for each in self.documents if each.source is not None]
        return any(coverage is not None and not coverage.complete for coverage in found)

    @property
    def done(self) -> int:
        return sum(each.done for each in self.progress)

    @property
    def cells(self) -> int:
        return sum(each.cells for each in self.progress)

    @property
    def is_complete(self) -> bool:
        """Whether every model is trained, and every inspection has ended."""
        readers = [(reader_of(each.study), each.facts) for each in self.progress]
        ended = all(reader is None or reader.is_complete(facts) for reader, facts in readers)
        return ended and self.done >= self.cells


class Folder:
    """A results folder. Any thread may call `look`; one thread calls `update`.

    `page` is what was drawn last, and `version` names its content. `stamp` changes with the results, and is empty
    without any.
    """

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name
        self.stamp: tuple[int, ...] = ()
        self.live: Live | None = None
        self.state: State | None = None
        self.changed = self.looked_at = self._next_read = 0.0
        self.page = self.version = ""
        self.contents = self._drawn = Contents()

    def look(self) -> None:
        """Look at the files without reading results."""
        live = read_live(self.path)
        try:
            status = os.stat(self.path / FILE_NAME)
            self.stamp, changed = (status.st_mtime_ns, status.st_size), status.st_mtime
        except OSError:
            self.stamp, changed = (), 0.0
        self.live, self.state = live, run_state(self.path, live)
        self.changed, self.looked_at = max(changed, 0.0 if live is None else live.beat), time.monotonic()

    @property
    def is_there(self) -> bool:
        return bool(self.stamp) or self.live is not None

    @property
    def has_certificates(self) -> bool:
        """Whether there are any; a link to somewhere else is not followed."""
        path = self.path / CERTIFICATES
        return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()

    @property
    def to_read(self) -> bool:
        """Whether the results have changed and enough time has passed; at once where no run changes them."""
        stale = self.stamp not in ((), self.contents.stamp)
        return stale and (self.state not in WRITING or time.monotonic() >= self._next_read)

    @property
    def to_draw(self) -> bool:
        """Whether the page is older than the results."""
        return self.to_read or self._drawn is not self.contents

    def update(self, draw: bool) -> None:
        """Read the results if they changed, and draw the page of what was read."""
        if draw:
            from ..report.render.html import page_content  # takes a second once, which is no time of drawing
        began = time.monotonic()
        if self.to_read:
            self.contents = self._read_results(self.stamp)
        if draw and self._drawn is not self.contents:
            contents = self.contents
            try:
                self.page = page_content(contents.documents, folder="", warnings=contents.warnings)
            except Exception as error:
                self.page = page_content((), folder="", warnings=[f"This cannot be drawn: {_error_words(error)}"])
            self.version = hashlib.sha256(self.page.encode(errors="replace")).hexdigest()[:16]
            self._drawn = contents
        now = time.monotonic()
        self._next_read = max(self._next_read, now + max(READ_SECONDS, (now - began) / SHARE))

    def _read_results(self, stamp: tuple[int, ...]) -> Contents:
        """Return the results; where they cannot be read, what was read before and a sentence."""
        from ..report.reading import documents_of  # not needed to show that a run goes

        try:
            with Store.open_for_reading(self.path) as store:
                progress = tuple(store.progress())
            documents, warnings = documents_of(self.path)
            return Contents(stamp, progress, tuple(documents), tuple(warnings))
        except Exception as error:  # a page that shows many folders survives one that is damaged, however it is
            return self.contents._replace(stamp=stamp, error=_error_words(error))

    @property
    def status(self) -> str:
        """What a list says of the folder in a word or two."""
        if not self.is_there:
            return "gone"
        if self.state is not None and self.state != "ended":
            return "starting" if self.state == "running" and not self.stamp else self.state
        if self.contents.error and self.contents.stamp == self.stamp:
            return "damaged"
        if self.live is not None and self.live.ended in ("stopped", "failed", "budget"):
            return self.live.ended.replace("budget", "out of time")
        if not self.contents.stamp:
            return "not read yet"
        return "finished" if self.contents.is_complete else "unfinished"

    @property
    def run_words(self) -> str:
        """How the last run ended, where it did not end well; or that something else writes."""
        if self.state == "in use":
            return "a process writes here that does not say how far it is"
        return "" if self.live is None else how_it_ended(self.live)


def _error_words(error: Exception) -> str:
    return str(error) if isinstance(error, HeadcountError) else f"{type(error).__name__}: {error}"
