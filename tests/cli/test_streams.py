"""Standard streams that cannot be written: a full disk behind stdout, and streams that are closed."""

import contextlib
import errno
import io
import json
import os
import signal
import subprocess
import sys

import pytest

from headcount import cli
from headcount.doctor import Finding

VERBS = {
    "show": ("show", "{own}"),
    "show as JSON": ("show", "{own}", "--json"),
    "status": ("status", "{own}"),
    "status of a parent": ("status", "{own}/.."),
    "report": ("report", "{own}", "--out", "{own}/../page.html", "--json"),
    "compare": ("compare", "{own}", "{table5}"),
    "export": ("export", "{own}"),
    "export to a pipe": ("export", "{own}", "--format", "json"),
    "measure": ("measure", "max-plus-min", "--dry-run", "--lengths", "4", "--seeds", "1"),
    "reproduce": ("reproduce", "table5", "--scale", "smoke", "--dry-run"),
    "bounds": ("bounds", "--heads", "2", "--intrinsic-dim", "4", "--length", "128", "--head-dim", "8", "--eps", "1e-2"),
    "tasks": ("tasks",),
    "doctor": ("doctor",),
    "help": ("--help",),
    "version": ("--version",),
}
HEAVY = ("bounds", "reproduce")
"""Verbs that take their time to import what they print."""


class FullDisk(io.RawIOBase):
    """Takes nothing, as /dev/full, while it is full."""

    full = True

    def writable(self) -> bool:
        return True

    def write(self, content) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return len(content)


def full_disk() -> io.TextIOWrapper:
    """A buffered stream onto a full disk: it fails when it is flushed."""
    return io.TextIOWrapper(io.BufferedWriter(FullDisk(), buffer_size=1 << 20))


def ended(monkeypatch, out, err, *arguments: object) -> int:
    """The exit code of a command with these streams."""
    monkeypatch.setattr(sys, "argv", ["headcount", *map(str, arguments)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        cli.main()
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.buffer.raw.full = False  # what is still in the buffer is flushed when it is collected
    return end.value.code


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=pytest.mark.slow if verb in HEAVY else ()) for verb in VERBS]
)
def test_what_stdout_does_not_take_ends_in_a_sentence(verb, own, table5, monkeypatch):
    monkeypatch.setattr("headcount.doctor.examine", lambda: [Finding("device", True, "a test")])
    arguments = [each.format(own=own, table5=table5) for each in VERBS[verb]]
    err = io.StringIO()
    assert ended(monkeypatch, full_disk(), err, *arguments) == 1
    last = err.getvalue().splitlines()[-1]
    assert last.startswith("headcount: ")
    assert os.strerror(errno.ENOSPC) in last
    assert "Traceback" not in err.getvalue()


def test_a_closed_stdout_is_told_and_messages_that_are_lost_cost_nothing(own, monkeypatch):
    err, out = io.StringIO(), io.StringIO()
    assert ended(monkeypatch, None, err, "export", own) == 1
    assert err.getvalue().startswith("headcount: ")
    assert ended(monkeypatch, out, full_disk(), "report", own, "--json") == 0
    assert json.loads(out.getvalue())["page"]
    assert ended(monkeypatch, io.StringIO(), full_disk(), "show", own / "nowhere") == 1


def test_a_full_device_behind_stdout(own):
    command = f'"{sys.executable}" -m headcount export "{own}" > /dev/full'
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, check=False)
    (line,) = process.stderr.splitlines()
    assert (process.returncode, line[:10]) == (1, "headcount:")
