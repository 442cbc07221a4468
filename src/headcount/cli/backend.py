"""The option that says what computes, of every verb that trains."""

import os
from typing import Annotated

import typer

from .._choices import BACKENDS, require_choice
from ..backends import VARIABLE

BACKEND_HELP = f"What computes: {', '.join(BACKENDS)}, or auto (default: {VARIABLE}, or fused where it is installed)."


def use_backend(context: typer.Context, backend: str | None) -> str | None:
    """Let everything that this command trains use a back end: HEADCOUNT_BACKEND until the command ends."""
    if backend is None:
        return None
    require_choice("backend", backend, ("auto", *BACKENDS))
    before = os.environ.get(VARIABLE)

    def restore() -> None:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before

    context.call_on_close(restore)
    os.environ[VARIABLE] = backend
    return backend


BackendOption = Annotated[str | None, typer.Option("--backend", help=BACKEND_HELP, callback=use_backend)]
