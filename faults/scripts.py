"""Bad inputs and long processes: scripts of their own, whose exit codes count here."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np

from .checks import Problem, Trials
from .processes import HERE
from .syscalls import Skipped
from .trial import Bench


def script(name: str, short: tuple[str, ...], whole: tuple[str, ...]) -> Callable[..., Trials]:
    """A kind of one trial: the script ends with 0, or what it printed last is the problem.

    Args:
        name: Of a file in this folder.
        short: Its arguments in the short form.
        whole: Its arguments in the long form.
    """

    def kind(bench: Bench, draw: np.random.Generator) -> Trials:
        path = HERE / name
        if not path.exists():
            raise Skipped(f"there is no {path}")
        arguments = whole if bench.long else short
        # Not watched, and not on a small terminal: it is a campaign of its own.
        environment = bench.scratch.environment() | {"PYTHONPATH": str(HERE.parent / "src")}
        ended = subprocess.run(
            [sys.executable, path, *arguments],
            cwd=HERE.parent,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        print(ended.stdout, file=sys.stderr)
        detail = f"{name} {' '.join(arguments)}: exit code {ended.returncode}: {(ended.stdout + ended.stderr)[-1500:]}"
        yield [Problem("no sentence", detail)] if ended.returncode else []

    return kind
