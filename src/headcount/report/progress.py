"""A progress bar with time left, on stderr."""

import contextlib
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


@contextlib.contextmanager
def training_progress(console: Console, model_steps: int) -> Iterator[Callable[[int], None]]:
    """Yields the function to call with every number of model-steps done."""
    done = 0
    if model_steps == 0:
        yield lambda count: None
        return
    unit, words = (1000, "thousand model-steps") if model_steps >= 20_000 else (1, "model-steps")
    with Progress(*_columns("training", words), console=console) as progress:
        bar = progress.add_task("", total=max(1, round(model_steps / unit)))

        def on_steps(count: int) -> None:
            nonlocal done
            done += count
            progress.update(bar, completed=round(done / unit))

        yield on_steps


@contextlib.contextmanager
def counted_progress(console: Console, what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar of `total` things; yields the function to call with every number of them done."""
    with Progress(*_columns(what, unit), console=console) as progress:
        bar = progress.add_task("", total=total)
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
