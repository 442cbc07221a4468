"""Python's cycle collector, kept out of work that makes hundreds of thousands of objects and no cycles."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """No collection of cycles meanwhile: each would walk all objects that were just made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
