"""Who is let in: only a browser on this machine that knows the address, and only to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.serve.guard import Guard

from .conftest import PORT, TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000"])
def test_this_machine_is_served(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1",
        "127.0.0.1:8001",
        "127.0.0.1.evil.example:8000",
        "",
        "[::1]:8000",
    ],
)
def test_another_host_is_refused_before_anything_else(client, host):
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert TOKEN not in answer.text


@pytest.mark.parametrize("path", ["/", "/folder/maxima", f"/{TOKEN}", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "/%00/", "/é/"])
def test_without_the_token_there_is_nothing(client, path):
    answer = client.get(f"http://127.0.0.1:{PORT}{path}")
    assert answer.status_code == 404
    assert "maxima" not in answer.text


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_nothing_can_be_changed(client, method):
    answer = client.request(method, "/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/", "/folder/maxima", "/assets/live.js", "/nowhere", "/events/nowhere"])
def test_no_other_origin_can_read_or_frame_a_page(client, path):
    headers = client.get(path, headers={"origin": "http://evil.example"}).headers
    assert not any(name.startswith("access-control") for name in headers)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"].split("style-src-attr")[0]
    assert headers["referrer-policy"] == "no-referrer"


def test_a_very_long_address_is_refused(client):
    assert client.get("/folder/" + "a" * 3000).status_code == 414
    assert client.get("/compare", params={"first": "a" * 3000}).status_code == 414


@given(st.text(max_size=30), st.binary(max_size=20))
def test_no_guess_gets_through(path, host):
    """Whatever the path and the Host header are, without the token nothing is asked of the pages behind."""
    guard = Guard(lambda *_: pytest.fail("reached"), TOKEN, PORT)
    headers = [(b"host", host)]
    scope = {"type": "http", "method": "GET", "path": f"/{path}", "raw_path": b"/", "headers": headers}
    assert guard._judged_request(scope)[0] in (400, 404)
