"""A progress bar with time left, on stderr."""

import contextlib
import html
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .render.words import spoken_time

MIN_BAR, MAX_BAR = 8, 40
"""Columns of a bar."""
NOTEBOOK_COLUMNS = 100

SLOW = 24 * 3600.0
"""Seconds over which the speed of counted things is averaged: one of them can take minutes."""


class StepBar(ABC):
    """A bar of model-steps, and what is being done: preparing data, compiling, training, stopping.

    Worker threads may call it. Time left is known from the first steps on, and never before.
    """

    def __init__(self):
        self.total = self.done = 0
        self.why = ""
        self.programs: tuple[int, int] | None = None
        self.workers = 0
        self.buckets: tuple[int, int] | None = None
        self.stepping = self.stopping = False
        self.began = time.monotonic()
        self.first_ready: float | None = None

    def expect(self, model_steps: int, why: str = "") -> None:
        """Add a round of so many model-steps; `why` says what it is for."""
        self.total += model_steps
        self.why, self.programs, self.buckets, self.stepping = why, None, None, False
        self.draw()

    def compiled(self, ready: int, needed: int) -> None:
        """So many of the programs that this round needs are ready."""
        self.programs = ready, needed
        if ready and self.first_ready is None:
            self.first_ready = time.monotonic()
        self.draw()

    def advance(self, model_steps: int) -> None:
        """So many model-steps more are done."""
        self.done += model_steps
        self.stepping = True
        if self.first_ready is None:
            self.first_ready = self.began
        self.draw()

    def working(self, workers: int, done: int, buckets: int) -> None:
        """So many workers of a cluster are there, and so many of this round's buckets are trained."""
        self.workers, self.buckets = workers, (done, buckets)
        self.draw()

    def stop(self) -> None:
        """Show that it was asked to stop."""
        self.stopping = True
        self.draw()

    @property
    def phase(self) -> str:
        """What is being done."""
        if self.stopping:
            return "stopping"
        if self.programs is None:
            return "training" if self.stepping else "preparing data"
        ready, needed = self.programs
        if ready >= needed:
            return "training"
        which = "the program" if needed == 1 else f"{ready + 1} of {needed} programs"
        return f"training, compiling {which}" if self.stepping else f"compiling {which}"

    @property
    def crew(self) -> str:
        """The workers of a cluster and what they have done; empty where threads train, and while it stops."""
        if self.buckets is None or self.stopping:
            return ""
        return f"{self.workers} worker{'s' * (self.workers != 1)}, {self.buckets[0]}/{self.buckets[1]} buckets"

    @property
    def share(self) -> float:
        """How much of the model-steps that are expected so far is done."""
        return self.done / max(1, self.total, self.done)

    @property
    def left(self) -> str:
        """Time left for the steps that are expected so far, in words; empty while it is unknown."""
        if self.stopping or self.first_ready is None or not self.stepping or self.share == 1:
            return ""
        seconds = (time.monotonic() - self.first_ready) * (1 - self.share) / self.share
        return f"about {spoken_time(seconds)} left{' of this round' if self.why else ''}"

    def words(self, width: int) -> tuple[str, str]:
        """What stands before and after the bar, so much of it as leaves room for a bar in `width` columns."""
        percent, so_far = f"{self.share:.0%}", f"{spoken_time(time.monotonic() - self.began)} so far"
        steps = f"{self.done:,}/{max(self.total, self.done):,} model-steps"
        phase, short = ", ".join(filter(None, [self.phase, self.crew])), self.phase.removeprefix("training, ")
        before = f"{phase} ({self.why})" if self.why else phase
        brief = self.left.removesuffix(" of this round")
        choices = (
            (before, [steps, self.left, so_far]),
            (before, [percent, self.left, so_far]),
            (phase, [percent, self.left, so_far]),
            (phase, [percent, brief]),
            (self.phase, [percent, brief]),
            (short, [percent, brief]),
            (short, [percent]),
        )
        lines = [(start, ", ".join(filter(None, parts))) for start, parts in choices]
        return next((line for line in lines if sum(map(len, line)) + 2 + MIN_BAR <= width), lines[-1])

    @abstractmethod
    def draw(self) -> None:
        """Show how far it is."""


class NoBar(StepBar):
    def draw(self) -> None:
        pass


class TerminalBar(StepBar):
    """A bar of rich, shown from the first step that is expected."""

    def __init__(self, console: Console):
        super().__init__()
        self.progress = Progress(_BarLine(self, console), console=console)
        self.bar: TaskID | None = None

    def draw(self) -> None:
        if self.bar is None and self.total:
            self.progress.start()
            self.bar = self.progress.add_task("", total=None)


class _BarLine(ProgressColumn):
    """One line that fits: words, a bar, words."""

    def __init__(self, bar: StepBar, console: Console):
        super().__init__()
        self.bar, self.console = bar, console

    def render(self, task: Task) -> RenderableType:
        before, after = self.bar.words(self.console.width)
        width = max(1, min(MAX_BAR, self.console.width - len(before) - len(after) - 2))
        grid = Table.grid(padding=(0, 1))
        for _ in range(3):
            grid.add_column(no_wrap=True)
        grid.add_row(Text(before), ProgressBar(total=1.0, completed=self.bar.share, width=width), Text(after))
        return grid


class NotebookBar(StepBar):
    """A bar that redraws itself below the cell, shown from the first step that is expected."""

    def __init__(self):
        super().__init__()
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        self.html, self.display = HTML, display
        self.handle = None

    def draw(self) -> None:
        if self.handle is None and self.total:
            self.handle = self.display(self.html("training"), display_id=True)
        if self.handle is not None:
            before, after = self.words(NOTEBOOK_COLUMNS)
            bar = f'<progress value="{self.done}" max="{max(self.total, self.done)}"></progress>'
            self.handle.update(self.html(f"{html.escape(before)} {bar} {after}"))

    def end(self) -> None:
        """Say how long it took, where anything was shown."""
        if self.handle is not None:
            self.handle.update(self.html(f"{self.done:,} model-steps in {time.monotonic() - self.began:.0f} s"))


@contextlib.contextmanager
def training_progress(console: Console, model_steps: int = 0) -> Iterator[StepBar]:
    """A bar in a terminal, which expects so many model-steps; it appears when there are any to do."""
    bar = TerminalBar(console)
    bar.expect(model_steps)
    try:
        yield bar
    finally:
        bar.progress.stop()


@contextlib.contextmanager
def automatic_progress(wanted: bool | None = None) -> Iterator[StepBar]:
    """A progress bar in a terminal or a notebook, and none where output goes to a file; `wanted` decides otherwise."""
    console = Console(stderr=True)
    if wanted is False or not (wanted or _in_notebook() or console.is_terminal):
        yield NoBar()
    elif _in_notebook():
        bar = NotebookBar()
        yield bar
        with contextlib.suppress(Exception):  # a front end that is gone; the results are there
            bar.end()
    else:
        with training_progress(console) as bar:
            yield bar


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def counted_progress(console: Console, what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar of `total` things; yields the function to call with every number of them done."""
    with Progress(*_columns(what, unit), console=console, speed_estimate_period=SLOW) as progress:
        bar = progress.add_task("", total=total)
        progress.advance(bar, 0)  # time left is known from the first one on
        yield lambda count: progress.advance(bar, count)


@contextlib.contextmanager
def bytes_progress(console: Console) -> Iterator[Callable[[int, int | None], None]]:
    """Yields the function to call with the bytes that have come of a file and how many it has; a bar from the first."""
    columns = (TextColumn("fetching"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bars: list[TaskID] = []

        def on_bytes(done: int, total: int | None) -> None:
            if not bars or progress.tasks[bars[-1]].completed > done:  # fewer than before: the next file
                bars.append(progress.add_task("", total=total))
            progress.update(bars[-1], completed=done, total=total)

        yield on_bytes


def _columns(what: str, unit: str) -> tuple[ProgressColumn, ...]:
    return (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit}, left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        TextColumn("so far"),
        TimeElapsedColumn(),
    )
