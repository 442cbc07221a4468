"""Numbers and settings in words, for page and terminal alike."""

from typing import Any


def spoken_time(seconds: float) -> str:
    """Write a duration, rounded: `40 s`, `12 min`, `3.5 h`, `4 days`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    hours = seconds / 3600
    if hours < 72:
        return f"{hours:.1f} h"
    return f"{hours / 24:.0f} days" if hours < 24 * 700 else f"{hours / 24 / 365:.0f} years"


UNSAID = ("task", "content", "corpus", "embeddings", "fingerprint", "negatives")
"""Settings that a line leaves out: the name, which stands before it, and fingerprints."""


def settings_line(settings: dict[str, Any]) -> str:
    """Write the options of the task, the model and the training in one line."""
    options = {**settings.get("task", {}), **settings.get("model", {})}
    parts = [f"{key} {value}" for key, value in options.items() if key not in UNSAID and not _is_usual(value)]
    steps = settings.get("train", {}).get("steps")
    parts += [] if steps is None else [f"steps {steps}"]
    return ", ".join(parts)


def _is_usual(value: Any) -> bool:
    """Whether a line leaves a value out: switches, and factors and shares that change nothing."""
    return value is None or isinstance(value, bool) or (isinstance(value, float) and value in (0.0, 1.0))
