"""The command line: arguments in, data to stdout, messages to stderr. One file per verb."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run a command. A Ctrl-C while the program is still being read ends it as any other does, without a traceback."""
    try:
        from .app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
