"""A parent of results folders, and its pages without a network."""

import pytest
from starlette.testclient import TestClient

from headcount.events import Event
from headcount.serve.app import app_of
from headcount.store import Store
from headcount.store.live import LiveWriter

from ..helpers.fabricated import finished, sweep, write

TOKEN, PORT = "t" * 24, 8000


@pytest.fixture
def parent(tmp_path):
    """Two folders of results that nothing was trained for, one of them in a folder of its own."""
    for name in ("maxima", "deeper/again"):
        made = sweep(task=name.split("/")[-1])
        write(tmp_path / "parent" / name, finished(made), {f"headcount measure {name}": made})
    return tmp_path / "parent"


@pytest.fixture
def client(parent):
    """A browser that knows the token; paths are behind it."""
    app, site = app_of(parent, TOKEN, PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}/{TOKEN}", follow_redirects=False) as opened:
        yield opened
    site.close(wait=True)


@pytest.fixture
def running(parent):
    """A run that goes on in a folder that was just made."""
    Store.open_for_writing(parent / "new").close()
    with LiveWriter(parent / "new", "headcount measure mine --out new") as writer:
        writer(Event("round", "12 heads", total=3200))
        yield writer
