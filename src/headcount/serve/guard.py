"""Who is let in, and to what: a browser on this machine that knows the address, to results folders below one parent.

The server listens on the loopback interface alone. A page from elsewhere that has its own name lead here (DNS
rebinding) is refused by its Host header; one that guesses does not know the token. Nothing can be changed through the
page, so only GET is answered, and no header lets another origin read the answers.
"""

import os
import secrets
from pathlib import Path
from urllib.parse import unquote_to_bytes

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_ADDRESS = 2000
HEADERS = {
    # Charts have style attributes; sheets and scripts are files of ours. As images a folder's pictures run nothing.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
REASONS = {
    400: "This page is served to 127.0.0.1 alone.",
    404: "There is nothing here. The address, with its token, is printed where `headcount serve` was started.",
    405: "Only GET is answered.",
    414: "The address is too long.",
}


def folder_path(root: Path, name: str) -> Path | None:
    """Return where a name leads below a resolved root, "" to itself; None if it leads out by `..`, a path or a link."""
    parts = name.split("/") if name else []
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        return None
    try:
        path = root.joinpath(*parts)
        return path if path.resolve().is_relative_to(root) else None
    except (OSError, ValueError, RuntimeError):  # too long a name, or a link that leads to itself
        return None


class Guard:
    """Lets a request through to `app` if its Host, token and method are right, with the token taken off its path."""

    def __init__(self, app: ASGIApp, token: str, port: int):
        self.app, self.token = app, token
        self.hosts = {f"{host}:{port}".encode() for host in ("127.0.0.1", "localhost")}
        self.hosts |= {b"127.0.0.1", b"localhost"} if port == 80 else set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # a lifespan: the server takes no websockets
            await self.app(scope, receive, send)
            return
        app, status, path = self.app, *self._judged_request(scope)
        if status:
            app = PlainTextResponse(f"{REASONS[status]}\n", status, {"allow": "GET"} if status == 405 else None)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await app({**scope, "path": path, "raw_path": os.fsencode(path), "root_path": ""}, receive, send_guarded)

    def _judged_request(self, scope: Scope) -> tuple[int, str]:
        """Return the status to refuse a request with, or 0 and the path behind the token."""
        hosts = [value.lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return 400, ""
        raw = scope.get("raw_path") or b""
        if len(raw) + len(scope.get("query_string", b"")) > MAX_ADDRESS:
            return 414, ""
        # As the system decodes file names: folders whose names are not UTF-8 have addresses, too.
        path = os.fsdecode(unquote_to_bytes(raw)) if raw else scope["path"]
        token, slash, rest = path.removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(os.fsencode(token), self.token.encode()):
            return 404, ""
        return (0, f"/{rest}") if scope["method"] == "GET" else (405, "")
