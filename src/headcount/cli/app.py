"""The program itself: the verbs hang on `app`, data goes to stdout, talk to stderr.

Exit codes: 0 fine, 1 failed, 2 a request that cannot be right, 3 some cells failed, 130 stopped by Ctrl-C.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import jax
import typer
from rich.console import Console

from .._errors import HeadcountError
from .._version import __version__

app = typer.Typer(
    help="How many attention heads does a task need?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
talk = Console(stderr=True)
data = Console(soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")]


def main() -> NoReturn:
    """Run a command; a mistake or a failure ends in one sentence and an exit code, never in a traceback."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is a Ctrl-C
    try:
        app(standalone_mode=True)
    except HeadcountError as error:
        talk.print(f"headcount: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def start(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(f"headcount {__version__}")
        raise typer.Exit
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headcount" / "compiled"
    except RuntimeError:  # a user without a home
        return
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))
