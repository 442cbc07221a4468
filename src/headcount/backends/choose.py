"""Which back end computes: `reference`, plain JAX, or `fused`, kernels of our own where they are installed.

HEADCOUNT_BACKEND is auto (the default: fused where it works), reference or fused.
"""

import logging
import os

from .._choices import BACKENDS, Backend, require_choice
from ..errors import InputError
from .library import Kernels, kernels_for

VARIABLE = "HEADCOUNT_BACKEND"
_log = logging.getLogger(__name__)
_told: set[str] = set()


def choose_backend(asked: str | None = None) -> Backend:
    """Return the back end for "auto", "reference" or "fused", given as an argument or by HEADCOUNT_BACKEND.

    With "auto" a library that is installed but cannot be used is reported once, and the reference runs.

    Raises `InputError` for any other word, and where "fused" is asked for and is not available.

    Example:
        >>> choose_backend("reference")
        'reference'
    """
    word, named = requested_backend(asked), "backend" if asked else VARIABLE
    require_choice(named, word, ("auto", *BACKENDS))
    if word == "reference":
        return "reference"
    available = kernels_here()
    if not available.problem:
        return "fused"
    if word == "fused":
        message = f'{named} "fused" is not available: {available.problem}.'
        raise InputError(message, what=named, given="fused", needed="auto or reference on this machine")
    if available.installed:
        say_once(f"{available.problem}. Until then plain JAX computes, slower.")
    return "reference"


def requested_backend(asked: str | None = None) -> str:
    """Return the back end that was asked for, by the argument or by HEADCOUNT_BACKEND; "auto" by neither."""
    return asked or os.environ.get(VARIABLE) or "auto"


def kernels_here() -> Kernels:
    """Return the kernels for the device that JAX chose."""
    import jax

    return kernels_for(jax.default_backend())


def backend_name(backend: Backend) -> str:
    """Name the back end as a record's provenance does, such as "fused 0.1.0, AVX-512"."""
    if backend == "reference" or (here := kernels_here()).problem:
        return "reference"
    return f"fused {here.version}, {here.unit}"


def say_once(sentence: str) -> None:
    """Report a sentence, unless this process has reported it before."""
    if sentence not in _told:
        _told.add(sentence)
        _log.warning("headcount: %s", sentence)
