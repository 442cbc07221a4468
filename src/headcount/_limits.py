"""How much is read and trained at most: every limit, its value, and the environment variable that raises it.

    HEADCOUNT_MAX_GB        memory that an input, or a model in training, may need (default: three quarters of this
                            machine's; of a GPU, what JAX may use)
    HEADCOUNT_MAX_LINE_MB   one line of a text file (default: 256)
    HEADCOUNT_MAX_COLUMNS   columns of a table (default: 100,000)
    HEADCOUNT_MAX_MODELS    models of one sweep (default: 1,000,000)

An input is refused by arithmetic, from what a header or the request says, or while it is read: before memory goes.
"""

import functools
import os
from pathlib import Path
from typing import Any

from .errors import InputError, require

GIB = 2**30
ALLOWED_SHARE = 0.75
"""Of a machine's memory: what one input, or one model, may need at most."""
DEFAULTS = {"HEADCOUNT_MAX_LINE_MB": 256, "HEADCOUNT_MAX_COLUMNS": 100_000, "HEADCOUNT_MAX_MODELS": 1_000_000}
MAX_COUNT = 2**31 - 1
"""Of any size: arrays are indexed with 32 bits on the device."""
MAX_OF = {"steps": 10**9, "heads": 10**5, "length": 10**6}
"""Of what a plan counts one by one: the heads that are removed from a model, the places that a task reads."""
JSON_FACTOR = 8
"""Bytes of memory per byte of JSON that is read: a number of four characters is an object of 32 bytes."""
TEXT_FACTOR = 2
"""Bytes of memory per byte of text that is read and made a task of, at least."""


def limit(name: str) -> int:
    """Return a limit: the environment variable where it is set. Raises InputError where that is no positive number."""
    text = os.environ.get(name)
    return DEFAULTS[name] if text is None else int(_positive(name, text))


def max_line_bytes() -> int:
    """Return the limit of one line of a text file: `HEADCOUNT_MAX_LINE_MB`."""
    return limit("HEADCOUNT_MAX_LINE_MB") * 2**20


def max_bytes(memory: int | None = None) -> int:
    """Return what may be needed of memory: `HEADCOUNT_MAX_GB` where it is set.

    Args:
        memory: What there is for training on the machine that trains; three quarters of this machine's where None.
    """
    text = os.environ.get("HEADCOUNT_MAX_GB")
    if text is not None:
        return int(_positive("HEADCOUNT_MAX_GB", text) * GIB)
    return int(ALLOWED_SHARE * _machine_bytes()) if memory is None else memory


def require_fits(what: object, size: float, memory: int | None = None) -> None:
    """Raise `InputError` if `what`, a file or something that is asked for, needs more than `max_bytes(memory)`.

    Example:
        >>> require_fits("data.npz", 2**70)
        Traceback (most recent call last):
        headcount.errors.InputError: data.npz needs at least 1,099,511,627,776.0 GiB of memory, ...
    """
    most = max_bytes(memory)
    if size > most:
        raise too_large(what, size, most)


def too_large(what: object, size: float | None = None, most: int | None = None) -> InputError:
    """Return the refusal of something that needs more memory than is allowed; `size` where it is known."""
    most = max_bytes() if most is None else most
    needs = "more memory than there is" if size is None else f"at least {_gib(size)} GiB of memory"
    return InputError(
        f"{what} needs {needs}, and the limit is {_gib(most)} GiB; use a smaller one, "
        "or raise the limit with the environment variable HEADCOUNT_MAX_GB.",
        given=size,
    )


def require_within(what: object, count: float, name: str) -> None:
    """Raise `InputError` if a count is over the limit of this name, such as `HEADCOUNT_MAX_COLUMNS`."""
    most = limit(name)
    if count > most:
        raise InputError(
            f"{what}, and the limit is {most:,}; use fewer, or raise it with the environment variable {name}.",
            given=count,
        )


def require_size(name: str, value: Any, most: int | None = None) -> None:
    """Raise `InputError` if a size such as a length or a batch is larger than `most`: where None, than `MAX_OF` says,
    or else than arrays can be."""
    most = MAX_OF.get(name, MAX_COUNT) if most is None else most
    too_many = isinstance(value, int) and value > most
    require(not too_many, what=name, given=shortened(value), needed=f"at most {most:,}")


def shortened(value: Any) -> Any:
    """Shorten a whole number of very many digits for a message."""
    digits = isinstance(value, int) and abs(value) >= 10**24
    return f"a number of {value.bit_length() * 30103 // 100000 + 1} digits" if digits else value


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f}" if size < 2**80 else "2^50 and more"


def _positive(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    require(0 < value < 1e12, f"the environment variable {name} must be a positive number, got {text!r}; unset it.")
    return value


@functools.cache
def _machine_bytes() -> int:
    """Return the memory of this machine, or of the container that this process runs in."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no POSIX
        return 64 * GIB
    try:
        inside = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(inside)) if inside.isdigit() else total
