"""The option that says what computes, of every verb that trains."""

import os
from typing import Annotated

import typer

from .._choices import BACKENDS
from ..backends import VARIABLE, choose_backend, requested_backend

BACKEND_HELP = f"What computes: {', '.join(BACKENDS)}, or auto (default: {VARIABLE}, or fused where it is installed)."


def use_backend(backend: str | None) -> str | None:
    """Let everything that this process trains use a back end. One that cannot run is refused before any work."""
    # To look at these takes no time; for others JAX is started.
    if requested_backend(backend) not in ("auto", "reference"):
        choose_backend(backend)
    if backend is not None:
        os.environ[VARIABLE] = backend
    return backend


BackendOption = Annotated[str | None, typer.Option("--backend", help=BACKEND_HELP, callback=use_backend)]
