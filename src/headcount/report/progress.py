"""One progress bar with time left: on stderr in a terminal, below the cell in a notebook."""

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..events import Event, Events, heard_by, quiet
from .render.words import spoken_time

MIN_BAR, MAX_BAR = 8, 40
"""Columns of a bar."""
NOTEBOOK_COLUMNS = 100


class Bar:
    """How far something is, in words and as a share. It hears events, and calls `draw` after each that changes it.

    Time left is known from the first steps on, and never before: compiling says nothing about it.
    """

    def __init__(self, draw: Callable[["Bar"], None] = lambda bar: None):
        self.total, self.done = 0, 0
        self.why, self.activity, self.unit = "", "", "model-steps"
        self.programs: tuple[int, int] | None = None
        self.crew = ""
        self.stepping = self.stopping = False
        self.began = time.monotonic()
        self.first_ready: float | None = None
        self.draw = draw

    def __call__(self, event: Event) -> None:
        match event.kind:
            case "round":
                self.total += event.total or 0
                self.why, self.programs, self.crew, self.stepping = event.words, None, "", False
            case "programs":
                self.programs = event.done, event.total or 0
                self.first_ready = self.first_ready or (time.monotonic() if event.done else None)
            case "steps":
                self._set_done(self.done + event.done)
            case "workers":
                self.crew = f"{event.detail} worker{'s' * (event.detail != 1)}, {event.done}/{event.total} buckets"
            case "count":
                self.activity, self.unit, self.total = event.words, event.detail, event.total or 0
                self._set_done(self.done + event.done)
            case "bytes":
                self.activity, self.unit, self.total = event.words, event.detail, event.total or 0
                self._set_done(event.done)
            case "stop":
                self.stopping = True
            case _:
                return
        self.draw(self)

    def _set_done(self, done: int) -> None:
        if done < self.done:  # the next file
            self.began = self.first_ready = time.monotonic()
        self.done, self.stepping = done, done > 0
        self.first_ready = self.first_ready or self.began

    @property
    def phase(self) -> str:
        """What is being done."""
        if self.stopping or self.activity:
            return "stopping" if self.stopping else self.activity
        if self.programs is None:
            return "training" if self.stepping else "preparing data"
        ready, needed = self.programs
        if ready >= needed:
            return "training"
        which = "the program" if needed == 1 else f"{ready + 1} of {needed} programs"
        return f"training, compiling {which}" if self.stepping else f"compiling {which}"

    @property
    def share(self) -> float:
        """How much of what is expected so far is done."""
        return self.done / max(1, self.total, self.done)

    @property
    def left(self) -> str:
        """Time left for what is expected so far, in words; empty while it is unknown."""
        if self.stopping or self.first_ready is None or not self.stepping or self.share == 1:
            return ""
        seconds = (time.monotonic() - self.first_ready) * (1 - self.share) / self.share
        return f"about {spoken_time(seconds)} left{' of this round' if self.why else ''}"

    def fitting_words(self, width: int) -> tuple[str, str]:
        """Return words before and after the bar that leave room for it in `width` columns."""
        percent, so_far = f"{self.share:.0%}", f"{spoken_time(time.monotonic() - self.began)} so far"
        steps = f"{self.done:,}/{max(self.total, self.done):,} {self.unit}"
        crew = "" if self.stopping else self.crew
        phase, short = ", ".join(filter(None, [self.phase, crew])), self.phase.removeprefix("training, ")
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

    def as_line(self, width: int) -> RenderableType:
        """Return one line of a terminal: words, a bar, words."""
        before, after = self.fitting_words(width)
        columns = max(1, min(MAX_BAR, width - len(before) - len(after) - 2))
        grid = Table.grid(padding=(0, 1))
        for _ in range(3):
            grid.add_column(no_wrap=True)
        grid.add_row(Text(before), ProgressBar(total=1.0, completed=self.share, width=columns), Text(after))
        return grid


@contextlib.contextmanager
def terminal_bar(console: Console, bar: Bar | None = None) -> Iterator[Bar]:
    """Show a bar in a terminal; it appears when there is anything to do."""
    bar = bar or Bar()
    bar.draw = lambda bar: live.start() if bar.total or bar.done else None
    live = Live(get_renderable=lambda: bar.as_line(console.width), console=console, refresh_per_second=10)
    try:
        yield bar
    finally:
        shown = live.is_started
        live.stop()
        if shown and not console.is_interactive:
            console.print()  # the last line is left open in a file


@contextlib.contextmanager
def notebook_bar() -> Iterator[Bar]:
    """Show a bar that redraws itself below the cell; it appears when there is anything to do."""
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    handle = None

    def draw(bar: Bar) -> None:
        nonlocal handle
        if handle is None and bar.total:
            handle = display(HTML("training"), display_id=True)
        if handle is not None:
            before, after = bar.fitting_words(NOTEBOOK_COLUMNS)
            progress = f'<progress value="{bar.done}" max="{max(bar.total, bar.done)}"></progress>'
            handle.update(HTML(f"{html.escape(before)} {progress} {after}"))

    bar = Bar(draw)
    yield bar
    if handle is not None:
        with contextlib.suppress(Exception):  # a front end that is gone; the results are there
            handle.update(HTML(f"{bar.done:,} model-steps in {time.monotonic() - bar.began:.0f} s"))


def log(event: Event) -> None:
    """Print the words of notes on stderr."""
    if event.kind == "note":
        print(event.words, file=sys.stderr)


@contextlib.contextmanager
def automatic_progress(wanted: bool | None = None) -> Iterator[Events]:
    """Show a bar and notes in a terminal or a notebook, not where output goes to a file, unless `wanted` is given."""
    console = Console(stderr=True)
    in_notebook = _in_notebook()
    if wanted is False or not (wanted or in_notebook or console.is_terminal):
        yield quiet
        return
    with notebook_bar() if in_notebook else terminal_bar(console) as bar:
        yield heard_by(bar, log)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def counted_progress(console: Console, what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a bar of `total` things; yield the function to call with every number of them done."""
    with terminal_bar(console) as bar:
        bar(Event("count", what, 0, total, unit))
        yield lambda count: bar(Event("count", what, count, total, unit))


@contextlib.contextmanager
def worded_progress(console: Console, unit: str = "steps") -> Iterator[Callable[[int, int | None, str], None]]:
    """Show a bar; yield the function to call with how much of a work is done, how much there is, and what it is."""
    with terminal_bar(console) as bar:
        yield lambda done, total, words: bar(Event("bytes", words, done, total, unit))
