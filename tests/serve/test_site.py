"""The pages: folders that run, were killed, vanish or are damaged; and nothing outside is shown."""

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
from headcount.serve import certificates as stored
from headcount.serve.folders import Parent
from headcount.serve.views import Views
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
    assert "maxima" in fetched(client, "/folder/maxima")
    answer = client.get("/sections/maxima")
    assert "maxima needs 4 heads" in answer.text
    assert 'id="result-1"' in answer.text
    assert "<svg" in answer.text
    assert client.get("/sections/maxima").headers["x-version"] == answer.headers["x-version"]
    assert answer.headers["x-version"] in fetched(client, "/folder/maxima")


def test_a_folder_that_is_served_itself_comes_first(parent):
    from starlette.testclient import TestClient

    from headcount.serve.app import app_of

    app, _ = app_of(parent / "maxima", "t", 8000)
    with TestClient(app, base_url="http://127.0.0.1:8000/t", follow_redirects=False) as client:
        assert client.get("/").headers["location"] == "/t/folder/"
        assert "maxima needs 4 heads" in fetched(client, "/sections/")


def test_a_run_is_shown_as_it_goes(client, parent, running):
    cells = sweep(steps=100).cells[:5]
    running(Event("steps", done=160))
    running(Event("checkpoint", done=50, detail=(cells, [0.5, 0.25, 0.125, 1e308, 1e-310])))
    running._write()
    text = fetched(client, "/folder/new")
    assert "no answer yet" in text
    assert "160 of 3,200 model-steps" in text
    assert text.count("<polyline") == 3
    made = sweep(task="new")
    write(parent / "new", finished(made)[:30], {"headcount measure new": made})
    fetched(client, "/sections/new")
    assert "so far: " in fetched(client, "/folder/new")
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
    fetched(client, "/sections/maxima")
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
    fetched(client, "/sections/maxima")
    (parent / "maxima" / FILE_NAME).write_bytes(b"garbage" * 1000)
    assert "maxima needs 4 heads" in fetched(client, "/sections/maxima"), "what was read before stays"
    assert "is damaged or not a headcount store" in fetched(client, "/folder/maxima")
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
    for page in ("folder", "sections", "events", "certificates", "picture"):
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
    root = linked
    path = Parent(root).path("/".join(parts))
    assert path is None or path.resolve().is_relative_to(root)


def test_what_is_stored_cannot_become_part_of_the_page(client, parent, running):
    hostile = "<img src=x onerror=alert(1)>"
    running._note(why=hostile, command=hostile, host=hostile, phase="training")
    running._write()
    made = sweep(task=hostile)
    write(parent / hostile.replace("/", ""), finished(made), {hostile: made})
    until(client, "/", "&lt;img src=x onerror=alert(1)&gt; needs 4 heads")
    for path in ("/", "/folder/new", f"/sections/{hostile}", f"/folder/{hostile}", "/compare"):
        assert "<img src=x" not in fetched(client, path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a name is always text")
def test_a_name_that_is_not_utf_8_has_an_address(client, parent):
    (parent / "maxima").rename(parent / os.fsdecode(b"maxima\xff&<"))
    until(client, "/", "folder/maxima%FF%26%3C", "maxima?&amp;&lt;", "maxima needs 4 heads")
    assert "events/maxima%FF%26%3C" in fetched(client, "/folder/maxima%FF%26%3C")
    assert "maxima needs 4 heads" in fetched(client, "/sections/maxima%FF%26%3C")


def test_two_folders_are_compared(client, parent):
    made = sweep({"heads": (4, 5), "length": (8, 32), "seed": (0, 1)}, task="other")
    write(parent / "other", finished(made, lambda at: 1e-3), {"headcount measure other": made})
    assert fetched(client, "/compare").count("<option") == 6
    text = fetched(client, "/compare?first=maxima&second=other")
    assert text.count("maxima needs 4 heads") == 1
    assert "the tasks differ" in text
    assert text.count('<th scope="row">') == 6 + 6 + 2
    assert "<svg" in text


def test_certificates_are_explored(client, parent):
    assert client.get("/certificates/maxima").status_code == 404
    pair = {"pair": [[[1.0, -2.0]] * 3, [[0.5, 2.0]] * 3], "gap": 0.4, "floor": 0.2, "distance": 1e-9, "exact": True}
    entry = {"key": "abcdef0123", "heads": 2, "length": 3, "seed": 0, "nmse": 0.1, "spread": 2.0, "slope": 1e6}
    entry |= {"anywhere": pair | {"estimated": ""}, "near_data": None}
    folder = parent / "maxima" / "collisions"
    folder.mkdir()
    (folder / "certificates.json").write_text(json.dumps([entry]))
    (folder / "pair-2-heads-abcdef.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    assert "certificates/maxima" in fetched(client, "/folder/maxima")
    text = fetched(client, "/certificates/maxima?key=abcdef0123&where=anywhere")
    assert text.count("<rect") == 12
    assert "any readout errs by" in text
    answer = client.get("/picture/maxima", params={"name": "pair-2-heads-abcdef.svg"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert "sandbox" in answer.headers["content-security-policy"]
    for name in ("../results.sqlite", "certificates.json", "..", "none.svg"):
        assert client.get("/picture/maxima", params={"name": name}).status_code == 404
    (folder / "certificates.json").write_text("{}")
    assert client.get("/certificates/maxima").status_code == 404


def certificates_of(count: int, tokens: int) -> list[dict]:
    pair = {"pair": [[[1.0, -2.0]] * tokens] * 2, "gap": 0.4, "floor": 0.2, "distance": 1e-9, "exact": True}
    entry = {"heads": 2, "length": tokens, "seed": 0, "nmse": 0.1, "spread": 2.0, "slope": 1e6, "near_data": None}
    return [entry | {"key": f"{place:010}", "anywhere": pair | {"estimated": ""}} for place in range(count)]


def test_certificates_are_drawn_up_to_a_size_and_away_from_other_pages(client, parent, monkeypatch):
    folder = parent / "maxima" / "collisions"
    folder.mkdir()
    file = folder / "certificates.json"
    file.write_text(json.dumps(certificates_of(3, stored.MAX_NUMBERS // 4)))
    assert fetched(client, "/certificates/maxima").count("<rect") == stored.MAX_NUMBERS
    file.write_text(json.dumps(certificates_of(1, stored.MAX_NUMBERS // 4 + 1)))
    text = fetched(client, "/certificates/maxima")
    assert "10,004 numbers, and at most 10,000 are drawn" in text
    assert "<rect" not in text
    file.write_text(json.dumps(certificates_of(stored.MAX_MODELS + 7, 1)))
    text = fetched(client, "/certificates/maxima")
    assert f"The first {stored.MAX_MODELS} are listed; 7 more" in text
    assert text.count("<option") <= stored.MAX_MODELS + 2
    monkeypatch.setattr(stored, "MAX_BYTES", 10**6 // 100)
    answer = client.get("/certificates/maxima")
    assert (answer.status_code, "most that this page reads" in answer.text) == (413, True)


def test_other_pages_are_answered_while_certificates_are_drawn(client, parent, monkeypatch):
    (parent / "maxima" / "collisions").mkdir()
    began, may_end, page = threading.Event(), threading.Event(), Views.page
    monkeypatch.setattr(stored, "certified", lambda folder: [stored._certified(each) for each in certificates_of(1, 1)])

    def drawn(views, template, **content):
        if template == "certificates":
            began.set()
            assert may_end.wait(20)
        return page(views, template, **content)

    monkeypatch.setattr(Views, "page", drawn)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.get, "/certificates/maxima")
        try:
            assert began.wait(60)
            assert fetched(client, "/folder/deeper/again")
            assert not waiting.done()
        finally:
            may_end.set()
        assert waiting.result().status_code == 200


def test_heads_are_explored(client, parent):
    assert client.get("/heads/maxima").status_code == 404
    heads = [
        {"name": f"head {n}", "weights": [[n / 4, 1 - n / 4, 0]] * 2, "reads": 1.5, "without": 0.4} for n in range(3)
    ]
    examples = [{"tokens": [[0.5], [1.5], None], "target": [1.5], "answer": [1.25]}] * 2
    content = {"key": "k", "model": "3 heads", "length": 3, "error": 0.1, "examples": examples, "heads": heads}
    with Store.open_for_writing(parent / "maxima") as store:
        store.put("maxima", "heads", content)
    text = fetched(client, "/heads/maxima?head=1&example=1")
    assert "head 1 reads 75% of token 2" in text
    assert "absent" in text
    assert "heads/maxima" in fetched(client, "/folder/maxima")
    for other in ("9", "-1", "x", "9" * 50, "٣"):
        assert "head 0 reads" in fetched(client, f"/heads/maxima?head={other}")


def test_what_cannot_be_served_is_one_sentence(parent, tmp_path):
    a_sentence(headcount("serve", tmp_path / "nowhere"), 2, str(tmp_path / "nowhere"))
    a_sentence(headcount("serve", parent, "--port", 70000), 2, "--port", "70000")
    from headcount.serve.server import bound

    with bound(0) as taken:
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
