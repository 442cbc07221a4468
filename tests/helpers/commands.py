"""The command line run from a test."""

import contextlib
import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jaxtyping
import pytest

from headcount import cli


class Result(NamedTuple):
    code: int
    out: str
    err: str


def headcount(*arguments: object) -> Result:
    """Run a command here; anything but an exit, a traceback for a user, breaks the test."""
    out, err, before = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM)
    try:
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            patch.setattr(sys, "argv", ["headcount", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                cli.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    return Result(ended.value.code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def unchecked():
    """As a user runs it: nothing checks the types of arguments before their values."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


def start(*arguments: object, script: str = "from headcount.cli import main; main()", **options) -> subprocess.Popen:
    """Run a command, or another script, in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], **(pipes | options))


def strict_json(text: str):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def a_sentence(result, code: int, *words: str) -> None:
    """The command ended with this code and one line that says why."""
    assert (result.code, result.out) == (code, "")
    lines = [line for line in result.err.splitlines() if line.startswith("headcount: ")]
    assert result.err.splitlines()[-1:] == lines, result.err
    for word in words:
        assert word in lines[0]
