"""Studies that train nothing: their numbers are computed, piece by piece, and kept in one JSON file of the folder."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._errors import StoreError
from ..report.files import write_whole
from ..report.section import Section
from .base import Scale

Pieces = dict[str, Any]
"""What was computed, by the name of the piece, as JSON."""


@dataclass(frozen=True, kw_only=True)
class ClosedFormStudy(ABC):
    """`name` is what one types, `title` what the paper calls it, `asks` what it shows."""

    name: str
    title: str
    asks: str

    @abstractmethod
    def pieces(self, scale: Scale) -> dict[str, Callable[[], Any]]:
        """What is to be computed, by name; each gives JSON."""

    @abstractmethod
    def expected_seconds(self, scale: Scale) -> float:
        """About how long all pieces take on two cores."""

    @abstractmethod
    def section(self, found: Pieces, scale: Scale) -> Section:
        """Its part of a report, from at least one piece."""

    def path(self, root: Path, scale: Scale) -> Path:
        return root / f"{self.name}-{scale}.json"

    def read(self, root: Path, scale: Scale) -> Pieces:
        """The pieces that a folder holds; none where it has no such file."""
        path = self.path(root, scale)
        if not path.exists():
            return {}
        try:
            content = json.loads(path.read_text())
            if not isinstance(content, dict):
                raise TypeError("it holds no pieces")
            return {name: content[name] for name in self.pieces(scale) if name in content}
        except (OSError, ValueError, TypeError) as error:
            raise StoreError(f"{path} cannot be read ({error}); move it away to compute it again.") from error

    def run(self, root: Path, scale: Scale, on_done: Callable[[int], None] = lambda pieces: None) -> Pieces:
        """Compute what the folder does not hold yet; every piece is written as soon as it is there."""
        found = self.read(root, scale)
        for name, compute in self.pieces(scale).items():
            if name not in found:
                found[name] = compute()
                write_whole(self.path(root, scale), json.dumps(found, indent=1).encode())
                on_done(1)
        return found
