"""What a results folder holds, and ways to spoil it: another process that is killed, rows that make no sense."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.store import FILE_NAME as FILE
from headcount.store import Store

OPENINGS = pytest.mark.parametrize("opening", [Store.open_for_reading, Store.open_for_writing], ids=["read", "write"])


def seeds_in(root: Path) -> set[int]:
    with Store.open_for_reading(root) as store:
        return {record.cell.seed for record in store.records()}


def files_in(root: Path) -> dict[str, bytes]:
    """All that matters: not the empty lock."""
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file() and path.name != "lock"}


@contextlib.contextmanager
def another_process(script: str, *arguments: object):
    """A process that runs `script` and then waits, still holding all it opened, until it is killed with -9."""
    prelude = (
        "import os, pathlib, resource, sys\n"
        "from headcount.errors import StoreError\nfrom headcount.store import Store\n"
        "from tests.store.records import an_experiment, bucket, insert\nroot = pathlib.Path(sys.argv[1])\n"
    )
    waiting = "\nprint('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", prelude + script + waiting, *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = []
        for line in process.stdout:
            if line == "ready\n":
                break
            said.append(line.rstrip())
        yield said
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def in_every_cell(root: Path, column: str, value: str) -> None:
    with contextlib.closing(sqlite3.connect(root / FILE)) as connection, connection:
        connection.execute(f"UPDATE cells SET {column} = {value}")
