"""Validation curves of a results file, read when they are asked for: most of what is stored, and few are drawn."""

import contextlib
import sqlite3
from pathlib import Path

from ..errors import StoreError
from .cell import RESTORE
from .database import read_only, why_unread

FEW = 64
"""Curves that are read one by one; whoever asks for more wants all of them."""


class Curves:
    """The curves of a file by the key of their cell, as texts of JSON. Every format has them under the same name."""

    def __init__(self, file: Path):
        self._file, self._asked = file, 0
        self._texts: dict[str, str] = {}

    def text(self, key: str) -> str:
        """The curve of a cell. Raises StoreError where it cannot be read, or is there no more."""
        if key not in self._texts:
            self._asked += 1
            every = self._asked > FEW
            try:
                with contextlib.closing(read_only(self._file)) as connection:
                    rows = connection.execute(
                        f"SELECT key, curve FROM cells{'' if every else ' WHERE key = ?'}", () if every else (key,)
                    ).fetchall()
            except sqlite3.Error as error:
                raise why_unread(self._file, error) from error
            self._texts |= dict(rows)
        if not isinstance(self._texts.get(key), str):
            raise StoreError(f"{self._file} holds no curve of cell {key}, which was there. {RESTORE}")
        return self._texts[key]
