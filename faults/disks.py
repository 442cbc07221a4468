"""Disks that are full or read-only, and files that somebody else deletes, cuts or replaces while a sweep runs."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from headcount.store import FILE_NAME

from .checks import Problem, Trials, quiet, read, refused
from .processes import wait_for
from .syscalls import Skipped
from .trial import Bench, Trial, exports


def size_limit(bench: Bench, draw: np.random.Generator) -> Trials:
    """No file may grow beyond a limit, drawn between nothing and enough: told, and kept is what was committed.

    The output is written to a file too: the least limit leaves room for it.
    """
    while True:
        trial = Trial(bench)
        for _ in range(2):
            run = trial.run(file_bytes=int(2 ** draw.uniform(10, 18)))
            yield trial.refused(run, 0, 1)
        yield trial.complete()


@contextlib.contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """A file system of this size, in memory."""
    place.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        raise Skipped("mounting a small file system needs root")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise Skipped(f"a small file system cannot be mounted ({made.stderr.strip()})")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=False)


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)


def full_disk(bench: Bench, draw: np.random.Generator) -> Trials:
    """A real file system that is full at some point, drawn; with more space, the same command continues."""
    while True:
        with mounted(bench.scratch.new() / "disk", f"{draw.integers(4, 400)}k") as disk:
            trial = Trial(bench, folder=disk / "results")
            run = trial.run()
            yield trial.refused(run, 0, 1)
            remount(disk, "size=50m")
            yield trial.complete()


def read_only(bench: Bench, draw: np.random.Generator) -> Trials:
    """A file system that is read-only: reading works, writing is refused with a sentence, nothing changes."""
    with mounted(bench.scratch.new() / "disk", "50m") as disk:
        trial = Trial(bench, folder=disk / "results")
        trial.run(FAULTS_KILL="commit:4:0.001")
        yield trial.check()
        remount(disk, "ro")
        for verb in (("show", trial.folder), ("status", trial.folder), ("export", trial.folder)):
            run = bench.warm.run(*verb)
            yield trial.refused(run, 0)
        run = trial.run()
        yield trial.refused(run, 1)
        remount(disk, "rw")
        yield trial.complete()


def deleted(folder: Path) -> None:
    (folder / FILE_NAME).unlink()


def folder_deleted(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def folder_moved(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def emptied(folder: Path) -> None:
    os.truncate(folder / FILE_NAME, 0)


def halved(folder: Path) -> None:
    os.truncate(folder / FILE_NAME, (folder / FILE_NAME).stat().st_size // 2)


def replaced(folder: Path) -> None:
    """Another store is moved to its name, as a synchronising program does."""
    other = folder / "other"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE letters (text)")
    other.replace(folder / FILE_NAME)


def overwritten(folder: Path) -> None:
    """A larger file is copied over it, as `cp` does: it is still the same file."""
    other = folder.with_name("overwriting")
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE letters (text)")
        connection.execute("INSERT INTO letters VALUES (zeroblob(1000000))")
        connection.commit()
    shutil.copyfile(other, folder / FILE_NAME)


def weights_deleted(folder: Path) -> None:
    (folder / "weights").rename(folder.with_name("moved weights"))


MEDDLING: tuple[Callable[[Path], None], ...] = (
    *(deleted, folder_deleted, folder_moved, emptied, halved, replaced, overwritten, weights_deleted),
)


def meddled(bench: Bench, draw: np.random.Generator) -> Trials:
    """Somebody deletes, cuts, moves or replaces files while a sweep runs. What they destroyed is gone; but a run that
    ends with 0 must have all its cells on disk, and any other must say a sentence."""
    while True:
        for meddle in MEDDLING:
            trial, commits = Trial(bench), int(draw.integers(1, 5))

            def during(process: int, trial=trial, meddle=meddle, commits=commits) -> None:
                if wait_for(lambda: trial.events().count("committed") >= commits, 30):
                    with contextlib.suppress(FileNotFoundError):
                        meddle(trial.folder)

            run = trial.run(during=during)
            problems = refused(run, 0, 1)
            contents, broken = read(trial.folder)
            whole = contents == bench.sweep.contents and not broken
            if run.code == 0 and not whole:
                what = f"{meddle.__name__} after {commits} commits: exit code 0, {len(contents.cells)} cells on disk"
                problems.append(Problem("no sentence", f"{what} {broken[:1]}"))
            again = bench.warm.run(*trial.command)
            problems += refused(again, 0, 1)
            if again.code == 0 and exports(bench.warm, trial.folder) != bench.sweep.exports:
                problems.append(Problem("differs", f"{meddle.__name__}: the same command gave another export"))
            trial.noted(problems)
            trial.let_go()
            yield problems


def flipped_bits(bench: Bench, draw: np.random.Generator) -> Trials:
    """One bit in a page of the results file, in turn, then in the other files: an answer or a sentence.

    SQLite keeps no checksums, so that a bit in a number goes unnoticed; what is checked is that nothing breaks down.
    """
    verbs = (("status",), ("show", "--json"), ("export",))
    pages = range((bench.sweep.folder / FILE_NAME).stat().st_size // 4096)
    places = [(FILE_NAME, page) for page in draw.permutation(pages)]
    others = [path.relative_to(bench.sweep.folder) for path in bench.sweep.folder.rglob("*") if path.name != FILE_NAME]
    places += [(name, 0) for name in others if (bench.sweep.folder / name).is_file()][:4]
    while True:
        for name, page in places:
            trial = Trial(bench)
            shutil.copytree(bench.sweep.folder, trial.folder)
            path = trial.folder / name
            content = bytearray(path.read_bytes())
            if not content:
                continue
            at = min(page * 4096 + int(draw.integers(4096)), len(content) - 1)
            content[at] ^= 1 << int(draw.integers(8))
            path.write_bytes(content)
            problems = []
            for verb, *options in verbs:
                run = bench.warm.run(verb, trial.folder, *options)
                problems += refused(run, 0, 1)
            problems += quiet(bench.warm.run(*trial.command)) if draw.random() < 0.2 else []
            trial.noted(problems)
            trial.let_go()
            yield problems
