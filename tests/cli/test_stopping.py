"""Ctrl-C and a polite kill while something runs."""

import os
import re
import signal
import time

import pytest

from headcount.cli.stopping import stop_on_signals

from ..helpers import fabricated
from ..helpers.commands import headcount, start
from .test_measure import MEASURE

BUSY = """
import os, time
from headcount.cli.stopping import stop_on_signals
with stop_on_signals(lambda: os.write(1, b"told\\n") / 0) as stop:  # what fails here ends nothing
    os.write(1, b"begun\\n")
    stop.wait()
    os.write(1, b"stopped\\n")
    time.sleep(60)
"""

ENDING = """
import atexit, os, sys
from headcount.cli import main
atexit.register(lambda: os.kill(os.getpid(), int(number)))
number = sys.argv.pop()
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_ends_has_no_traceback(number):
    process = start("--version", int(number), script=ENDING)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.split()[0], err) == (130, "headcount", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_matplotlib_turns_into_another_error_has_no_traceback(number, tmp_path, monkeypatch):
    """An exception in what its C++ calls, here to convert a transform, is dropped, and a TypeError or so raised."""
    sweep = fabricated.sweep()
    folder = fabricated.write(tmp_path, fabricated.finished(sweep), {"headcount measure own": sweep})
    monkeypatch.setattr("matplotlib.transforms.AffineBase.__array__", lambda *_, **__: os.kill(os.getpid(), number))
    assert headcount("report", folder) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_event_once_and_what_was_before_comes_back(number, capsys):
    before, calls = signal.getsignal(number), []
    with stop_on_signals(lambda: calls.append(number)) as stop:
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        os.kill(os.getpid(), signal.SIGTERM)  # a second kill is not a second Ctrl-C
    assert (calls, signal.getsignal(number)) == ([number], before)
    assert capsys.readouterr().err.count("Stopping") == 1


def test_a_second_ctrl_c_ends_the_process_at_once():
    process = start(script=BUSY)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert sorted([process.stdout.readline(), process.stdout.readline()]) == ["stopped\n", "told\n"]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["preparing", "compiling"])
def test_a_stop_is_acknowledged_while_the_main_thread_is_busy(tmp_path, monkeypatch, moment):
    """The acknowledgement comes before the program that is compiled meanwhile is ready."""
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))
    process = start(*MEASURE, "--steps", 200_000, "--layers", 3, "--out", tmp_path / "results")
    assert "support dimension" in process.stderr.readline()
    assert re.match(r"\d+ models", process.stderr.readline())
    time.sleep(0.5 if moment == "preparing" else 6)
    process.send_signal(signal.SIGINT)
    assert "Stopping" in process.stderr.readline()
    assert process.wait(120) == 130
    out, err = process.communicate()
    assert (out, "Stopped. " in err, "Traceback" in err) == ("", True, False)
