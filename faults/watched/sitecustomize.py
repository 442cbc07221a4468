"""Loaded by every Python process whose PYTHONPATH has this folder: notes what a run does, and ends it on request.

    FAULTS_LOG       a file: one line per event, "PID event KEY KEY .."
    FAULTS_MEMBERS   members of a bucket on a CPU, so that a small sweep has many buckets
    FAULTS_KILL      "event:number:seconds": at the number-th such event, killed that much later
    FAULTS_PLANT     a fault of headcount itself, planted to see that the campaign notices it

It patches modules when they are imported, and imports nothing itself: a process without headcount pays nothing.
"""

import functools
import importlib.abc
import importlib.util
import os
import signal
import sys

_seen: dict[str, int] = {}


def _note(event: str, keys=()) -> None:
    if path := os.environ.get("FAULTS_LOG"):
        line = " ".join([str(os.getpid()), event, *keys]) + "\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    _seen[event] = _seen.get(event, 0) + 1
    asked, number, seconds = (os.environ.get("FAULTS_KILL") or "::").split(":")
    if event == asked and _seen[event] == int(number):
        # Nobody handles this signal, so it ends the process as kill -9 does, and the kernel keeps the time.
        signal.setitimer(signal.ITIMER_REAL, max(float(seconds), 1e-6))


def _noted(owner, name: str, event: str, keys=lambda *_: (), done: str = "") -> None:
    function = getattr(owner, name)

    @functools.wraps(function)
    def noting(*arguments, **options):
        _note(event, keys(*arguments))
        result = function(*arguments, **options)
        if done:
            _note(done, keys(*arguments))
        return result

    setattr(owner, name, noting)


def _store(module) -> None:
    commit, settled_keys = module.Store.commit, module.Store.settled_keys

    def commit_listed(store, records, weights=None):
        records = list(records)
        keys = [record.cell.key for record in records if record.outcome.value != "failed"]
        plant = os.environ.get("FAULTS_PLANT")
        _note("commit", keys)
        if plant == "no-weights":
            weights = None
        commit(store, records, weights)
        _note("committed", keys)
        if plant == "lose":
            with store._connection as connection:
                connection.execute("DELETE FROM cells WHERE key = ?", keys[:1])
        if plant == "alter":
            with store._connection as connection:
                connection.execute("UPDATE cells SET metrics = zeroblob(length(metrics)) WHERE key = ?", keys[:1])

    def some_settled_keys(store):
        keys = settled_keys(store)
        return keys - {min(keys, default="")} if os.environ.get("FAULTS_PLANT") == "train-again" else keys

    module.Store.commit = commit_listed
    module.Store.settled_keys = some_settled_keys
    _noted(module.Store, "begin", "begin")


def _trainer(module) -> None:
    _noted(module.BucketTrainer, "train", "train", lambda _, bucket: [cell.key for cell in bucket.cells])


def _train(module) -> None:
    _noted(module.Program, "compile", "compile", done="compiled")


def _hardware(module) -> None:
    module.CPU_MEMBERS = int(os.environ.get("FAULTS_MEMBERS") or module.CPU_MEMBERS)


def _files(module) -> None:
    _noted(module, "write_whole", "export")


def _support_read(module) -> None:
    # Half a second per run, and nothing that a fault could hit; something is still attached at the end.
    module.task_support = lambda *_: {"skipped": "it is not searched for here"}


_PATCHES = {
    "headcount.engine.hardware": _hardware,
    "headcount.engine.train": _train,
    "headcount.engine.trainer": _trainer,
    "headcount.report.files": _files,
    "headcount.store.store": _store,
    "headcount.theory.support.stored": _support_read,
}


class _Patching(importlib.abc.MetaPathFinder):
    """Finds the modules to be patched as everybody else does, and patches them once they are executed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in _PATCHES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def patched(module):
                execute(module)
                _PATCHES[fullname](module)

            spec.loader.exec_module = patched
        return spec


sys.meta_path.insert(0, _Patching())
