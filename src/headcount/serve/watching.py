"""Follows the folders that someone looks at, and says to all viewers what has changed.

Looking at a folder (a few stat calls and one small file) is done twice per second. Reading and drawing is done once for
all viewers, by one thread; that of a folder in which a run goes on by another, which gives way to training.
"""

import asyncio
import contextlib
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from markupsafe import Markup

from ..store.folders import WRITING
from .folder import SHARE, Contents, Folder
from .folders import Parent
from .topic import Topic
from .views import Views

Result = TypeVar("Result")

LOOK_SECONDS = 0.5
LIST_SECONDS = 2.0
"""At least, between two searches of the tree of folders; longer where one takes long."""
NICENESS = 5
"""A larger one starved on busy cores: nothing was drawn for a minute."""


@dataclass(frozen=True)
class Drawn:
    """The sections of a folder as HTML. `version` names their content."""

    contents: Contents
    html: Markup
    version: str


class Watching:
    """The state of the server: folders by name, and a topic for each that is followed."""

    def __init__(self, parent: Parent, views: Views):
        self.parent, self.views = parent, views
        self.names: tuple[str, ...] = ()
        self.list_topic = Topic()
        self.topics: dict[str, Topic] = {}
        self._folders: dict[str, Folder] = {}
        self._drawn: dict[str, Drawn] = {}
        self._tasks: set[asyncio.Task] = set()
        self._reading: set[str | None] = set()
        self._lookers = ThreadPoolExecutor(2, "look")
        self._reader = ThreadPoolExecutor(1, "read")
        self._yielding_reader = ThreadPoolExecutor(1, "read running", initializer=_give_way)
        self._drawing = threading.Lock()  # what draws text keeps one state for all threads

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        next_list = 0.0
        while True:
            for name in [name for name, topic in self.topics.items() if topic.viewers]:
                with contextlib.suppress(Exception):  # one folder does not keep the others from being followed
                    await self._follow(name)
            began = time.monotonic()
            if self.list_topic.viewers and began >= next_list:
                with contextlib.suppress(Exception):
                    await self.refresh_list()
                ended = time.monotonic()
                next_list = ended + max(LIST_SECONDS, (ended - began) / SHARE)
            await asyncio.sleep(LOOK_SECONDS)

    def close(self, wait: bool = False) -> None:
        """End all streams and threads; with `wait`, return when they have ended."""
        for topic in (self.list_topic, *self.topics.values()):
            topic.close()
        for pool in (self._lookers, self._reader, self._yielding_reader):
            pool.shutdown(wait=wait, cancel_futures=True)

    def folder(self, name: str) -> Folder | None:
        """The folder of a name; None where it is outside, or was never a results folder. One that vanished stays."""
        path = self.parent.path(name)
        if path is None:
            return None
        if name not in self._folders:
            folder = Folder(path, name)
            folder.look()
            if not folder.looked.there:
                return None
            self._folders[name] = folder
        return self._folders[name]

    def topic(self, name: str) -> Topic:
        return self.topics.setdefault(name, Topic())

    @property
    def viewers(self) -> int:
        return self.list_topic.viewers + sum(topic.viewers for topic in self.topics.values())

    async def look(self, name: str) -> Folder | None:
        """The folder of a name, looked at just now."""
        folder = await self._in(self._lookers, self.folder, name)
        if folder is not None:
            await self._in(self._lookers, folder.look)
        return folder

    def now(self, folder: Folder) -> Markup:
        return self.views.now(folder)

    def drawn(self, folder: Folder) -> Drawn | None:
        """What was drawn of the sections of a folder last."""
        return self._drawn.get(folder.name)

    async def draw(self, folder: Folder) -> Drawn:
        """The sections of a folder, read and drawn if that is to be done."""
        await self._in(self._reader, self.views.prepare)  # once, and not by the thread that gives way
        await self._in(self._reader_of(folder), self._read_and_draw, folder)
        return self._drawn[folder.name]

    async def read(self, folder: Folder) -> Contents:
        """What a folder holds, read if that is to be done."""
        await self._in(self._reader_of(folder), folder.read)
        return folder.contents

    def _reader_of(self, folder: Folder) -> ThreadPoolExecutor:
        return self._yielding_reader if folder.looked.state in WRITING else self._reader

    async def compare(self, folders: list[Folder]) -> Markup:
        """The sections of several folders side by side."""
        by_name = {folder.name or folder.path.name: (await self.read(folder)).documents for folder in folders}

        def drawn() -> Markup:
            with self._drawing:
                return self.views.comparison(by_name)

        return await self._in(self._reader, drawn)

    async def refresh_list(self) -> Markup:
        """Search the tree, look at every folder, and have those read that changed."""
        self.names = await self._in(self._lookers, self.parent.results)
        folders = [folder for name in self.names if (folder := await self.look(name)) is not None]
        rows = self._rows(folders)
        if None not in self._reading and any(folder.to_read for folder in folders):
            self._spawn(None, self._read_list(folders))
        return rows

    async def _read_list(self, folders: list[Folder]) -> None:
        # One after the other: whoever opens a folder's page waits for one of them at most.
        for folder in sorted(folders, key=lambda folder: -folder.looked.changed):
            if folder.to_read:
                await self.read(folder)
                self._rows(folders)

    def _rows(self, folders: list[Folder]) -> Markup:
        gone = not os.path.isdir(self.parent.root)
        rows = self.views.list_rows(folders, gone=gone)
        self.list_topic.publish("list", rows)
        return rows

    async def _follow(self, name: str) -> None:
        folder = await self.look(name)
        if folder is None:
            return
        topic, drawn = self.topic(name), self._drawn.get(name)
        topic.publish("now", self.now(folder))
        if drawn is not None:
            topic.publish("sections", drawn.version)
        undrawn = bool(folder.looked.stamp) and (drawn is None or drawn.contents.stamp != folder.looked.stamp)
        if name not in self._reading and (folder.to_read or (undrawn and folder.contents.stamp == folder.looked.stamp)):
            self._spawn(name, self.draw(folder))

    def _read_and_draw(self, folder: Folder) -> None:
        if folder.to_read or folder.contents.stamp is None:
            folder.read()
        contents, drawn = folder.contents, self._drawn.get(folder.name)
        if drawn is not None and drawn.contents is contents:
            return
        began = time.monotonic()
        try:
            with self._drawing:
                html = self.views.documents(contents.documents)
        except Exception as error:  # a page that shows many folders survives one that cannot be drawn
            html = Markup('<p class="warning">{}</p>').format(
                f"This cannot be drawn ({type(error).__name__}: {error})."
            )
        self._drawn[folder.name] = Drawn(contents, html, hashlib.sha256(html.encode()).hexdigest()[:16])
        folder.took(time.monotonic() - began)

    def _spawn(self, name: str | None, work: Coroutine[Any, Any, Any]) -> None:
        """Have something done meanwhile, one for each name at a time."""
        self._reading.add(name)
        task = asyncio.create_task(work)
        self._tasks.add(task)

        def done(task: asyncio.Task) -> None:
            self._tasks.discard(task)
            self._reading.discard(name)
            if not task.cancelled():
                task.exception()  # seen; the next look tries again

        task.add_done_callback(done)

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


def _give_way() -> None:
    """Lower the priority of this thread."""
    if sys.platform != "linux":  # elsewhere priorities are those of processes
        return
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
