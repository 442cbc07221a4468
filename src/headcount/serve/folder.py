"""What is known of one results folder: looked at often, which is cheap, and read when its files change, which is not.

A folder is read at most every second, for no more than a quarter of the time, and once for all viewers.
"""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import HeadcountError
from ..registry import reader_of
from ..store import FILE_NAME, Live, Progress, Store, read_live
from ..store.folders import WRITING, run_state
from ..store.live import State, how_it_ended

if TYPE_CHECKING:
    from ..report.document import Document
    from ..report.heads import HeadsRead

READ_SECONDS = 1.0
SHARE = 0.25
"""Of the time that reading a folder may take while a run changes it, and searching for folders."""

Status = Literal[
    "starting",
    "running",
    "silent",
    "in use",
    "killed",
    "stopped",
    "failed",
    "out of time",
    "finished",
    "unfinished",
    "damaged",
    "not read yet",
    "gone",
]
Stamp = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the files of a folder say without being read: `stamp` changes with the results."""

    there: bool = False
    stamp: Stamp = ()
    live: Live | None = None
    state: State | None = None
    changed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What was read of a folder whose stamp was this; `error` says why it could not be, and the rest is older then."""

    stamp: Stamp | None = None
    progress: tuple[Progress, ...] = ()
    documents: tuple["Document", ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ""

    @property
    def headlines(self) -> tuple[str, ...]:
        return tuple(document.headline for document in self.documents)

    @property
    def answers(self) -> tuple[str, ...]:
        """The headlines that say something already."""
        return tuple(each.headline for each in self.documents if _says_something(each))

    @property
    def unfinished(self) -> bool:
        """Whether an inspection has not ended."""
        readers = [(reader_of(each.study), each.facts) for each in self.progress]
        return any(reader is not None and not reader.is_complete(facts) for reader, facts in readers)

    @property
    def has_heads(self) -> bool:
        """Whether it is stored what the heads of a model read."""
        return bool(self.heads_read)

    @property
    def heads_read(self) -> "list[tuple[str, HeadsRead]]":
        """What the heads of models read, with the name of the experiment."""
        from ..report.heads import HeadsRead

        return [(document.title, read) for document in self.documents for read in document.blocks_of(HeadsRead)]


def _says_something(document: "Document") -> bool:
    answer = None if document.source is None else document.source.answer
    return answer is None or answer.kind != "none"


class Folder:
    """A results folder. `look` and `read` may be called from any thread."""

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name
        self.looked, self.contents = Look(), Contents()
        self._next_read = 0.0
        self._reading = threading.Lock()

    def look(self) -> bool:
        """Look at the files; returns whether anything is to be shown anew."""
        before, live = self.looked, read_live(self.path)
        stamp, changed = _stamp(self.path)
        state = run_state(self.path, live)
        there = bool(stamp) or live is not None
        changed = max(changed, live.beat if live is not None else 0.0)
        self.looked = Look(there=there, stamp=stamp, live=live, state=state, changed=changed)
        return self.looked != before

    @property
    def to_read(self) -> bool:
        """Whether the results have changed and enough time has passed; at once where no run goes on."""
        stale = bool(self.looked.stamp) and self.looked.stamp != self.contents.stamp
        return stale and (self.looked.state not in WRITING or time.monotonic() >= self._next_read)

    def read(self) -> None:
        """Read the results; what cannot be read leaves what was read before, and a sentence."""
        from ..report.reading import documents_of  # not needed to show that a run goes on

        with self._reading:
            stamp, before = self.looked.stamp, self.contents
            if stamp == before.stamp:
                return
            began = time.monotonic()
            try:
                with Store.open_for_reading(self.path) as store:
                    progress = tuple(store.progress())
                documents, warnings = documents_of(self.path)
                self.contents = Contents(
                    stamp=stamp, progress=progress, documents=tuple(documents), warnings=tuple(warnings)
                )
            except Exception as error:  # a page that shows many folders survives one that is damaged, however it is
                words = str(error) if isinstance(error, HeadcountError) else f"{type(error).__name__}: {error}"
                self.contents = Contents(
                    stamp=stamp, progress=before.progress, documents=before.documents, error=words or "unreadable"
                )
            self.took(time.monotonic() - began)

    def took(self, seconds: float) -> None:
        """Note the time that reading or drawing took, so that it is not too often."""
        self._next_read = max(self._next_read, time.monotonic() + max(READ_SECONDS, seconds / SHARE))

    @property
    def status(self) -> Status:
        """What a list says of the folder in a word or two."""
        live, state, contents = self.looked.live, self.looked.state, self.contents
        if not self.looked.there:
            return "gone"
        if state is not None and state != "ended":
            return "starting" if state == "running" and not self.looked.stamp else state
        if contents.error and contents.stamp == self.looked.stamp:
            return "damaged"
        if live is not None and live.ended in ("stopped", "failed"):
            return live.ended
        if live is not None and live.ended == "budget":
            return "out of time"
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
    def is_part(self) -> bool:
        """Whether some answer of the folder is from a part of the models asked for."""
        sources = [document.source for document in self.contents.documents]
        return any(each is not None and each.coverage is not None and not each.coverage.complete for each in sources)

    @property
    def done(self) -> int:
        return sum(each.done for each in self.contents.progress)

    @property
    def cells(self) -> int:
        return sum(each.cells for each in self.contents.progress)


def _stamp(path: Path) -> tuple[Stamp, float]:
    """Time and size of the results, and when they changed; empty where there are none."""
    try:
        status = os.stat(path / FILE_NAME)
    except OSError:
        return (), 0.0
    return (status.st_mtime_ns, status.st_size), status.st_mtime
