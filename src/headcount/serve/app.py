"""The addresses that are served, all behind the guard, and the events by which open pages follow a run."""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..store.folders import results_below
from .folder import SHARE, Folder
from .guard import Guard, folder_path
from .pages import rendered

LOOK_SECONDS = 0.5
LIST_SECONDS = 2.0
"""At least, between two searches of the tree of folders; longer where one takes long."""
DRAW_SECONDS = 2.0
"""A page that takes longer to draw comes without its results, and fetches them when they are drawn."""
SILENT_SECONDS = 15.0
"""After so long without an event a comment is sent, by which a viewer that is gone is noticed."""
NICENESS = 5
"""Of the thread that reads and draws, which gives way to training. A larger one starved on busy cores."""

News = Callable[[], Awaitable[dict[str, str]]]
"""What an open page shows by now: contents by the name of their event."""


class Site:
    """Answers requests about the folders below `root`."""

    def __init__(self, root: Path, token: str):
        self.root, self.base, self._title = Path(root).resolve(), f"/{token}", str(root)
        self._closed = False
        self._folders: dict[str, Folder] = {}
        self._names: tuple[str, ...] = ()
        self._next_search = 0.0
        self._work: dict[str, asyncio.Future[None]] = {}
        self._reader = ThreadPoolExecutor(1, "read", initializer=_give_way)

    def close(self, wait: bool = False) -> None:
        """End all streams and threads; with `wait`, return when the threads have ended."""
        self._closed = True
        self._reader.shutdown(wait=wait, cancel_futures=True)

    async def index(self, request: Request) -> Response:
        """List all results folders; lead to the only one where the folder that is served is one itself."""
        self._next_search = 0.0
        rows = await self._list_news()
        if self._names == ("",):
            return RedirectResponse(f"{self.base}/folder/", status_code=307)
        return self._page("list", self._title, "events", rows=Markup(rows["list"]))

    async def folder(self, request: Request) -> Response:
        """Show a results folder."""
        folder = await self._requested(request)
        drawing = self._update(folder, draw=True)
        if drawing is not None:
            await asyncio.wait([drawing], timeout=DRAW_SECONDS)
        now, name = Markup(self._now(folder)), folder.name or self._title
        return self._page("folder", name, f"events/{folder.name}", folder=folder, now=now)

    async def list_events(self, request: Request) -> Response:
        return self._stream(self._list_news)

    async def folder_events(self, request: Request) -> Response:
        name = (await self._requested(request)).name
        return self._stream(lambda: self._folder_news(name))

    async def compare(self, request: Request) -> Response:
        """Show two folders side by side; the choice of them where they are not given."""
        await self._list_news()
        asked = [request.query_params.get(place) for place in ("first", "second")]
        chosen = [] if None in asked else [name or "" for name in asked]
        folders = [await self._known(name) for name in chosen]
        for folder in folders:
            await (self._update(folder, draw=False) or asyncio.sleep(0))

        def drawn() -> str:
            from ..report.compare import comparison_document
            from ..report.render.html import page_content

            named = {folder.name or folder.path.name: folder.contents.documents for folder in folders}
            compared = [comparison_document(named)] if any(named.values()) else []
            nothing = ["Neither folder has a finished model yet."] if named and not compared else []
            return page_content(compared, folder="", warnings=nothing)

        content, choices = Markup(await self._away(drawn)), [*zip(("first", "second"), chosen or ["", ""], strict=True)]
        return self._page("compare", "Compare two folders", names=self._names, choices=choices, content=content)

    async def certificates(self, request: Request) -> Response:
        """Show the models that were searched for collisions, and their pairs."""
        from .certificates import certificates_content

        folder = await self._requested(request)
        path, wanted = folder.path, folder.has_certificates
        content = Markup(await self._away(lambda: certificates_content(path)) if wanted else "")
        if not content:
            raise HTTPException(404, f"No certificates: `headcount collide {folder.path}` finds some.")
        title = f"Sequences that the models of {folder.name or self._title} cannot tell apart"
        return self._page("frame", title, content=content)

    async def error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        words = error.detail if isinstance(error, HTTPException) else f"{type(error).__name__}: {error}"
        title = "Nothing here" if status == 404 else "This failed"
        content = Markup("<h1>{}</h1><p>{}</p>").format(title, words)
        return self._page("frame", title, status=status, content=content)

    def _page(self, template: str, title: str, events: str = "", *, status: int = 200, **content: Any) -> Response:
        """Return a page; `events` is the address of its events, where it has some."""
        return HTMLResponse(self._rendered(template, title=title, events=events, **content), status)

    def _rendered(self, template: str, **content: Any) -> str:
        return rendered(template, base=self.base, root=self._title, **content)

    def _now(self, folder: Folder) -> str:
        """Return what happens in a folder at the moment."""
        return self._rendered("now", folder=folder)

    async def _requested(self, request: Request) -> Folder:
        return await self._known(request.path_params["name"].strip("/"))

    async def _known(self, name: str, max_age: float = 0.0) -> Folder:
        """Return the folder of a name, looked at at most `max_age` seconds ago. One that vanished stays known."""
        folder = self._folders.get(name)
        if folder is None and (path := folder_path(self.root, name)) is not None:
            folder = Folder(path, name)
        if folder is not None and (max_age == 0 or time.monotonic() - folder.looked_at >= max_age):
            await asyncio.to_thread(folder.look)
        if folder is None or (name not in self._folders and not folder.is_there):
            raise HTTPException(404, "There is no results folder of this name.")
        return self._folders.setdefault(name, folder)

    async def _away(self, work: Callable[[], str]) -> str:
        """Do what may take seconds away from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)

    def _update(self, folder: Folder, *, draw: bool) -> "asyncio.Future[None] | None":
        """Have a folder read, and drawn, if that is to be done; one such work at a time for each."""
        if folder.name not in self._work and (folder.to_draw if draw else folder.to_read):
            work = asyncio.get_running_loop().run_in_executor(self._reader, folder.update, draw)
            work.add_done_callback(lambda _: self._work.pop(folder.name))
            self._work[folder.name] = work
        return self._work.get(folder.name)

    async def _folder_news(self, name: str) -> dict[str, str]:
        folder = await self._known(name, LOOK_SECONDS)
        self._update(folder, draw=True)
        return {"now": self._now(folder), "report": folder.version}

    async def _list_news(self) -> dict[str, str]:
        """Search the tree, look at every folder, and have those read that changed, the newest first."""
        began = time.monotonic()
        if began >= self._next_search:
            found = await asyncio.to_thread(results_below, self.root)
            self._names = tuple("" if path == self.root else path.relative_to(self.root).as_posix() for path in found)
            self._next_search = time.monotonic() + max(LIST_SECONDS, (time.monotonic() - began) / SHARE)
        folders: list[Folder] = []
        for name in self._names:
            with contextlib.suppress(HTTPException):  # it vanished since
                folders.append(await self._known(name, LOOK_SECONDS))
        folders.sort(key=lambda folder: (-folder.changed, folder.name))
        for folder in folders:
            self._update(folder, draw=False)
        return {"list": self._rendered("rows", folders=folders, gone=not self.root.is_dir())}

    def _stream(self, news: News) -> Response:
        return StreamingResponse(self._follow(news), media_type="text/event-stream")

    async def _follow(self, news: News) -> AsyncIterator[bytes]:
        """Send one viewer what is newest now, then what changes. A viewer that reads slowly misses what is older."""
        sent: dict[str, str] = {}
        last = time.monotonic()
        yield b"retry: 1000\n\n"
        while not self._closed:
            for name, content in (await news()).items():
                if sent.get(name) != content:
                    sent[name], last = content, time.monotonic()
                    yield f"event: {name}\ndata: {json.dumps(content)}\n\n".encode()
            if time.monotonic() - last > SILENT_SECONDS:
                last = time.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(LOOK_SECONDS)


def app_of(root: Path, token: str, port: int) -> tuple[Guard, Site]:
    """Return the application that serves the results folders below `root`, and its site, to be closed in the end."""
    site = Site(root, token)
    routes = [
        Route("/", site.index),
        Route("/folder/{name:path}", site.folder),
        Route("/events", site.list_events),
        Route("/events/{name:path}", site.folder_events),
        Route("/compare", site.compare),
        Route("/certificates/{name:path}", site.certificates),
        Mount("/assets", StaticFiles(packages=[("headcount.report", "assets"), ("headcount.serve", "assets")])),
    ]
    handlers = {HTTPException: site.error, Exception: site.error}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token, port), site


def _give_way() -> None:
    """Lower the priority of this thread."""
    if sys.platform == "linux":  # elsewhere priorities are those of processes
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
