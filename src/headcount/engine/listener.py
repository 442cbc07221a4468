"""Who is told how a run goes: a progress bar, a live page, a test."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from ..store import Cell
from ..store.live_writer import LiveWriter

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Early:
    """What a model of many heads looked like, part-way through its training."""

    heads: int
    length: int
    step: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Functions that are called while a run goes, most of them from worker threads; by default nobody listens.

    Args:
        on_plan: Before training, and before each further round: why, and how many model-steps it adds.
        on_programs: Once data is prepared, and when a program is ready: how many are, and how many this round needs.
        on_steps: After every checkpoint: how many model-steps more are done.
        on_checkpoint: After every checkpoint: cells, the step they are at, and their validation errors.
        on_early: When the early estimate is known.
        on_workers: Where workers of a cluster train: how many are alive, and how many of the buckets are done.
    """

    on_plan: Callable[[str, int], None] = lambda why, model_steps: None
    on_programs: Callable[[int, int], None] = lambda ready, needed: None
    on_steps: Callable[[int], None] = lambda model_steps: None
    on_checkpoint: Callable[[Sequence[Cell], int, Float[np.ndarray, " cells"]], None] = lambda cells, step, errors: None
    on_early: Callable[[Early], None] = lambda early: None
    on_workers: Callable[[int, int, int], None] = lambda alive, buckets_done, buckets: None

    @classmethod
    def joined(cls, *listeners: "Listener") -> "Listener":
        """A listener that tells all of these, in this order. One that raises an `Exception` is told nothing more: how a
        run is shown does not end it."""
        remaining = list(listeners)

        def telling(name: str) -> Callable[..., None]:
            def tell(*what: Any) -> None:
                for each in tuple(remaining):
                    try:
                        getattr(each, name)(*what)
                    except Exception as error:
                        with contextlib.suppress(ValueError):  # another thread was first
                            remaining.remove(each)
                            _log.warning("progress is shown no longer: %s: %s", type(error).__name__, error)

            return tell

        return cls(**{each.name: telling(each.name) for each in fields(cls)})


@contextlib.contextmanager
def shown_live(
    root: Path, command: str, listener: Listener, model_steps: int = 0
) -> Iterator[tuple[Listener, LiveWriter]]:
    """A listener that also keeps `live.json` of a results folder, and the writer, whose `ended` may be set.

    Args:
        root: The results folder, open for writing.
        command: What was typed.
        listener: Who else is told.
        model_steps: How many are expected, where no `on_plan` will say so.
    """
    with LiveWriter(root, command) as writer:
        if model_steps:
            writer.on_plan("", model_steps)
        functions = {each.name: getattr(writer, each.name) for each in fields(Listener)}
        yield Listener.joined(listener, Listener(**functions)), writer
