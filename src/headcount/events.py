"""What happens in a run, as it happens: heard by a progress bar, a log, a live page, a test."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

_log = logging.getLogger(__name__)

Kind = Literal["note", "plan", "round", "programs", "steps", "checkpoint", "early", "workers", "count", "bytes", "stop"]


@dataclass(frozen=True)
class Event:
    """Something that happened. Most events come from worker threads. By kind:

    note: `words` for the user, such as how data were read.
    plan: what is about to be trained, as `detail`; `done` models of it are stored.
    round: models are about to be trained, for the reason in `words`; `total` more model-steps are expected.
    programs: `done` of the `total` programs of this round are compiled.
    steps: `done` more model-steps are done.
    checkpoint: the cells and validation errors in `detail` are at step `done`.
    early: an early estimate: its heads, length, step and seconds in `detail`, and the same in `words`.
    workers: `detail` workers of a cluster are alive; `done` of the `total` buckets of this round are trained.
    count: `done` more of `total` things, whose name is `detail`; `words` say what is done with them.
    bytes: `done` of the `total` bytes of a file, or of what `detail` names, have come; None: their number is not known.
    stop: the user asked to stop.
    """

    kind: Kind
    words: str = ""
    done: int = 0
    total: int | None = 0
    detail: Any = None


Events = Callable[[Event], None]
"""Hears every event of a run, from any thread."""


def quiet(event: Event) -> None:
    """Ignore the event."""


def heard_by(*listeners: Events) -> Events:
    """Return a listener that tells all of these, in this order.

    One that raises an `Exception` hears nothing more: how a run is shown does not end it.
    """
    remaining = list(listeners)

    def tell(event: Event) -> None:
        for each in tuple(remaining):
            try:
                each(event)
            except Exception as error:
                with contextlib.suppress(ValueError):  # another thread was first
                    remaining.remove(each)
                    _log.warning("progress is shown no longer: %s: %s", type(error).__name__, error)

    return tell
