"""A process that has imported headcount and forks for every command, so that a trial costs no imports.

Asked by `processes.Warm`: a line of JSON per command on stdin; answered by the child's number, then by how it ended.
JAX starts its threads when it is first used, which is after the fork.
"""

import atexit
import gc
import importlib
import json
import os
import resource
import sys
import threading
import traceback
from typing import Any

MODULES = ("cli.measure", "cli.export", "cli.status", "cli.show", "cli.report", "theory")


def serve() -> dict[str, Any] | None:
    """Fork per request; returns in the child, with its request, and in the parent when nobody asks any more."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return request
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(request: dict[str, Any]) -> None:
    """Be the process that was asked for: its session, environment, streams and limits."""
    os.setsid()
    os.environ.update(request["environment"])
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    if request["file_bytes"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_bytes"], resource.RLIM_INFINITY))
    sys.argv = ["headcount", *request["arguments"]]


def run(request: dict[str, Any]) -> int:
    """The exit code of a command, once its threads have ended and what is to be done at exit is done.

    Python would also take all that was imported apart, which takes half a second.
    """
    try:
        if request["arguments"][0] == "commit-loop":
            from .commit_loop import commit_loop

            commit_loop(*request["arguments"][1:])
        else:
            from headcount.cli import main as headcount

            headcount()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


def main() -> None:
    for module in MODULES:
        importlib.import_module(f"headcount.{module}")
    gc.freeze()  # or each child would look through all of it, and copy its pages
    request = serve()
    if request is not None:
        become(request)
        os._exit(run(request))


if __name__ == "__main__":
    main()
