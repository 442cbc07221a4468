"""The pages: folders that run, were killed, vanish or are damaged; and nothing outside is shown."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.events import Event
from headcount.report.reading import documents_of
from headcount.report.render import html
from headcount.serve import certificates as stored
from headcount.serve.guard import folder_path
from headcount.store import FILE_NAME, LIVE_FILE, Store
from headcount.store.folders import folder_status

from ..helpers.commands import a_sentence, contents, headcount
from ..helpers.fabricated import finished, sweep, write


def fetched(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def until(client, path: str, *words: str) -> str:
    """The page once it says these words: folders are read meanwhile."""
    deadline = time.monotonic() + 30
    while not all(word in (text := fetched(client, path)) for word in words):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    return text


def test_every_folder_is_listed_with_its_answer(client, parent):
    before = contents(parent)
    text = until(client, "/", "maxima needs 4 heads", "again needs 4 heads")
    assert "folder/deeper/again" in text
    assert "24 of 24 models" in text
    assert contents(parent) == before, "reading writes nothing"


def test_a_folder_shows_what_the_report_shows(client, parent):
    text = until(client, "/folder/maxima", "maxima needs 4 heads")
    assert 'id="result-1"' in text
    assert "<svg" in text
    versions = [re.search(r'data-version="(\w+)"', fetched(client, "/folder/maxima"))[1] for _ in range(2)]
    assert versions[0] == versions[1]
    documents, warnings = documents_of(parent / "maxima")
    whole = html.page(documents, folder="", warnings=warnings)
    assert re.search(r'<section id="result-1".*</section>', whole, re.DOTALL)[0] in text


def test_a_folder_that_is_served_itself_comes_first(parent):
    from starlette.testclient import TestClient

    from headcount.serve.app import app_of

    app, _ = app_of(parent / "maxima", "t", 8000)
    with TestClient(app, base_url="http://127.0.0.1:8000/t", follow_redirects=False) as client:
        assert client.get("/").headers["location"] == "/t/folder/"
        until(client, "/folder/", "maxima needs 4 heads")


def test_a_run_is_shown_as_it_goes(client, parent, running):
    running(Event("steps", done=160))
    running._write()
    text = fetched(client, "/folder/new")
    assert "no answer yet" in text
    assert "160 of 3,200 model-steps" in text
    made = sweep(task="new")
    write(parent / "new", finished(made)[:30], {"headcount measure new": made})
    until(client, "/folder/new", "so far: ")
    assert "30 of 24" not in fetched(client, "/")


def test_a_killed_run_says_how_to_go_on(client, parent, running):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    content = json.loads((parent / "new" / LIVE_FILE).read_text()) | {"pid": gone.pid}
    running._quit.set()
    running._thread.join()
    (parent / "new" / LIVE_FILE).write_text(json.dumps(content))
    for path in ("/", "/folder/new"):
        text = fetched(client, path)
        assert "killed at" in text
        assert "headcount measure mine --out new" in text
    with Store.open_for_writing(parent / "new"):  # by whoever does not say how it goes
        text, state = fetched(client, "/folder/new"), folder_status(parent / "new").state
        assert (">in use<" in text, "killed at" in text, state) == (True, False, "in use")


def test_a_folder_that_vanishes_is_missed_and_comes_back(client, parent):
    until(client, "/folder/maxima", "maxima needs 4 heads")
    (parent / "maxima").rename(parent.parent / "away")
    text = fetched(client, "/folder/maxima")
    assert "not there any more" in text
    assert "maxima needs 4 heads" in text, "what was read before stays"
    assert "folder/maxima" not in fetched(client, "/")
    (parent.parent / "away").rename(parent / "maxima")
    assert "not there any more" not in fetched(client, "/folder/maxima")
    shutil.rmtree(parent)
    assert "not there any more" in fetched(client, "/")


def test_a_damaged_folder_costs_no_other(client, parent):
    until(client, "/folder/maxima", "maxima needs 4 heads")
    (parent / "maxima" / FILE_NAME).write_bytes(b"garbage" * 1000)
    text = until(client, "/folder/maxima", "is damaged or not a headcount store")
    assert "maxima needs 4 heads" in text, "what was read before stays"
    until(client, "/", "is damaged or not a headcount store", "again needs 4 heads")


@pytest.mark.parametrize(
    "name",
    ["..", "../secret", "%2e%2e/secret", "..%2fsecret", "maxima/../../secret", "/etc", "%2fetc", "link", "link/secret",
     "..\\secret", "maxima%00", "nowhere", "maxima/weights", "a" * 300],
)  # fmt: skip
def test_nothing_outside_has_an_address(client, parent, tmp_path, name):
    made = sweep(task="secret")
    write(tmp_path / "secret", finished(made), {"headcount measure secret": made})
    (parent / "link").symlink_to(tmp_path / "secret")
    (parent / "loop").symlink_to(parent)
    for page in ("folder", "events", "certificates"):
        answer = client.get(f"/{page}/{name}")
        assert (answer.status_code, "needs 4 heads" in answer.text) == (404, False)
    assert client.get("/compare", params={"first": "maxima", "second": name}).status_code == 404
    assert "secret" not in fetched(client, "/")


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    root = tmp_path_factory.mktemp("parent")
    os.symlink("/", root / "link")
    return root


@given(st.lists(st.sampled_from(["..", ".", "", "maxima", "link", "a\\b", "\0", "é", "~"]), max_size=5))
def test_a_name_leads_inside_or_nowhere(linked, parts):
    path = folder_path(linked.resolve(), "/".join(parts))
    assert path is None or path.resolve().is_relative_to(linked)


def test_what_is_stored_cannot_become_part_of_the_page(client, parent, running):
    hostile = "<img src=x onerror=alert(1)>"
    running._note(why=hostile, command=hostile, host=hostile, phase="training")
    running._write()
    made = sweep(task=hostile)
    write(parent / hostile.replace("/", ""), finished(made), {hostile: made})
    until(client, "/", "&lt;img src=x onerror=alert(1)&gt; needs 4 heads")
    for path in ("/", "/folder/new", f"/folder/{hostile}", "/compare"):
        assert "<img src=x" not in fetched(client, path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a name is always text")
def test_a_name_that_is_not_utf_8_has_an_address(client, parent):
    (parent / "maxima").rename(parent / os.fsdecode(b"maxima\xff&<"))
    until(client, "/", "folder/maxima%FF%26%3C", "maxima?&amp;&lt;", "maxima needs 4 heads")
    assert "events/maxima%FF%26%3C" in fetched(client, "/folder/maxima%FF%26%3C")
    until(client, "/folder/maxima%FF%26%3C", "maxima needs 4 heads")


def test_two_folders_are_compared(client, parent):
    made = sweep({"heads": (4, 5), "length": (8, 32), "seed": (0, 1)}, task="other")
    write(parent / "other", finished(made, lambda at: 1e-3), {"headcount measure other": made})
    assert fetched(client, "/compare").count("<option") == 6
    text = fetched(client, "/compare?first=maxima&second=other")
    assert "needs 4 heads" in text
    assert "the tasks differ" in text
    assert "<svg" in text


def certificates_of(count: int, tokens: int) -> list[dict]:
    pair = {"pair": [[[1.0, -2.0]] * tokens] * 2, "gap": 0.4, "floor": 0.2, "distance": 1e-9, "exact": True}
    entry = {"heads": 2, "length": tokens, "seed": 0, "nmse": 0.1, "spread": 2.0, "slope": 1e6, "near_data": None}
    return [entry | {"key": f"{place:010}", "anywhere": pair | {"estimated": ""}} for place in range(count)]


@pytest.fixture
def certificates(parent):
    folder = parent / "maxima" / "collisions"
    folder.mkdir()
    return folder / "certificates.json"


def test_certificates_are_explored(client, parent, certificates):
    assert client.get("/certificates/maxima").status_code == 404
    certificates.write_text(json.dumps(certificates_of(2, 3)))
    drawing = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    for name in ("pair-2-heads-000000.svg", "floor-anywhere.svg"):
        (certificates.parent / name).write_bytes(drawing)
    (certificates.parent / "floor-link.svg").symlink_to(parent / "maxima" / FILE_NAME)
    assert "certificates/maxima" in fetched(client, "/folder/maxima")
    text = fetched(client, "/certificates/maxima")
    assert text.count(base64.b64encode(drawing).decode()) == 2
    assert text.count("data:image/svg+xml") == 2
    assert text.count("any readout errs by 0.10, both sequences searched for; an exact collision is proved") == 4
    assert text.count("<td>-2</td>") == 12
    for unknown in ("{}", "[{}]", "[1]", "x"):
        certificates.write_text(unknown)
        assert client.get("/certificates/maxima").status_code == 404


def test_certificates_are_shown_up_to_a_size(client, certificates, monkeypatch):
    certificates.write_text(json.dumps(certificates_of(1, stored.MAX_NUMBERS // 4 + 1)))
    text = fetched(client, "/certificates/maxima")
    assert "0 of 1 pairs are shown: at most 10,000 numbers" in text
    assert "<td>-2</td>" not in text
    certificates.write_text(json.dumps(certificates_of(stored.MAX_MODELS + 7, 1)))
    text = fetched(client, "/certificates/maxima")
    assert f"The first {stored.MAX_MODELS} are listed; 7 more" in text
    assert text.count("<td>-2</td>") == 2 * stored.MAX_MODELS
    monkeypatch.setattr(stored, "MAX_BYTES", 10**6 // 100)
    assert client.get("/certificates/maxima").status_code == 404


def test_other_pages_are_answered_while_certificates_are_drawn(client, certificates, monkeypatch):
    certificates.write_text("[]")
    until(client, "/folder/deeper/again", "again needs 4 heads")
    began, may_end = threading.Event(), threading.Event()

    def drawn(*_):
        began.set()
        assert may_end.wait(20)
        return ""

    monkeypatch.setattr(stored, "certificates_content", drawn)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.get, "/certificates/maxima")
        try:
            assert began.wait(60)
            assert "again needs 4 heads" in fetched(client, "/folder/deeper/again")
            assert "folder/maxima" in fetched(client, "/")
            assert not waiting.done()
        finally:
            may_end.set()
        assert waiting.result().status_code == 404


def test_what_cannot_be_served_is_one_sentence(parent, tmp_path):
    a_sentence(headcount("serve", tmp_path / "nowhere"), 2, str(tmp_path / "nowhere"))
    a_sentence(headcount("serve", parent, "--port", 70000), 2, "--port", "70000")
    from headcount.serve.server import bound_socket

    with bound_socket(0) as taken:
        port = taken.getsockname()[1]
        a_sentence(headcount("serve", parent, "--port", port), 1, str(port))


def test_without_the_extra_the_line_that_installs_it_is_printed(parent, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    a_sentence(headcount("serve", parent), 2, 'pip install "headcount[serve]"')


def test_the_token_is_in_no_command_that_opens_a_browser(parent, monkeypatch):
    """Other users can read commands. And the server answers before the browser is closed."""
    opened = []

    def browse(target):
        try:
            page = Path(url2pathname(urlsplit(target).path))
            address = re.search(r"http://[^\"]+", page.read_text())[0]
            opened.extend([target, page, address, page.stat().st_mode & 0o777])
            opened.append(httpx.get(address, timeout=10).status_code)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("webbrowser.open", browse)
    shown = headcount("serve", parent, "--open")
    target, page, address, mode, status = opened
    assert (shown.code, shown.out.strip(), mode, status, page.exists()) == (0, address, 0o600, 200, False)
    assert httpx.URL(address).path.strip("/") not in target
