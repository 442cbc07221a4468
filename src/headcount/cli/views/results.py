"""What `headcount status` prints."""

from pathlib import Path
from typing import TypedDict

from rich.console import Group, RenderableType


class SweepStatus(TypedDict):
    """How far one command is: `done` of its `cells`."""

    command: str
    started: str
    cells: int
    done: int


def status_view(root: Path, counts: dict[str, int], sweeps: list[SweepStatus]) -> RenderableType:
    """What is stored, and for each command how far it is."""
    lines = [f"{root}: " + ", ".join(f"{count} {name}" for name, count in counts.items())]
    for sweep in sweeps:
        missing = sweep["cells"] - sweep["done"]
        lines.append(f"  {sweep['done']} of {sweep['cells']} cells: {sweep['command'] or 'a sweep from Python'}")
        if missing:
            lines.append(f"    {missing} missing; run that command again to go on")
    return Group(*lines)
