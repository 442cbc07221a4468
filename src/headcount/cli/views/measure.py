"""What `headcount measure --dry-run` prints."""

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from ...engine import Plan


def plan_view(plan: Plan, root: Path) -> RenderableType:
    """What a run would do."""
    view = Table(title=f"the plan for {root}", title_justify="left", box=None)
    for column in ("length", "heads", "members", "steps"):
        view.add_column(column, justify="right")
    for bucket in plan.buckets:
        heads = ", ".join(str(count) for count in sorted({cell.model.heads for cell in bucket.cells}))
        view.add_row(str(bucket.shape.length), heads, str(len(bucket.cells)), str(bucket.shape.train.steps))
    lines = [
        f"{plan.cells} cells, {plan.settled} already done",
        f"{len(plan.buckets)} buckets, {plan.programs} programs to compile",
        f"about {plan.seconds:.0f} s and {plan.bytes / 2**20:.0f} MiB on {plan.machine.description}",
    ]
    return Group(view, *lines)
