"""A progress bar of work in named phases, with time left, on stderr."""

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console

from .progress import MIN_BAR, Bar, terminal_bar
from .render.words import spoken_time

NEARLY = 0.98
"""A phase that takes more than was expected is shown as so much of itself until it ends."""


class Phases(Bar):
    """A bar of work in phases, in units that only have to be proportional to time.

    `total` is all work that is expected; `within` says how much was done so far, also within a phase.
    """

    def __init__(self, total: float = 0.0, within: Callable[[], float] = lambda: 0.0):
        super().__init__()
        self.total, self.within = total, within
        self.work = self.ended = self.before = 0.0

    def begin(self, words: str, work: float) -> None:
        """Begin a phase of this much work."""
        self.activity, self.work, self.before = words, work, self.within()
        self.draw(self)

    def end(self) -> None:
        """End the phase."""
        self.ended, self.work = self.ended + self.work, 0.0

    @property
    def share(self) -> float:
        """How much of all work is done."""
        inside = min(NEARLY * self.work, max(0.0, self.within() - self.before))
        return min(1.0, (self.ended + inside) / self.total) if self.total else 1.0

    def fitting_words(self, width: int) -> tuple[str, str]:
        """Return words before and after the bar that leave room for it in `width` columns."""
        share, so_far = self.share, time.monotonic() - self.began
        left = f"about {spoken_time(so_far * (1 - share) / share)} left" if 0 < share < 1 else ""
        full = [f"{share:.0%}", left, f"{spoken_time(so_far)} so far"]
        lines = [(self.activity, ", ".join(filter(None, full[:count]))) for count in (3, 2, 1)]
        lines.append((self.activity[: max(0, width - MIN_BAR - 6)], full[0]))
        return next((line for line in lines if sum(map(len, line)) + 2 + MIN_BAR <= width), lines[-1])


@contextlib.contextmanager
def phased_progress(
    console: Console, total: float, within: Callable[[], float], *, wanted: bool | None = None
) -> Iterator[Phases]:
    """Show a bar in a terminal, none where output goes to a file; `wanted` decides otherwise. See `Phases`."""
    phases = Phases(total, within)
    if wanted is False or not (wanted or console.is_terminal):
        yield phases
        return
    with terminal_bar(console, phases):
        yield phases
