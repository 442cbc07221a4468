"""The results folders under one parent, by names that can stand in an address; nothing outside of it has a name."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..store import FILE_NAME, LIVE_FILE

MAX_DEPTH = 4
MAX_VISITED = 5000
"""Folders looked into; a home directory given by mistake does not keep the page from showing."""
SKIPPED = ("weights", "collisions", "node_modules", "__pycache__")


@dataclass(frozen=True)
class Listing:
    """The names of results folders, and whether there may be more that were not looked for."""

    names: tuple[str, ...]
    cut_short: bool = False


class Parent:
    """A folder that is served. A name is a path below it with forward slashes; "" is the folder itself."""

    def __init__(self, root: Path):
        self.root = Path(root).resolve()

    def path(self, name: str) -> Path | None:
        """Where a name leads; None for one that leads out, by `..`, by an absolute path or by a link."""
        parts = name.split("/") if name else []
        if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
            return None
        try:
            path = self.root.joinpath(*parts)
            return path if path.resolve().is_relative_to(self.root) else None
        except (OSError, ValueError, RuntimeError):  # too long a name, or a link that leads to itself
            return None

    def results(self) -> Listing:
        """Every results folder below, itself included; links and hidden folders are not entered."""
        names: list[str] = []
        visited = 0
        for visited, name in enumerate(self._below("", MAX_DEPTH)):
            if visited >= MAX_VISITED:
                return Listing(tuple(names), cut_short=True)
            if holds_results(self.root / name):
                names.append(name)
        return Listing(tuple(names))

    def _below(self, name: str, depth: int) -> Iterator[str]:
        yield name
        if depth == 0:
            return
        try:
            with os.scandir(self.root / name) as entries:
                inner = sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith(".")
                    and entry.name not in SKIPPED
                    and entry.is_dir(follow_symlinks=False)
                )
        except OSError:
            return
        for each in inner:
            yield from self._below(f"{name}/{each}" if name else each, depth - 1)


def holds_results(path: Path) -> bool:
    """Whether a run has begun to write here."""
    return (path / FILE_NAME).is_file() or (path / LIVE_FILE).is_file()
