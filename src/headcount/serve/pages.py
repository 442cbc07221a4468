"""The pages that are served: what `headcount report` and `compare` show, in a frame that follows a run."""

import functools
import os
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..report.render.words import spoken_time
from ..store import Live
from ..store.live import clock


def rendered(template: str, **content: Any) -> str:
    """Return a template with its content."""
    page = _environment().get_template(f"{template}.html.j2").render(**content)
    return page.encode(errors="replace").decode()  # bytes of a folder's name that are not UTF-8 are question marks


@functools.cache
def _environment() -> Environment:
    loader = PackageLoader("headcount.serve")
    environment = Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"address": lambda name: quote(os.fsencode(name)), "clock": clock, "doing": _doing}
    return environment


def _doing(live: Live) -> str:
    """Say in a line what a run does at the moment."""
    (ready, needed), (done, expected) = live.programs, live.steps
    why = f" ({live.why})" if live.why else ""
    if live.phase == "preparing":
        return "preparing"
    compiling = f"compiling {ready + 1} of {needed} programs" if ready < needed else ""
    if live.phase == "compiling":
        return f"{compiling or 'compiling'}{why}"
    left = "" if live.seconds_left is None else f", about {spoken_time(live.seconds_left)} left"
    words = f"training{why}: {done:,} of {expected:,} model-steps{left}"
    return f"{words}; {compiling}" if compiling else words
