"""A fetched file is whole or not there, whatever the network, the server and the disk do."""

import contextlib
import hashlib
import itertools
import re
import resource
import shutil
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._errors import HeadcountError, InputError
from headcount.datasets import download
from headcount.datasets.download import Source, fetch

CONTENT = bytes(range(256)) * 40


@dataclass
class Behaviour:
    """What the server has and how it answers."""

    content: bytes = CONTENT
    ranges: bool = True
    begins_late_by: int = 0
    cut_after: int | None = None  # bytes of a body, before the connection ends
    chunked: bool = False
    stalls: bool = False
    status: int | None = None
    tag: str | None = '"first"'
    asked: list[dict[str, str]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour

    def log_message(self, *_):
        pass

    def do_GET(self):
        behaviour, content = self.behaviour, self.behaviour.content
        behaviour.asked.append(dict(self.headers.items()))
        if behaviour.stalls:
            time.sleep(0.6)
            return
        if behaviour.status is not None:
            self.send_error(behaviour.status)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        unchanged = self.headers.get("If-Range", behaviour.tag) == behaviour.tag
        start = int(wanted[1]) if wanted and behaviour.ranges and unchanged else None
        if start is not None and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(200 if start is None else 206)
        if start is not None:
            start += behaviour.begins_late_by
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if behaviour.tag:
            self.send_header("ETag", behaviour.tag)
        self.send_body(content[start or 0 :])

    def send_body(self, body: bytes):
        sent = body if self.behaviour.cut_after is None else body[: self.behaviour.cut_after]
        if self.behaviour.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(f"{len(body):x}\r\n".encode() + sent)
            if sent == body:
                self.wfile.write(b"\r\n0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(sent)


class Server:
    def __init__(self):
        self.handler = type("OneHandler", (Handler,), {})
        self.listening = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.url = f"http://127.0.0.1:{self.listening.server_port}/files/numbers.bin"
        self.behave()

    def behave(self, **behaviour) -> Behaviour:
        self.handler.behaviour = Behaviour(**behaviour)
        return self.handler.behaviour

    def source(self, content: bytes = CONTENT, **changed) -> Source:
        known = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        return Source(self.url, "numbers.bin", **(known | changed))

    def unpinned(self) -> Source:
        return Source(self.url, "numbers.bin")


@pytest.fixture(scope="module")
def running():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "*")
        server = Server()
        thread = threading.Thread(target=server.listening.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.listening.shutdown()
        server.listening.server_close()
        thread.join()


@pytest.fixture
def server(running):
    running.behave()
    return running


def failure(*words: str):
    """A failure told in one sentence with `words` in it, and not blamed on the request."""
    return pytest.raises(HeadcountError, match=r"\A.*" + ".*".join(map(re.escape, words)) + r".*\.\Z")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_comes_whole_and_alone(server, tmp_path, chunked):
    server.behave(chunked=chunked)
    path = fetch(server.source(), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "numbers.bin"
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["numbers.bin"]


def test_progress_counts_up_to_the_whole(server, tmp_path):
    content = CONTENT * 200
    server.behave(content=content)
    seen = []
    fetch(server.source(content), tmp_path, on_bytes=lambda done, total: seen.append((done, total)))
    assert len(seen) > 1
    assert all(earlier < later for (earlier, _), (later, _) in itertools.pairwise(seen))
    assert {total for _, total in seen} == {len(content)}
    assert seen[-1][0] == len(content)


def test_what_is_there_is_not_asked_for_again(server, tmp_path):
    behaviour = server.behave()
    for source in (server.source(), server.unpinned()):
        fetch(source, tmp_path)
    assert len(behaviour.asked) == 1


def test_another_file_of_that_name_is_left_alone(server, tmp_path):
    (tmp_path / "numbers.bin").write_bytes(b"mine")
    for source in (server.source(), server.source(size=None), server.source(sha256=None)):
        with failure(str(tmp_path / "numbers.bin"), "rather than", "move it away"):
            fetch(source, tmp_path)
    assert (tmp_path / "numbers.bin").read_bytes() == b"mine"


@settings(deadline=None, max_examples=40)
@given(
    content=st.binary(max_size=200),
    cuts=st.lists(st.integers(0, 200), max_size=4),
    ranges=st.booleans(),
    chunked=st.booleans(),
    pinned=st.booleans(),
    tag=st.sampled_from(['"a"', 'W/"a"', None]),
)
def test_however_often_it_breaks_off_the_file_is_right_or_not_there(
    running, content, cuts, ranges, chunked, pinned, tag
):
    folder = Path(tempfile.mkdtemp())
    source = running.source(content) if pinned else running.unpinned()
    for cut in [*cuts, None]:
        running.behave(content=content, ranges=ranges, chunked=chunked, tag=tag, cut_after=cut)
        with contextlib.suppress(HeadcountError):
            fetch(source, folder)
        if (folder / "numbers.bin").exists():
            assert (folder / "numbers.bin").read_bytes() == content
    assert names(folder) == ["numbers.bin"]
    shutil.rmtree(folder)


def test_a_broken_connection_costs_only_what_had_not_come(server, tmp_path):
    server.behave(cut_after=4000)
    with failure(server.url, "ended after 4,000 of 10,240 bytes", "local folder", "4,000 bytes", "kept"):
        fetch(server.source(), tmp_path)
    assert names(tmp_path) == ["numbers.bin.part"]
    behaviour, seen = server.behave(), []
    fetch(server.source(), tmp_path, on_bytes=lambda done, total: seen.append((done, total)))
    assert behaviour.asked[0]["Range"] == "bytes=4000-"
    assert seen[-1] == (10_240, 10_240)
    assert seen[0][0] > 4000


@pytest.mark.parametrize("behaviour", [{"ranges": False}, {"begins_late_by": 5}])
def test_a_server_that_cannot_go_on_starts_over(server, tmp_path, behaviour):
    (tmp_path / "numbers.bin.part").write_bytes(CONTENT[:100])
    server.behave(**behaviour)
    assert fetch(server.source(), tmp_path).read_bytes() == CONTENT


class TestWithoutAHash:
    """Where no hash would tell, a part is gone on with only as the same version."""

    def test_the_same_version_goes_on(self, server, tmp_path):
        server.behave(cut_after=300)
        with failure("300 bytes that came are kept"):
            fetch(server.unpinned(), tmp_path)
        behaviour = server.behave()
        assert fetch(server.unpinned(), tmp_path).read_bytes() == CONTENT
        assert behaviour.asked[0]["Range"] == "bytes=300-"
        assert names(tmp_path) == ["numbers.bin"]

    def test_another_version_starts_over(self, server, tmp_path):
        server.behave(cut_after=300)
        with failure("kept"):
            fetch(server.unpinned(), tmp_path)
        server.behave(content=CONTENT[::-1], tag='"second"')
        assert fetch(server.unpinned(), tmp_path).read_bytes() == CONTENT[::-1]

    def test_a_version_without_a_tag_starts_over(self, server, tmp_path):
        server.behave(cut_after=300, tag=None)
        with pytest.raises(HeadcountError) as caught:
            fetch(server.unpinned(), tmp_path)
        assert "kept" not in str(caught.value)
        behaviour = server.behave(content=CONTENT[::-1], tag=None)
        assert fetch(server.unpinned(), tmp_path).read_bytes() == CONTENT[::-1]
        assert "Range" not in behaviour.asked[0]


@pytest.mark.parametrize("size", [None, len(CONTENT)])
def test_a_part_that_lacks_only_its_name(server, tmp_path, size):
    (tmp_path / "numbers.bin.part").write_bytes(CONTENT)
    assert fetch(server.source(size=size), tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == ["numbers.bin"]


def test_a_part_longer_than_the_file(server, tmp_path):
    part = tmp_path / "numbers.bin.part"
    part.write_bytes(CONTENT + b"more")
    with failure("10,244 bytes rather than 10,240", "deleted"):
        fetch(server.source(), tmp_path)
    part.write_bytes(CONTENT + b"more")
    assert fetch(server.source(size=None), tmp_path).read_bytes() == CONTENT


def test_wrong_bytes_are_deleted(server, tmp_path):
    server.behave(content=CONTENT[:-1] + b"x")
    with failure(server.url, "sha256", "rather than", server.source().sha256, "deleted"):
        fetch(server.source(), tmp_path)
    assert names(tmp_path) == []


def test_a_wrong_start_is_found_at_the_end(server, tmp_path):
    (tmp_path / "numbers.bin.part").write_bytes(b"x" * 100)
    with failure("sha256", "deleted"):
        fetch(server.source(), tmp_path)
    assert fetch(server.source(), tmp_path).read_bytes() == CONTENT


def test_a_wrong_size_is_deleted(server, tmp_path):
    with failure("10,240 bytes rather than 20,000", "deleted"):
        fetch(server.source(sha256=None, size=20_000), tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal_is_told(server, tmp_path, status):
    (tmp_path / "numbers.bin.part").write_bytes(CONTENT[:7])
    server.behave(status=status)
    with failure(server.url, f"answered {status}", "local folder", "7 bytes", "kept"):
        fetch(server.source(), tmp_path)


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/numbers.bin"
        with failure(url, "no connection", "local folder"):
            fetch(Source(url, "numbers.bin"), tmp_path)
    assert names(tmp_path) == []


def test_a_silent_server(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "SECONDS_OF_SILENCE", 0.1)
    server.behave(stalls=True)
    with failure(server.url, "silent for 0.1 seconds", "local folder"):
        fetch(server.source(), tmp_path)


def test_a_stop_by_the_user_keeps_what_came(server, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.source(), tmp_path, on_bytes=stop)
    kept = (tmp_path / "numbers.bin.part").read_bytes()
    assert kept
    assert CONTENT.startswith(kept)
    assert names(tmp_path) == ["numbers.bin.part"]


def test_a_disk_that_takes_no_more(server, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with failure("numbers.bin.part", "cannot be written", "make room"):
            fetch(server.source(), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == ["numbers.bin.part"]
    assert fetch(server.source(), tmp_path).read_bytes() == CONTENT


def test_a_folder_that_is_a_file(server, tmp_path):
    (tmp_path / "file").write_text("")
    with failure(str(tmp_path / "file"), "another folder"):
        fetch(server.source(), tmp_path / "file")


@pytest.mark.parametrize("url", ["file:///etc/hosts", "ftp://host/file", "numbers.bin", ""])
def test_only_addresses_of_the_web(url):
    with pytest.raises(InputError, match="https://"):
        Source(url, "numbers.bin")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/hosts"])
def test_only_plain_names(name):
    with pytest.raises(InputError, match="plain file name"):
        Source("https://host/file", name)
