"""The results folders under one parent, by names that can stand in an address; nothing outside of it has a name."""

from pathlib import Path

from ..store.folders import results_below


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

    def results(self) -> tuple[str, ...]:
        """The names of all results folders below, itself included; links are not entered."""
        return tuple(_name(path, self.root) for path in results_below(self.root))


def _name(path: Path, root: Path) -> str:
    return "" if path == root else path.relative_to(root).as_posix()
