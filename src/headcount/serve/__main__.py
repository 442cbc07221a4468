"""The server of `measure --live`: prints its address as a line, and ends when its standard input is closed.

So it ends with the process that started it, however that ends.
"""

import os
import sys
import threading
from pathlib import Path

from ..errors import HeadcountError
from .server import serve


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        serve(Path(sys.argv[1]), 0, lambda address: print(address, flush=True))
    except HeadcountError as error:
        print(f"headcount: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
