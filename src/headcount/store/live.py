"""State of a running process: `DIR/live.json`, for the live page and for verbs that ask whether a run is alive.

The file is replaced as a whole, at most twice per second, and at least every few seconds (the beat), so that a reader
can tell a run that is silent from one that is gone. It never decides a number, and failing to write it never disturbs a
run. A reader gets None for a file that is missing, half written, or not ours.
"""

import contextlib
import datetime
import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from .._files import UNFINISHED, read_regular, write_whole
from ..events import Event
from .database import UNREADABLE

LIVE_FILE = "live.json"
WRITE_SECONDS = 0.5
BEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0
"""A process whose last beat is older is not counted as running, whatever its pid says: pids are used again."""
FORMAT = "headcount live 1"

Phase = Literal["preparing", "compiling", "training", "ended"]
State = Literal["running", "silent", "killed", "ended", "in use"]
"""Of a results folder; "in use": a process holds it that says nothing of itself, such as Python code with a `Store`."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """State of a run. Times are seconds since 1970; `steps` and `programs` are pairs: done and expected.

    `ended` is empty while it runs, then what ended it: "settled", "rounds" (something is still missing at the
    answer), "budget", "stopped" or "failed". `early` is the early estimate: heads, length and step.
    """

    pid: int
    host: str
    command: str
    started: float
    beat: float
    phase: Phase = "preparing"
    why: str = ""
    programs: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (0, 0)
    seconds_left: float | None = None
    early: dict[str, int] | None = None
    ended: str = ""

    def state(self) -> State:
        """Return whether the process is alive: by its pid on the same host, and by the age of its last beat."""
        if self.ended:
            return "ended"
        if self.host == socket.gethostname() and not _process_exists(self.pid):
            return "killed"
        return "running" if time.time() - self.beat < SILENT_SECONDS else "silent"


def read_live(root: Path | str) -> Live | None:
    """Read the state of the last run in a folder; None where there is none, or none that can be understood."""
    try:
        content = json.loads(read_regular(Path(root) / LIVE_FILE))
        if content.pop("format") != FORMAT:
            return None
        return Live(**content | {name: tuple(content[name]) for name in ("programs", "steps")})
    except (OSError, *UNREADABLE):
        return None


def how_it_ended(live: Live) -> str:
    """Say in a sentence how a run ended; "" while it runs, or where there is nothing to say."""
    again = f"; to continue, run: {live.command}" if live.command else "; to continue, run the same Python code"
    at = clock(live.beat)
    match live.state():
        case "killed":
            return f"killed at {at}{again}"
        case "silent":
            return f"no sign of life from {live.host} since {at}"
        case "ended":
            words = {"stopped": f"stopped at {at}{again}", "failed": f"failed at {at}{again}"}
            words |= {"budget": f"the time given was over at {at}{again}"}
            words |= {"rounds": f"ended at {at} after its last round; the answer is not settled"}
            return words.get(live.ended, "")
        case _:
            return ""


def clock(seconds: float) -> str:
    """A time as HH:MM, with the date where it is not today."""
    then, now = datetime.datetime.fromtimestamp(seconds), datetime.datetime.now()
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"


def _process_exists(pid: int) -> bool:
    """Whether this machine has a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # someone else's process exists too
        return True
    return True


class LiveWriter:
    """Writes `live.json` while a `with` block runs. Call it with the events of the run, from any thread.

    A call only notes the event; a separate thread writes. Set `ended` to say what ended the run where that is neither
    an exception nor "settled".
    """

    def __init__(self, root: Path | str, command: str = ""):
        now = time.time()
        self.root, self.ended = Path(root), "settled"
        self._live = Live(pid=os.getpid(), host=socket.gethostname(), command=command, started=now, beat=now)
        self._first: tuple[float, int] | None = None
        self._lock = threading.Lock()
        self._quit, self._changed = threading.Event(), False
        self._thread = threading.Thread(target=self._write_on, name="live", daemon=True)

    def __enter__(self) -> Self:
        self._write()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self._quit.set()
        self._thread.join()
        if kind is not None:
            self.ended = "stopped" if issubclass(kind, KeyboardInterrupt) else "failed"
        self._note(phase="ended", ended=self.ended, seconds_left=None)
        self._write()

    def __call__(self, event: Event) -> None:
        match event.kind:
            case "round":
                self._begin_round(event.words, event.total or 0)
            case "programs":
                phase = "compiling" if self._live.phase == "preparing" else self._live.phase
                self._note(programs=(event.done, event.total), phase=phase)
            case "steps":
                self._add_steps(event.done)
            case "early":
                self._note(early={name: int(event.detail[name]) for name in ("heads", "length", "step")})

    def _begin_round(self, why: str, model_steps: int) -> None:
        done, expected = self._live.steps
        phase = "compiling" if model_steps else self._live.phase
        self._note(why=why, steps=(done, expected + model_steps), phase=phase, programs=(0, 0))

    def _add_steps(self, model_steps: int) -> None:
        with self._lock:
            done, expected = self._live.steps
            done, now = done + model_steps, time.monotonic()
            self._first = self._first or (now, done)  # the first checkpoint pays for compiling; its time says little
            began, before = self._first
            left = (now - began) * max(0, expected - done) / (done - before) if done > before else None
            steps = (done, max(done, expected))
            self._live, self._changed = replace(self._live, steps=steps, seconds_left=left, phase="training"), True

    def _note(self, **changes: Any) -> None:
        with self._lock:
            self._live, self._changed = replace(self._live, **changes), True

    def _write_on(self) -> None:
        while not self._quit.wait(WRITE_SECONDS):
            if self._changed or time.time() - self._live.beat > BEAT_SECONDS:
                self._write()

    def _write(self) -> None:
        with self._lock:
            self._live = replace(self._live, beat=time.time())
            live, self._changed = self._live, False
        with contextlib.suppress(OSError):  # a full disk, or a folder that is gone, is no concern here
            content = json.dumps({"format": FORMAT, **asdict(live)}).encode()
            write_whole(self.root / LIVE_FILE, content, unfinished=self.root / f".{LIVE_FILE}{UNFINISHED}")
