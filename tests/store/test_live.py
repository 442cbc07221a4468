"""What a running process says of itself: read back as written, and never a reason to fail."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.events import Event, heard_by
from headcount.store import LIVE_FILE, Live, read_live
from headcount.store.live import SILENT_SECONDS, LiveWriter, how_it_ended

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_a_run_can_be_followed(tmp_path):
    heard = []

    def failing(event):
        if event.kind == "early":
            raise BrokenPipeError(event)
        if event.kind == "steps":
            heard.append(event.done)

    (tmp_path / f".{LIVE_FILE}.unfinished").write_text("{")  # what a kill left
    with LiveWriter(tmp_path, "headcount measure mine") as writer:
        events = heard_by(failing, writer)
        assert read_live(tmp_path).phase == "preparing"
        events(Event("round", "4 heads", total=1000))
        events(Event("programs", done=1, total=2))
        events(Event("steps", done=10))
        events(Event("early", detail={"heads": 3, "length": 8, "step": 50, "seconds": 1.0}))
        events(Event("steps"))
        writer._write()
        live = read_live(tmp_path)
        assert (live.phase, live.why, live.programs, live.steps) == ("training", "4 heads", (1, 2), (10, 1000))
        assert (live.early["heads"], live.state(), live.pid) == (3, "running", os.getpid())
        writer.ended = "budget"
    live = read_live(tmp_path)
    assert (live.phase, live.ended, live.state()) == ("ended", "budget", "ended")
    assert heard == [10], "a bar that failed is told nothing more"
    assert [path.name for path in tmp_path.iterdir()] == [LIVE_FILE]


@pytest.mark.parametrize(("error", "ended"), [(KeyboardInterrupt, "stopped"), (RuntimeError, "failed")])
def test_what_ends_a_run_is_kept(tmp_path, error, ended):
    with pytest.raises(error), LiveWriter(tmp_path, "headcount measure mine"):
        raise error
    live = read_live(tmp_path)
    assert live.ended == ended
    assert "headcount measure mine" in how_it_ended(live)


def test_a_folder_that_cannot_be_written_does_not_disturb_the_run(tmp_path):
    with LiveWriter(tmp_path / "gone") as writer:
        writer(Event("steps", done=3))
    assert read_live(tmp_path / "gone") is None


def test_a_process_that_is_gone_or_silent_is_not_alive(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    now = time.time()
    here = Live(pid=os.getpid(), host=socket.gethostname(), command="again", started=now, beat=now)
    killed, silent = replace(here, pid=gone.pid), replace(here, beat=now - 2 * SILENT_SECONDS)
    away = replace(here, host="elsewhere", pid=gone.pid)
    states = [live.state() for live in (here, killed, silent, away)]
    assert states == ["running", "killed", "silent", "running"]
    assert "again" in how_it_ended(killed)


@given(JSON)
def test_foreign_content_is_nothing(tmp_path_factory, value):
    root = tmp_path_factory.mktemp("live")
    with LiveWriter(root, "mine"):
        written = (root / LIVE_FILE).read_text()
    for content in (json.dumps(value), written[:-1], written.replace("headcount live 1", "headcount live 2")):
        (root / LIVE_FILE).write_text(content)
        assert read_live(root) is None
