"""A downloaded file is whole or not there, whatever the network, the server and the disk do."""

import contextlib
import hashlib
import itertools
import re
import resource
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import HeadcountError
from headcount.papers.data.passages import read_passages
from headcount.papers.real_data import download
from headcount.papers.real_data.download import RemoteFile, bert, fetch, marco

from .data.texts import write, write_beir

CONTENT = bytes(range(256)) * 40


def quiet(words: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


@dataclass
class Behaviour:
    """What the server has and how it answers."""

    content: bytes = CONTENT
    files: Path | None = None  # instead of `content`, by the last part of the address
    ranges: bool = True
    late_by: int = 0  # bytes skipped at the start of a partial answer
    cut_after: int | None = None  # bytes of a body, before the connection ends
    chunked: bool = False
    stalls: bool = False
    status: int | None = None
    requests: list[str] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour

    def log_message(self, *_):
        pass

    def do_GET(self):
        behaviour = self.behaviour
        content = behaviour.content
        if behaviour.files is not None:
            content = next(behaviour.files.rglob(self.path.rpartition("/")[2])).read_bytes()
        behaviour.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        if behaviour.stalls:
            time.sleep(0.3)
            return
        if behaviour.status is not None:
            self.send_error(behaviour.status)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted and behaviour.ranges else None
        if start is not None and start >= len(content):
            self.send_error(416)
            return
        self.send_response(200 if start is None else 206)
        self.send_body(content[0 if start is None else start + behaviour.late_by :])

    def send_body(self, body: bytes):
        sent = body if self.behaviour.cut_after is None else body[: self.behaviour.cut_after]
        chunked = self.behaviour.chunked
        self.send_header("Transfer-Encoding" if chunked else "Content-Length", "chunked" if chunked else str(len(body)))
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + sent if chunked else sent)
        self.wfile.write(b"\r\n0\r\n\r\n" if chunked and sent == body else b"")


class Server:
    def __init__(self):
        self.handler = type("OneHandler", (Handler,), {})
        self.listening = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.url = f"http://127.0.0.1:{self.listening.server_port}"
        self.behave()

    def behave(self, **behaviour) -> Behaviour:
        self.handler.behaviour = Behaviour(**behaviour)
        return self.handler.behaviour

    def source(self, content: bytes = CONTENT) -> RemoteFile:
        return RemoteFile(f"{self.url}/files/numbers.bin", "numbers.bin", hashlib.sha256(content).hexdigest())


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


def failure(*given: str):
    """A failure in one sentence that names what was `given`, and is not blamed on the request."""
    return pytest.raises(HeadcountError, match=r"\A.*" + ".*".join(map(re.escape, given)) + r".*\.\Z")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestFetch:
    @pytest.mark.parametrize("chunked", [False, True])
    def test_a_file_arrives_whole_and_once(self, server, tmp_path, chunked):
        behaviour = server.behave(chunked=chunked)
        folder = tmp_path / "new" / "folder"
        for _ in range(2):
            fetch([server.source()], folder, quiet)
        assert (folder / "numbers.bin").read_bytes() == CONTENT
        assert names(folder) == ["numbers.bin"]
        assert len(behaviour.requests) == 1

    def test_progress_counts_up_to_the_total(self, server, tmp_path):
        content = CONTENT * 200
        server.behave(content=content)
        seen = []
        fetch([server.source(content)], tmp_path, lambda _, done, total: seen.append((done, total)))
        assert len(seen) > 1
        assert all(earlier < later for (earlier, _), (later, _) in itertools.pairwise(seen))
        assert {total for _, total in seen} == {len(content)}
        assert seen[-1][0] == len(content)

    @settings(deadline=None, max_examples=30)
    @given(
        content=st.binary(max_size=200),
        part=st.none() | st.binary(max_size=250),
        cuts=st.lists(st.integers(0, 200), max_size=3),
        ranges=st.booleans(),
        late_by=st.sampled_from([0, 0, 5]),
        chunked=st.booleans(),
    )
    def test_however_often_it_breaks_the_file_is_right_or_not_there(
        self, running, content, part, cuts, ranges, late_by, chunked
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if part is not None:
                (folder / "numbers.bin.part").write_bytes(part)
            for cut in [*cuts, None, None]:  # a wrong part is deleted by the first whole answer
                running.behave(content=content, ranges=ranges, late_by=late_by, chunked=chunked, cut_after=cut)
                with contextlib.suppress(HeadcountError):
                    fetch([running.source(content)], folder, quiet)
                if (folder / "numbers.bin").exists():
                    assert (folder / "numbers.bin").read_bytes() == content
            assert names(folder) == ["numbers.bin"]

    def test_a_broken_connection_is_resumed(self, server, tmp_path):
        server.behave(cut_after=4000)
        with failure(server.url, "4,000 of 10,240 bytes"):
            fetch([server.source()], tmp_path, quiet)
        assert names(tmp_path) == ["numbers.bin.part"]
        behaviour, seen = server.behave(), []
        fetch([server.source()], tmp_path, lambda _, done, total: seen.append((done, total)))
        assert behaviour.requests == ["GET /files/numbers.bin bytes=4000-"]
        assert seen[0][0] > 4000
        assert seen[-1] == (10_240, 10_240)

    def test_a_part_that_is_whole_needs_no_network(self, server, tmp_path):
        (tmp_path / "numbers.bin.part").write_bytes(CONTENT)
        behaviour = server.behave()
        fetch([server.source()], tmp_path, quiet)
        assert (tmp_path / "numbers.bin").read_bytes() == CONTENT
        assert behaviour.requests == []

    def test_wrong_bytes_are_deleted(self, server, tmp_path):
        server.behave(content=CONTENT[:-1] + b"x")
        with failure(server.url, server.source().sha256):
            fetch([server.source()], tmp_path, quiet)
        assert names(tmp_path) == []

    def test_another_file_of_that_name_is_not_touched(self, server, tmp_path):
        (tmp_path / "numbers.bin").write_bytes(b"mine")
        with failure(str(tmp_path / "numbers.bin"), server.source().sha256):
            fetch([server.source()], tmp_path, quiet)
        assert (tmp_path / "numbers.bin").read_bytes() == b"mine"

    @pytest.mark.parametrize("behaviour", [{"status": 404}, {"status": 500}, {"stalls": True}])
    def test_a_server_that_fails(self, server, tmp_path, monkeypatch, behaviour):
        monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.1)
        (tmp_path / "numbers.bin.part").write_bytes(CONTENT[:7])
        server.behave(**behaviour)
        with failure(server.url, str(behaviour.get("status", "timed out")), str(tmp_path)):
            fetch([server.source()], tmp_path, quiet)
        assert names(tmp_path) == ["numbers.bin.part"]

    def test_no_network(self, tmp_path, monkeypatch):
        monkeypatch.setenv("no_proxy", "*")
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/numbers.bin"
            with failure(url, str(tmp_path)):
                fetch([RemoteFile(url, "numbers.bin", "")], tmp_path, quiet)
        assert names(tmp_path) == []

    def test_an_interrupt_keeps_what_arrived(self, server, tmp_path):
        def stop(words, done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch([server.source()], tmp_path, stop)
        assert names(tmp_path) == ["numbers.bin.part"]
        assert CONTENT.startswith((tmp_path / "numbers.bin.part").read_bytes())

    def test_a_full_disk(self, server, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a module's first half would be kept, and imported
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            with failure("numbers.bin.part", "File too large"):
                fetch([server.source()], tmp_path, quiet)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        fetch([server.source()], tmp_path, quiet)
        assert (tmp_path / "numbers.bin").read_bytes() == CONTENT
        assert names(tmp_path) == ["numbers.bin"]

    def test_a_folder_that_is_a_file(self, server, tmp_path):
        (tmp_path / "file").write_text("")
        with failure(str(tmp_path / "file")):
            fetch([server.source()], tmp_path / "file", quiet)


class TestHub:
    """Files of the Hugging Face hub, from a local server."""

    @pytest.fixture(autouse=True)
    def address(self, server, monkeypatch):
        monkeypatch.setenv("HF_ENDPOINT", server.url)

    def test_marco_arrives_once_and_can_be_read(self, server, tmp_path):
        sent, folder = write_beir(tmp_path / "sent"), tmp_path / "kept"
        for split in ("train", "test"):
            write(sent / "qrels" / f"{split}.tsv", "query-id\tcorpus-id\tscore\n9\t11\t1\n")
        behaviour, seen = server.behave(files=sent), []
        for _ in range(2):
            fetch(marco(), folder, lambda *progress: seen.append(progress))
        assert len(behaviour.requests) == 5
        revision = "a918e0d11a77ed33f42f29d98340b655593b96ad"
        assert behaviour.requests[-1] == f"GET /datasets/BeIR/msmarco/resolve/{revision}/corpus.jsonl.gz"
        assert [done for _, done, _ in seen] == [total for _, _, total in seen]
        assert [words for words, _, _ in seen][-2:] == ["queries.jsonl.gz", "corpus.jsonl.gz"]
        assert names(folder) == ["corpus.jsonl.gz", "qrels", "queries.jsonl.gz"]
        assert read_passages(folder, split="dev").fingerprint == read_passages(sent, split="dev").fingerprint

    def test_a_file_of_no_known_hash_is_resumed(self, server, tmp_path):
        (config, *_) = bert()
        server.behave(cut_after=6000)
        with failure("config.json", str(tmp_path)):
            fetch([config], tmp_path, quiet)
        assert names(tmp_path) == ["config.json.part"]
        behaviour = server.behave()
        fetch([config], tmp_path, quiet)
        assert (tmp_path / "config.json").read_bytes() == CONTENT
        assert behaviour.requests[0].endswith("config.json bytes=6000-")

    def test_weights_of_another_hash_are_refused(self, server, tmp_path):
        with failure("model.safetensors", bert()[-1].sha256):
            fetch(bert(), tmp_path, quiet)
        assert names(tmp_path) == ["config.json", "tokenizer.json"]
