"""The option that says what computes, of every verb that trains."""

import os
from typing import Annotated

import typer

from .._choices import BACKENDS, require_choice
from ..backends import VARIABLE

BACKEND_HELP = f"What computes: {', '.join(BACKENDS)}, or auto (default: {VARIABLE}, or fused where it is installed)."


def use_backend(backend: str | None) -> str | None:
    """Let everything that this process trains use a back end."""
    if backend is not None:
        require_choice("backend", backend, ("auto", *BACKENDS))
        os.environ[VARIABLE] = backend
    return backend


BackendOption = Annotated[str | None, typer.Option("--backend", help=BACKEND_HELP, callback=use_backend)]
