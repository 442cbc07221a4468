"""Whether what a file holds fits in this machine's memory, before it is read."""

import os
import zipfile
from pathlib import Path

from .._errors import require

MAX_LINE_BYTES = 2**28
"""Of one line of text: a longer one is a damaged or a hostile file."""
TEXT_FACTOR = 2
"""Bytes of memory per byte of text that is read and made a task of, at least."""


def require_fits(path: Path, size: int) -> None:
    """Raise `InputError` if `size` bytes are more than this machine's memory."""
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:  # the sentence costs more than the comparison, which is made per line
        sizes = f"{size / 2**30:.1f} GiB of memory, and this machine has {memory / 2**30:.1f} GiB"
        require(False, f"{path} needs at least {sizes}.")


def require_text_fits(path: Path, size: int) -> None:
    """Raise `InputError` if numbers in `size` bytes of text need more than this machine's memory."""
    require_fits(path, TEXT_FACTOR * size)


def require_unpacked_fits(path: Path) -> None:
    """Raise `InputError` if a zip archive says that it holds more than this machine's memory."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            require_fits(path, sum(member.file_size for member in archive.infolist()))
