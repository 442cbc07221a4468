"""A progress bar with time left, on stderr."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextlib.contextmanager
def training_progress(console: Console, model_steps: int) -> Iterator[Callable[[int], None]]:
    """Yields the function to call with every number of model-steps done."""
    done = 0
    if model_steps == 0:
        yield lambda count: None
        return
    with Progress(*_columns("training", "thousand model-steps"), console=console) as progress:
        bar = progress.add_task("", total=max(1, round(model_steps / 1000)))

        def on_steps(count: int) -> None:
            nonlocal done
            done += count
            progress.update(bar, completed=round(done / 1000))

        yield on_steps


@contextlib.contextmanager
def counted_progress(console: Console, what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar of `total` things; yields the function to call with every number of them done."""
    with Progress(*_columns(what, unit), console=console) as progress:
        bar = progress.add_task("", total=total)
        yield lambda count: progress.advance(bar, count)


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
