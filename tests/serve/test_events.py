"""Events: viewers get what is newest, over a real connection; one that does not read costs nothing."""

import asyncio
import contextlib
import json
import socket
import threading

import httpx
import pytest

from headcount.events import Event
from headcount.serve import app
from headcount.serve.server import bound_socket, server_of

from ..helpers.fabricated import finished, sweep, write


@contextlib.contextmanager
def served(root):
    """The address of a server in a thread of its own."""
    with bound_socket(0) as listening:
        address, server = server_of(root, listening)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


def events(response):
    """Name and content of each event of a stream."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def first(stream, name: str, *words: str) -> str:
    return next(content for each, content in stream if each == name and all(word in content for word in words))


def test_a_viewer_that_reads_slowly_gets_only_what_is_newest(monkeypatch, tmp_path):
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.0)

    async def story():
        site, number = app.Site(tmp_path, "t"), iter(range(1000))

        async def news():
            return {"now": f"<p>{next(number)}</p>", "report": "v1"}

        stream = site._follow(news)
        events = [(await anext(stream)).decode() for _ in range(4)]
        assert "<p>0</p>" in events[1]
        assert "event: report" in events[2]
        assert "<p>1</p>" in events[3], "what has not changed is not sent again"
        site.close()
        assert [event async for event in stream] == []

    asyncio.run(story())


def test_a_run_comes_to_its_viewers_event_by_event(parent, running):
    with served(parent) as address, httpx.Client(timeout=30) as client:
        with client.stream("GET", f"{address}events/new") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            stream = events(response)
            first(stream, "now", "compiling")
            running(Event("steps", done=1600))
            first(stream, "now", "1,600 of 3,200 model-steps")
            made = sweep(task="new")
            write(parent / "new", finished(made), {"headcount measure new": made})
            first(stream, "now", "so far: ")
            version = first(stream, "report")
            while f'data-version="{version}"' not in (shown := client.get(f"{address}folder/new").text):
                version = first(stream, "report")
            assert "new needs 4 heads" in shown
        with client.stream("GET", f"{address}events") as response:
            first(events(response), "list", "so far: ")
        # A viewer that asks and never reads does not keep the server from others, nor from ending.
        deaf = socket.create_connection(("127.0.0.1", httpx.URL(address).port))
        path = httpx.URL(address).path
        deaf.sendall(f"GET {path}events HTTP/1.1\r\nHost: 127.0.0.1:{httpx.URL(address).port}\r\n\r\n".encode())
        assert client.get(address).status_code == 200
    deaf.close()


@pytest.mark.parametrize("request_line", ["GET /%s HTTP/1.1" % ("a" * 200_000), "NONSENSE", "GET / HTTP/9.9"])
def test_what_is_no_request_is_refused_and_the_server_goes_on(parent, request_line):
    with served(parent) as address:
        raw = socket.create_connection(("127.0.0.1", httpx.URL(address).port), timeout=30)
        with raw, contextlib.suppress(ConnectionError):
            raw.sendall(f"{request_line}\r\nHost: x\r\n\r\n".encode())
            assert b" 4" in raw.recv(1000)[:16]
        assert httpx.get(address, timeout=30).status_code == 200
