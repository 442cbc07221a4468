"""What `headcount verify` prints."""

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ...verify import Recheck


def recheck_view(rechecks: Sequence[Recheck]) -> RenderableType:
    """Cell by cell, then one sentence."""
    view = Table(box=None)
    for column in ("heads", "T", "seed", "stored error", "error now"):
        view.add_column(column, justify="right")
    view.add_column("")
    colours = {"same": "green", "close": "yellow", "different": "red"}
    for recheck in rechecks:
        cell = recheck.stored.cell
        errors = [r.outcome.value if math.isnan(r.error) else f"{r.error:.6e}" for r in (recheck.stored, recheck.again)]
        style = colours[recheck.agreement]
        view.add_row(
            str(cell.model.heads), str(cell.length), str(cell.seed), *errors, f"[{style}]{recheck.agreement}[/{style}]"
        )
    counts = {name: sum(recheck.agreement == name for recheck in rechecks) for name in colours}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    words = {
        "same": "the same to the last bit",
        "close": "within a factor of five of the stored error, or of the median of its seeds",
        "different": "trust neither until it is known why",
    }
    meanings = [f"  {name}: {meaning}" for name, meaning in words.items() if counts[name]]
    moved = list(dict.fromkeys(line for recheck in rechecks for line in recheck.moved))
    moved += list(dict.fromkeys(recheck.again.message for recheck in rechecks if recheck.again.message))
    return Group(view, "", f"[bold]{said}[/bold]", *meanings, *(escape(f"  {line}") for line in moved))
