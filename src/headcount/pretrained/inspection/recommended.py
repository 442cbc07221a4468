"""The metric `configurations`, read: what each smaller model costs, and which is recommended."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...answer.words import decimal
from ...report.document import Grid
from .facts import Facts
from .layers import signed

if TYPE_CHECKING:
    from .model import TrainedModel

ORIGINAL = "original"
SMALL = "small"
"""The way of storing in which a stock class has fewer parameters."""
FEWEST_HELD_OUT = 8
"""Held-out examples without which no configuration is recommended."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A smaller model that was measured: what it costs on held-out data, in size and in time. None: not measured.

    `seconds` are per 1,000 tokens, `stored` is how a stock class keeps it: "small", "padded" or "zeroed".
    """

    name: str
    kind: str
    heads: Any
    key_heads: Any
    head_dim: Any
    increase: float
    low: float
    high: float
    parameters: int | None
    cache_bytes_per_token: float | None
    seconds: float | None
    stored: str
    command: str
    removed: tuple[tuple[int, int], ...] = ()

    @property
    def size(self) -> tuple[float, float, float]:
        """The order of cheapness: parameters, then cache, then time."""
        sizes = (self.parameters, self.cache_bytes_per_token, self.seconds)
        first, second, third = (float("inf") if size is None else float(size) for size in sizes)
        return first, second, third

    @property
    def interval_words(self) -> str:
        return f"[{decimal(self.low)}, {decimal(self.high)}]"

    @property
    def increase_words(self) -> str:
        return f"loss {signed(self.increase)} {self.interval_words}"


def read_configurations(facts: Facts) -> tuple[Configuration, ...]:
    """Every measured configuration, the original first where it is one of them."""
    parts = sorted(facts.by_part("configuration").values(), key=lambda each: each.get("parameters") or 0, reverse=True)
    stored = facts.stored.get("configurations") or parts
    return tuple(_configuration(facts, each) for each in stored) if len(facts.base) else ()


def _configuration(facts: Facts, stored: Mapping[str, Any]) -> Configuration:
    found = facts.increases(stored["losses"], f"the configuration {stored.get('name')}")
    (mean,), (low, high) = found.mean, found.bounds[:, 0]
    as_stored = ("heads", "key_heads", "head_dim", "parameters", "cache_bytes_per_token", "seconds")
    return Configuration(
        name=str(stored.get("name", "")),
        kind=str(stored.get("kind", "")),
        increase=float(mean),
        low=float(low),
        high=float(high),
        stored=str(stored.get("stored", "")),
        command=str(stored.get("command") or ""),
        removed=tuple((int(layer), int(head)) for layer, head in stored.get("removed") or ()),
        **{name: stored.get(name) for name in as_stored},
    )


def read_candidates(facts: Facts, configurations: tuple[Configuration, ...]) -> tuple[Configuration, ...]:
    """Configurations that a stock class stores with fewer parameters or a smaller cache than the original."""
    parameters = facts.model.get("parameters") or float("inf")
    cache = facts.model.get("cache_bytes_per_token") or float("inf")
    return tuple(
        each
        for each in configurations
        if each.stored == SMALL
        and ORIGINAL not in (each.kind, each.name)
        and (each.size[0] < parameters or each.size[1] < cache)
    )


def read_recommended(facts: Facts, candidates: tuple[Configuration, ...]) -> Configuration | None:
    """The cheapest candidate whose whole interval is within the tolerance; None without one, or with too few examples.

    The choice is made on the examples that its loss is reported on: of several whose mean is near the tolerance, one is
    below it by chance.
    """
    if len(facts.base) < FEWEST_HELD_OUT:
        return None
    within = [each for each in candidates if max(each.increase, each.high) <= facts.budget]
    return min(within, key=lambda each: each.size, default=None)


def recommended_words(model: "TrainedModel") -> str:
    """Say which configuration is recommended and what it costs, or why none is."""
    if not model.configurations:
        return ""
    best, count = model.recommended, model.held_out
    if best is not None:
        cheapest = "Cheapest measured configuration with its interval within the tolerance that a stock class stores"
        among = f"chosen among {len(model.candidates)} on the same held-out examples"
        among = "the only one that was measured" if len(model.candidates) == 1 else among
        return f"{cheapest}: {best.name}, {_costs(best)} ({among})."
    if count < FEWEST_HELD_OUT:
        few = f"{count} held-out example{'s are' if count != 1 else ' is'} too few"
        return f"No configuration is recommended: {few}, at least {FEWEST_HELD_OUT} are needed."
    if not model.candidates:
        return "No measured configuration is stored smaller by a stock class: none is recommended."
    least = min(model.candidates, key=lambda each: each.increase)
    return (
        f"No configuration is recommended: of the {len(model.candidates)} measured that a stock class stores small, "
        f"{least.name} costs least, {least.increase_words}, and {decimal(model.budget)} is allowed for the whole "
        "interval."
    )


def _costs(each: Configuration) -> str:
    parts = [each.increase_words]
    if each.parameters is not None:
        parts.append(f"{each.parameters:,} parameters")
    if each.cache_bytes_per_token:
        parts.append(f"{each.cache_bytes_per_token:,.0f} bytes of cache per token")
    if each.seconds is not None:
        parts.append(f"{decimal(each.seconds)} s per 1,000 tokens")
    return ", ".join(parts)


def configuration_grids(model: "TrainedModel") -> Iterator[Grid]:
    """Every configuration; a column that says nothing is left out."""
    if not model.configurations:
        return
    columns = (
        "configuration", "heads", "key heads", "head dim", "loss increase", "parameters", "cache bytes/token",
        "s / 1,000 tokens", "stored",
    )  # fmt: skip
    rows = [_row(each, model) for each in model.configurations]
    shown = [place for place in range(len(columns)) if any(row[place] != "-" for row in rows)]
    yield Grid(
        title="Measured configurations",
        columns=tuple(columns[place] for place in shown),
        rows=tuple(tuple(row[place] for place in shown) for row in rows),
    )


def _row(each: Configuration, model: "TrainedModel") -> tuple[str, ...]:
    mark = " (recommended)" if each == model.recommended else ""
    counts = [_count(value) for value in (each.heads, each.key_heads, each.head_dim)]
    sizes = ["-" if value is None else f"{value:,.0f}" for value in (each.parameters, each.cache_bytes_per_token)]
    seconds = "-" if each.seconds is None else decimal(each.seconds)
    increase = f"{decimal(each.increase)} {each.interval_words}"
    return f"{each.name}{mark}", *counts, increase, *sizes, seconds, each.stored or "-"


def _count(value: Any) -> str:
    """A count, or the least and the most of one per layer."""
    if isinstance(value, list | tuple):
        return "-" if not value else " to ".join(dict.fromkeys((str(min(value)), str(max(value)))))
    return "-" if value is None else str(value)
