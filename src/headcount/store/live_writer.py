"""Keep `live.json` of a results folder up to date while a run goes."""

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from .._files import UNFINISHED, write_whole
from ..events import Event
from .live import FORMAT, LIVE_FILE, Live

WRITE_SECONDS = 0.5
BEAT_SECONDS = 5.0


class LiveWriter:
    """Writes `live.json` while a `with` block runs. Call it with the events of the run, from any thread.

    A call only notes; a thread of its own writes. Set `ended` to say what ended the run where that is neither an
    exception nor "settled".
    """

    def __init__(self, root: Path | str, command: str = ""):
        now = time.time()
        self.root, self.ended = Path(root), "settled"
        self._live = Live(pid=os.getpid(), host=socket.gethostname(), command=command, started=now, beat=now)
        self._first: tuple[float, int] | None = None
        self._lock, self._writing = threading.Lock(), threading.Lock()
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
        with self._writing, contextlib.suppress(OSError):  # a full disk, or a folder that is gone, is no concern here
            content = json.dumps({"format": FORMAT, **asdict(live)}).encode()
            write_whole(self.root / LIVE_FILE, content, unfinished=self.root / f".{LIVE_FILE}{UNFINISHED}")
