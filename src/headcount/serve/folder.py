"""One results folder: looked at often, which is cheap; read and drawn when its results change, which is not.

It is read at most every second, for no more than a quarter of the time while a run goes, and once for all viewers.
"""

import hashlib
import itertools
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


class Look(NamedTuple):
    """What the files of a folder say without being read: `stamp` changes with the results, and is empty without any."""

    stamp: tuple[int, ...] = ()
    live: Live | None = None
    state: State | None = None
    changed: float = 0.0


class Contents(NamedTuple):
    """What was read of a folder whose stamp was this; `error` says why it could not be, and the rest is older then."""

    stamp: tuple[int, ...] | None = None
    progress: tuple[Progress, ...] = ()
    documents: "tuple[Document, ...]" = ()
    warnings: tuple[str, ...] = ()
    error: str = ""

    @property
    def headlines(self) -> tuple[str, ...]:
        return tuple(document.headline for document in self.documents)

    @property
    def answers(self) -> tuple[str, ...]:
        """The headlines that say something already."""
        answers = [None if each.source is None else each.source.answer for each in self.documents]
        known = (found is None or found.kind != "none" for found in answers)
        return tuple(itertools.compress(self.headlines, known))

    @property
    def is_part(self) -> bool:
        """Whether some answer is from a part of the models asked for."""
        found = [each.source.coverage for each in self.documents if each.source is not None]
        return any(coverage is not None and not coverage.complete for coverage in found)

    @property
    def unfinished(self) -> bool:
        """Whether an inspection has not ended."""
        readers = [(reader_of(each.study), each.facts) for each in self.progress]
        return any(reader is not None and not reader.is_complete(facts) for reader, facts in readers)


class Folder:
    """A results folder. Any thread may call `look`; one thread calls `read` and `draw`.

    `page` is what was drawn last, and `version` names its content.
    """

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name
        self.looked, self.contents = Look(), Contents()
        self.page = self.version = ""
        self.looked_at = self._next_read = 0.0
        self._drawn: Contents | None = None

    def look(self) -> None:
        """Look at the files."""
        live = read_live(self.path)
        try:
            status = os.stat(self.path / FILE_NAME)
            stamp, changed = (status.st_mtime_ns, status.st_size), status.st_mtime
        except OSError:
            stamp, changed = (), 0.0
        changed = max(changed, 0.0 if live is None else live.beat)
        self.looked, self.looked_at = Look(stamp, live, run_state(self.path, live), changed), time.monotonic()

    @property
    def is_there(self) -> bool:
        return bool(self.looked.stamp) or self.looked.live is not None

    @property
    def to_read(self) -> bool:
        """Whether the results have changed and enough time has passed; at once where no run changes them."""
        stale = bool(self.looked.stamp) and self.looked.stamp != self.contents.stamp
        return stale and (self.looked.state not in WRITING or time.monotonic() >= self._next_read)

    @property
    def to_draw(self) -> bool:
        """Whether the page is older than the results."""
        return self.to_read or (self.contents.stamp is not None and self._drawn is not self.contents)

    def read(self) -> None:
        """Read the results; what cannot be read leaves what was read before, and a sentence."""
        if not self.to_read:
            return
        from ..report.reading import documents_of  # not needed to show that a run goes

        stamp, began = self.looked.stamp, time.monotonic()
        try:
            with Store.open_for_reading(self.path) as store:
                progress = tuple(store.progress())
            documents, warnings = documents_of(self.path)
            self.contents = Contents(stamp, progress, tuple(documents), tuple(warnings))
        except Exception as error:  # a page that shows many folders survives one that is damaged, however it is
            self.contents = self.contents._replace(stamp=stamp, error=_sentence(error))
        self._took(began)

    def draw(self) -> None:
        """Draw the page, and read before if that is to be done."""
        from .content import report_content  # takes a second once, which is no measure of how long drawing takes

        self.read()
        contents, began = self.contents, time.monotonic()
        if not self.to_draw:
            return
        try:
            self.page = report_content(contents.documents, contents.warnings)
        except Exception as error:
            self.page = report_content((), [f"This cannot be drawn: {_sentence(error)}"])
        self.version = hashlib.sha256(self.page.encode()).hexdigest()[:16]
        self._drawn = contents
        self._took(began)

    def _took(self, began: float) -> None:
        now = time.monotonic()
        self._next_read = max(self._next_read, now + max(READ_SECONDS, (now - began) / SHARE))

    @property
    def status(self) -> str:
        """What a list says of the folder in a word or two."""
        live, state, contents = self.looked.live, self.looked.state, self.contents
        if not self.is_there:
            return "gone"
        if state is not None and state != "ended":
            return "starting" if state == "running" and not self.looked.stamp else state
        if contents.error and contents.stamp == self.looked.stamp:
            return "damaged"
        if live is not None and live.ended in ("stopped", "failed", "budget"):
            return live.ended.replace("budget", "out of time")
        if contents.stamp is None:
            return "not read yet"
        return "unfinished" if self.done < self.cells or contents.unfinished else "finished"

    @property
    def words(self) -> str:
        """How the last run ended, where it did not end well; or that something else writes."""
        if self.looked.state == "in use":
            return "a process writes here that does not say how far it is"
        return "" if self.looked.live is None else how_it_ended(self.looked.live)

    @property
    def has_certificates(self) -> bool:
        """Whether there are any; a link to somewhere else is not followed."""
        path = self.path / CERTIFICATES
        return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()

    @property
    def done(self) -> int:
        return sum(each.done for each in self.contents.progress)

    @property
    def cells(self) -> int:
        return sum(each.cells for each in self.contents.progress)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, HeadcountError) else f"{type(error).__name__}: {error}"
