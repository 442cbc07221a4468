"""Where headcount keeps what can be computed again: compiled programs and mined negatives."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """HEADCOUNT_CACHE, or headcount in the user's cache folder; None for a user without a home."""
    given, caches = os.environ.get("HEADCOUNT_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given)
    try:
        return (Path(caches) if caches else Path.home() / ".cache") / "headcount"
    except RuntimeError:  # no home directory
        return None


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs on disk for later processes, unless its own variable says where."""
    import jax

    folder = cache_folder()
    if folder is not None and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(folder / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
