"""A progress bar with time left, on stderr."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
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


@contextlib.contextmanager
def training_progress(console: Console, model_steps: int) -> Iterator[Callable[[int], None]]:
    """Yields the function to call with every number of model-steps done; without any to do, nothing is shown."""
    if model_steps == 0:
        yield lambda count: None
        return
    done = 0
    unit, words = (1000, "thousand model-steps") if model_steps >= 20_000 else (1, "model-steps")
    with Progress(*_columns("training", words), console=console) as progress:
        bar = progress.add_task("", total=max(1, round(model_steps / unit)))

        def on_steps(count: int) -> None:
            nonlocal done
            done += count
            progress.update(bar, completed=round(done / unit))

        yield on_steps


def automatic_progress(
    model_steps: int, wanted: bool | None = None
) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    """A progress bar in a terminal or a notebook, and none where output goes to a file; `wanted` decides otherwise."""
    console = Console(stderr=True)
    if wanted is False or model_steps == 0:
        return training_progress(console, 0)
    if _in_notebook():
        return notebook_progress(model_steps)
    return training_progress(console, model_steps if wanted or console.is_terminal else 0)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def notebook_progress(model_steps: int) -> Iterator[Callable[[int], None]]:
    """A bar that redraws itself below the cell; at the end it says how long training took."""
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    began, done = time.monotonic(), 0
    handle = display(HTML("training"), display_id=True)

    def on_steps(count: int) -> None:
        nonlocal done
        done += count
        left = (time.monotonic() - began) * (model_steps - done) / max(1, done)
        bar = f'<progress value="{done}" max="{model_steps}"></progress>'
        handle.update(HTML(f"{bar} {done / model_steps:.0%}, {left:.0f} s left"))

    yield on_steps
    handle.update(HTML(f"{done:,} model-steps in {time.monotonic() - began:.0f} s"))


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
