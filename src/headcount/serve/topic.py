"""Server-sent events: what is newest goes to every viewer, and a viewer that reads slowly misses what is older."""

import asyncio
import json
from collections.abc import AsyncIterator

SILENT_SECONDS = 15.0
"""After so long without an event a comment is sent, by which a viewer that is gone is noticed."""
MAX_VIEWERS = 200


class Topic:
    """Something that is followed. Events have names; of each name only the newest is kept."""

    def __init__(self):
        self._newest: dict[str, tuple[int, str]] = {}
        self._count = 0
        self._wakers: set[asyncio.Event] = set()
        self._closed = False

    @property
    def viewers(self) -> int:
        return len(self._wakers)

    def publish(self, name: str, content: str) -> None:
        """Send this to every viewer, unless it is what was sent last."""
        if self._newest.get(name, (0, None))[1] != content:
            self._count += 1
            self._newest[name] = (self._count, content)
            self._wake()

    def close(self) -> None:
        """End every viewer's stream."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def follow(self) -> AsyncIterator[bytes]:
        """The stream of one viewer: first what is newest now, then what follows. Nothing is kept for a viewer that
        does not read: the next event is made when the last one has gone out."""
        waker, seen = asyncio.Event(), 0
        self._wakers.add(waker)
        try:
            yield b"retry: 1000\n\n"
            while not self._closed:
                waker.clear()
                for name, (count, content) in sorted(self._newest.items(), key=lambda item: item[1][0]):
                    if count > seen:
                        seen = count
                        yield f"event: {name}\ndata: {json.dumps(content)}\n\n".encode()
                try:
                    await asyncio.wait_for(waker.wait(), SILENT_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._wakers.discard(waker)
