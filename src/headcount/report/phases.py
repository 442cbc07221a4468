"""A progress bar of work in named phases, with time left, on stderr."""

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .progress import MAX_BAR, MIN_BAR
from .render.words import spoken_time

NEARLY = 0.98
"""A phase that takes more than was expected is shown as so much of itself until it ends."""


class Phases:
    """Work in phases, in units that only have to be proportional to time.

    Args:
        total: All work that is expected.
        within: How much work was done so far, also within a phase; None: phases count when they end.
    """

    def __init__(self, total: float, within: Callable[[], float] | None = None):
        self.total, self.within = total, within
        self.words, self.work, self.ended = "", 0.0, 0.0
        self.began, self.from_ = time.monotonic(), 0.0

    def begin(self, words: str, work: float) -> None:
        """A phase begins, of this much work."""
        self.words, self.work = words, work
        self.from_ = self.within() if self.within is not None else 0.0

    def end(self) -> None:
        """The phase has ended."""
        self.ended, self.work = self.ended + self.work, 0.0

    @property
    def share(self) -> float:
        """How much of all work is done."""
        inside = 0.0 if self.within is None else min(NEARLY * self.work, max(0.0, self.within() - self.from_))
        return min(1.0, (self.ended + inside) / self.total) if self.total else 1.0

    def line(self, width: int) -> tuple[str, str]:
        """What stands before and after the bar, so much of it as leaves room for a bar in `width` columns."""
        share, so_far = self.share, time.monotonic() - self.began
        left = f"about {spoken_time(so_far * (1 - share) / share)} left" if 0 < share < 1 else ""
        full = [f"{share:.0%}", left, f"{spoken_time(so_far)} so far"]
        for after in (full, full[:2], full[:1]):
            line = self.words, ", ".join(filter(None, after))
            if sum(map(len, line)) + 2 + MIN_BAR <= width:
                return line
        return self.words[: max(0, width - MIN_BAR - 6)], f"{share:.0%}"


class _Line(ProgressColumn):
    """One line that fits: words, a bar, words."""

    def __init__(self, phases: Phases, console: Console):
        super().__init__()
        self.phases, self.console = phases, console

    def render(self, task: Task) -> RenderableType:
        before, after = self.phases.line(self.console.width)
        width = max(1, min(MAX_BAR, self.console.width - len(before) - len(after) - 2))
        grid = Table.grid(padding=(0, 1))
        for _ in range(3):
            grid.add_column(no_wrap=True)
        grid.add_row(Text(before), ProgressBar(total=1.0, completed=self.phases.share, width=width), Text(after))
        return grid


@contextlib.contextmanager
def phased_progress(
    console: Console, total: float, within: Callable[[], float] | None = None, *, wanted: bool | None = None
) -> Iterator[Phases]:
    """A bar in a terminal, none where output goes to a file; `wanted` decides otherwise. See `Phases`."""
    phases = Phases(total, within)
    if wanted is False or not (wanted or console.is_terminal) or total == 0:
        yield phases
        return
    with Progress(_Line(phases, console), console=console) as progress:
        progress.add_task("", total=None)
        yield phases
