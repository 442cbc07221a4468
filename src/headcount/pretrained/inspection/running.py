"""Facts that are measured one after another, each kept as soon as it is there; what is kept is not measured again."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...report.phases import NoPhases, Phases

SPENT = "spent"
"""What the facts so far took, by name: seconds, the most memory, tokens read."""
COST = "cost"
"""The same, attached when nothing is missing any more."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something to measure.

    Args:
        name: Under which it is kept, such as "curve/3".
        phase: What a person reads while it is measured.
        work: Its expected cost in passes of the whole model over the held-out examples; a share for the progress bar.
        measure: Measures it, given the facts so far: a value that JSON can hold.
    """

    name: str
    phase: str
    work: float
    measure: Callable[[Mapping[str, Any]], Any]


def measure_facts(
    facts: Iterable[Fact],
    kept: Mapping[str, Any],
    keep: Callable[[str, Any], None],
    *,
    phases: Phases | None = None,
    forward_tokens: Callable[[], float] = lambda: 0.0,
) -> dict[str, Any]:
    """Measure what is missing, in order.

    Args:
        facts: What is wanted.
        kept: What was kept before, by name.
        keep: Called with the name and the value of each new fact, and of what was spent so far.
        phases: Shows what is being done.
        forward_tokens: How many tokens the model has read so far in this process.

    Returns:
        Everything: what was kept before and what is new. A run that is ended at any moment loses one fact.
    """
    phases, values = phases or NoPhases(), dict(kept)
    before = values.get(SPENT) or {"peak_bytes": 0, "forward_tokens": 0, "facts": {}}
    seconds = dict(before["facts"])
    for fact in facts:
        if fact.name in values:
            continue
        phases.begin(fact.phase, fact.work)
        began = time.perf_counter()
        values[fact.name] = fact.measure(values)
        keep(fact.name, values[fact.name])
        seconds[fact.name] = round(time.perf_counter() - began, 3)
        values[SPENT] = {
            "seconds": round(sum(seconds.values()), 3),
            "peak_bytes": max(before["peak_bytes"], peak_bytes()),
            "forward_tokens": round(before["forward_tokens"] + forward_tokens()),
            "facts": dict(seconds),
        }
        keep(SPENT, values[SPENT])
        phases.end()
    if COST not in values:
        values[COST] = values.get(SPENT, {})
        keep(COST, values[COST])
    return values


def peak_bytes() -> int:
    """The most memory this process has had so far; 0 where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def seconds_by_kind(spent: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of each kind of fact: "curve" for all of "curve/0", "curve/1", .."""
    seconds: dict[str, float] = {}
    for name, value in spent.get("facts", {}).items():
        kind = name.split("/")[0]
        seconds[kind] = round(seconds.get(kind, 0.0) + value, 3)
    return seconds
