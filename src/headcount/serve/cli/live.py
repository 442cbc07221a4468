"""The live page of `measure --live`."""

import sys
from pathlib import Path

from ...cli.app import say
from ..beside import LivePage


def start_live_page(folder: Path) -> LivePage:
    """Serve the folder of a run that is about to begin, and say where."""
    page = LivePage(folder)
    say(f"live page: {page.address}")
    return page


def stay_live(page: LivePage) -> None:
    """After the run, keep serving until Ctrl-C."""
    sys.stdout.flush()  # whoever reads the answer from a pipe has it now
    say(f"the page stays at {page.address} until Ctrl-C")
    page.wait()
