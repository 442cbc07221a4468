"""The pages and their addresses, all behind the guard."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ..errors import InputError
from . import certificates as stored
from .folder import Folder
from .folders import Parent
from .guard import Guard
from .topic import MAX_VIEWERS
from .views import Views, asset
from .watching import Watching


class Site:
    """Answers requests about the folders below `root`."""

    def __init__(self, root: Path, token: str):
        self.base = f"/{token}"
        self.parent = Parent(root)
        self.views = Views(self.base, str(root))
        self.watching = Watching(self.parent, self.views)

    async def index(self, request: Request) -> Response:
        """All results folders; straight to the only one where the folder that is served is one itself."""
        rows = await self.watching.refresh_list()
        if self.watching.names == ("",):
            return RedirectResponse(f"{self.base}/folder/", status_code=307)
        return HTMLResponse(self.views.page("list", rows=rows))

    async def folder(self, request: Request) -> Response:
        """A results folder; its sections come later where they are not drawn yet."""
        folder = await self._folder(request)
        drawn = self.watching.drawn(folder)
        sections = {"sections": drawn.html if drawn else "", "version": drawn.version if drawn else ""}
        return HTMLResponse(self.views.page("folder", folder=folder, now=self.watching.now(folder), **sections))

    async def sections(self, request: Request) -> Response:
        """The sections of a folder, as a part of its page."""
        drawn = await self.watching.draw(await self._folder(request))
        return HTMLResponse(drawn.html, headers={"x-version": drawn.version})

    async def list_events(self, request: Request) -> Response:
        return self._stream(self.watching.list_topic.follow())

    async def folder_events(self, request: Request) -> Response:
        folder = await self._folder(request)
        return self._stream(self.watching.topic(folder.name).follow())

    async def compare(self, request: Request) -> Response:
        """Two folders side by side; the choice of them where they are not given."""
        await self.watching.refresh_list()
        chosen = [request.query_params.get(which) for which in ("first", "second")]
        shown = ""
        if None not in chosen:
            shown = await self.watching.compare([await self._known(name or "") for name in chosen])
        return HTMLResponse(self.views.page("compare", names=self.watching.names, chosen=chosen, comparison=shown))

    async def certificates(self, request: Request) -> Response:
        """The models that were searched for collisions, and one of their pairs."""
        folder = await self._folder(request)
        return HTMLResponse(await asyncio.to_thread(self._certificates, folder, request))

    def _certificates(self, folder: Folder, request: Request) -> str:
        """The page, read and drawn away from the event loop: it may take seconds."""
        try:
            models = stored.certified(folder.path)
        except InputError as error:
            raise HTTPException(413, str(error)) from error
        if not models:
            raise HTTPException(404, f"No certificates: `headcount collide {folder.path}` finds some.")
        left_out, models = max(0, len(models) - stored.MAX_MODELS), models[: stored.MAX_MODELS]
        asked = request.query_params.get("key", ""), request.query_params.get("where", "")
        shown = [(model, pair) for model in models for pair in model.pairs.values()]
        chosen = next((each for each in shown if (each[0].key, each[1].question) == asked), shown[0] if shown else None)
        drawings = stored.pictures(folder.path)
        picture = ""
        if chosen is not None and chosen[1].question == "anywhere":  # the pairs that are drawn
            ending = f"-{chosen[0].key[:6]}.svg"
            picture = next((name for name in drawings if name.startswith("pair-") and name.endswith(ending)), "")
        floors = [name for name in drawings if name.startswith("floor-")]
        content = {"models": models, "left_out": left_out, "chosen": chosen, "picture": picture, "floors": floors}
        content |= {"questions": stored.QUESTIONS, "most": stored.MAX_NUMBERS}
        return self.views.page("certificates", folder=folder, **content)

    async def heads(self, request: Request) -> Response:
        """What one head reads of one example."""
        folder = await self._folder(request)
        contents = await self.watching.read(folder)
        reads = contents.heads_read
        if not reads:
            raise HTTPException(404, "It is not stored what the heads of a model here read.")
        experiment = _choice(request, "experiment", len(reads))
        read = reads[experiment][1]
        chosen = {"head": _choice(request, "head", len(read.heads))}
        chosen |= {"example": _choice(request, "example", len(read.examples)), "experiment": experiment}
        choices = [title for title, _ in reads]
        return HTMLResponse(self.views.page("heads", folder=folder, read=read, choices=choices, **chosen))

    async def picture(self, request: Request) -> Response:
        folder = await self._folder(request)
        content = await asyncio.to_thread(stored.picture, folder.path, request.query_params.get("name", ""))
        if content is None:
            raise HTTPException(404, "There is no such picture.")
        # Someone else's file: shown as an image, it may run nothing.
        policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
        return Response(content, media_type="image/svg+xml", headers=policy)

    async def assets(self, request: Request) -> Response:
        file = asset(request.path_params["name"])
        if file is None:
            raise HTTPException(404, "There is no such file.")
        content, kind = file
        return Response(content, headers={"content-type": kind})

    async def error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        words = error.detail if isinstance(error, HTTPException) else f"{type(error).__name__}: {error}"
        page = self.views.page("message", heading="Nothing here" if status == 404 else "This failed", words=words)
        return HTMLResponse(page, status_code=status)

    async def _folder(self, request: Request) -> Folder:
        return await self._known(request.path_params["name"])

    async def _known(self, name: str) -> Folder:
        folder = await self.watching.look(name.strip("/"))
        if folder is None:
            raise HTTPException(404, "There is no results folder of this name.")
        return folder

    def _stream(self, events: AsyncIterator[bytes]) -> Response:
        if self.watching.viewers >= MAX_VIEWERS:
            raise HTTPException(503, f"{MAX_VIEWERS} pages are open already.")
        return StreamingResponse(events, media_type="text/event-stream")


def _choice(request: Request, name: str, count: int) -> int:
    """Which of `count` was chosen; the first where the address says none of them."""
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 6 and int(given) < count else 0


def app_of(root: Path, token: str, port: int) -> tuple[Guard, Watching]:
    """The application that serves the results folders below `root`, and what it watches them with."""
    site = Site(root, token)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watcher = asyncio.create_task(site.watching.run())
        try:
            yield
        finally:
            watcher.cancel()
            site.watching.close()

    routes = [
        Route("/", site.index),
        Route("/folder/{name:path}", site.folder),
        Route("/sections/{name:path}", site.sections),
        Route("/events", site.list_events),
        Route("/events/{name:path}", site.folder_events),
        Route("/compare", site.compare),
        Route("/certificates/{name:path}", site.certificates),
        Route("/heads/{name:path}", site.heads),
        Route("/picture/{name:path}", site.picture),
        Route("/assets/{name}", site.assets),
    ]
    handlers = {HTTPException: site.error, Exception: site.error}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    return Guard(app, token, port), site.watching
