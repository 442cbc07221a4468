"""A progress bar with time left, on stderr."""

import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

SLOW = 24 * 3600.0
"""Seconds over which the speed of counted things is averaged: one of them can take minutes."""


class StepBar(ABC):
    """A bar of model-steps. `expect` adds to what is to be done, `advance` to what is; workers may call both."""

    def __init__(self):
        self.total = self.done = 0
        self.why = ""
        self.began = time.monotonic()

    def expect(self, model_steps: int, why: str = "") -> None:
        self.total += model_steps
        self.why = why
        self.draw()

    def advance(self, model_steps: int) -> None:
        self.done += model_steps
        self.draw()

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
        self.progress = Progress(*_columns("training{task.description}", "model-steps"), console=console)
        self.bar: TaskID | None = None

    def draw(self) -> None:
        if self.bar is None and self.total:
            self.progress.start()
            self.bar = self.progress.add_task("")
        if self.bar is not None:
            total, why = max(self.total, self.done), f" ({escape(self.why)})" if self.why else ""
            self.progress.update(self.bar, completed=self.done, total=total, description=why)


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
            total = max(self.total, self.done)
            left = (time.monotonic() - self.began) * (total - self.done) / max(1, self.done)
            bar = f'<progress value="{self.done}" max="{total}"></progress>'
            self.handle.update(self.html(f"{bar} {self.done / total:.0%}, {left:.0f} s left"))

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
