"""Where a results folder lies: on a disk of this machine, or on a file system that other machines may share.

SQLite's write-ahead log needs memory that all who have the file open share, which machines do not. On a shared file
system the file therefore has a rollback journal, which needs file locks alone: readers and the writer may then wait for
each other for a moment, and a commit takes longer. Two machines never write one folder: the lock file is held through
the server where the file system passes locks on, and where it does not, `live.json` names the machine that writes.
"""

import os
import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

from ..errors import StoreError
from .live import read_live

MOUNTS = Path("/proc/self/mountinfo")
_SHARED = """
    9p afs beegfs ceph cifs coda davfs drvfs fakeowner fhgfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs
    panfs prl_fs pvfs2 smb3 smbfs vboxsf virtiofs wekafs webdav
"""
SHARED = frozenset(_SHARED.split())
LOCAL_FUSE = ("bindfs", "encfs", "exfat", "fuse-overlayfs", "gocryptfs", "lxcfs", "mergerfs", "ntfs-3g", "portal")
"""File systems in user space that are on a disk of this machine; all others may be anywhere."""
WAL_LIMIT = 64 << 20
"""Bytes that a write-ahead log keeps once it is merged: one that a long reader has let grow shrinks again."""


def shared_filesystem(path: Path) -> str:
    """The type of the file system that holds a path, such as "nfs4", where other machines may share it.

    Empty for a disk of this machine, and where the system does not say. The path need not exist yet.
    """
    if os.name == "nt":
        return "network share" if str(path.absolute()).startswith("\\\\") else ""
    where = os.path.realpath(path)
    kinds = _mounts_of_mac() if sys.platform == "darwin" else _mounts_of_linux()
    kind = kinds.get(max((point for point in kinds if _is_below(where, point)), key=len, default=""), "")
    in_user_space = kind == "fuse" or (kind.startswith("fuse.") and kind[5:] not in LOCAL_FUSE)
    return kind if kind in SHARED or in_user_space else ""


def set_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Give a file that is to be written the journal that is safe where it lies, and make every commit last."""
    if not shared_filesystem(path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        return
    # A write-ahead log that a copied folder brings is merged without shared memory: nobody else may read meanwhile.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA locking_mode = NORMAL")
    connection.execute("PRAGMA synchronous = EXTRA")  # the journal's removal is the commit: it has to last, too
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # gives the lock back


def require_this_host(root: Path) -> None:
    """Refuse to write a shared folder into which a run on another machine writes; `StoreError` names the machine."""
    live = read_live(root) if shared_filesystem(root) else None
    if live is not None and live.host != socket.gethostname() and live.state() == "running":
        raise StoreError(
            f"{root} is in use by a run on {live.host} (process {live.pid}); wait for it, or choose another folder."
        )


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _mounts_of_linux() -> dict[str, str]:
    """The type of every mounted file system by the folder where it is seen; of several at one place the last."""
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return {}
    kinds = {}
    for line in lines:
        place, _, source = line.partition(" - ")
        fields, kind = place.split(), source.split()[:1]
        if len(fields) > 4 and kind:
            kinds[re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])] = kind[0]
    return kinds


def _mounts_of_mac() -> dict[str, str]:
    """As `mount` prints them: `//server/share on /Volumes/share (smbfs, nodev)`."""
    try:
        listed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(re.findall(r" on (.+) \((\w+)[,)]", listed))
