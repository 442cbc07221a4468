"""Hearing one kind of event of a run."""

from collections.abc import Callable

from headcount.events import Event, Events


def hearing(kind: str, on_done: Callable[[int], object]) -> Events:
    """Calls `on_done` with how much is done at every event of a kind."""

    def hear(event: Event) -> None:
        if event.kind == kind:
            on_done(event.done)

    return hear
