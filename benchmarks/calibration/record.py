"""What came out of a calibration: one result per task, and summaries of any group of them."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .families import KnownTask

Z = statistics.NormalDist().inv_cdf(0.975)
FEW_HEADS = 8
"""The largest D of the row "D <= 8"."""


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """The answer to a task of the calibration set.

    Args:
        task: The task and its D.
        protocol: How it was measured, in words.
        sentence: The answer in words.
        heads: The answered head count; None where there is no answer. `low` and `high` are its interval.
        early: The head count that the first model looked like part-way through its training; None without an estimate.
        early_seconds: Seconds until then.
        seconds: Seconds of the measurement; None where it continued one that was stopped.
        error: Why the measurement failed; empty where it did not.
    """

    task: KnownTask
    protocol: str
    sentence: str
    heads: int | None = None
    low: int | None = None
    high: int | None = None
    early: int | None = None
    early_seconds: float | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def exact(self) -> bool:
        """Whether the answer is D."""
        return self.heads is not None and self.heads == self.task.intrinsic_dim

    @property
    def held(self) -> bool:
        """Whether the interval holds D."""
        known = self.task.intrinsic_dim
        return known is not None and self.low is not None and self.high is not None and self.low <= known <= self.high

    @property
    def claimed(self) -> bool:
        """Whether there is an answer to a task that has none."""
        return self.task.intrinsic_dim is None and self.heads is not None

    @property
    def missed(self) -> bool:
        """Whether there is no answer to a task that has one."""
        return self.task.intrinsic_dim is not None and self.heads is None

    @property
    def right(self) -> bool:
        """Whether the answer is D, or there is none to a task that has none."""
        return not self.claimed if self.task.intrinsic_dim is None else self.exact

    def as_dict(self) -> dict[str, Any]:
        """As JSON; `result_from_dict` reads it."""
        return asdict(self)

    def as_row(self) -> dict[str, Any]:
        """As a row of a table: the task's fields, the answer, and what became of it."""
        row: dict[str, Any] = {"name": self.task.name, **asdict(self.task), "held_out": self.task.held_out}
        row |= {name: value for name, value in asdict(self).items() if name != "task"}
        return row | {name: getattr(self, name) for name in ("exact", "held", "claimed", "missed")}


def result_from_dict(content: Any) -> TaskResult:
    """The result that `as_dict` gave. **Raises** `ValueError`, `TypeError` or `KeyError` where it is anything else."""
    if not isinstance(content, dict):
        raise ValueError(f"a result has fields, got {content!r}.")
    fields: dict[str, Any] = content | {"task": KnownTask(**content["task"])}
    return TaskResult(**fields)


@dataclass(frozen=True)
class Share:
    """`count` of `total`, with Wilson's 95 % interval of the share."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share; NaN of nothing."""
        return self.count / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The shares p that do not differ from this one at the 5 % level: |value - p| <= z sqrt(p (1 - p) / total)."""
        if self.total == 0:
            return 0.0, 1.0
        centre = self.count + Z**2 / 2
        spread = Z * math.sqrt(self.count * (self.total - self.count) / self.total + Z**2 / 4)
        low, high = ((centre + side * spread) / (self.total + Z**2) for side in (-1, 1))
        return (0.0 if self.count == 0 else low), (1.0 if self.count == self.total else high)

    def as_dict(self) -> dict[str, Any]:
        """As JSON; no share is null."""
        return {"count": self.count, "total": self.total, "interval": list(self.interval) if self.total else None}


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How often a group of results is right.

    Args:
        tasks: Results in the group.
        exact: Answers that are D, of the tasks with a D. A task without an answer counts as wrong.
        held: Intervals that hold D, of the same tasks.
        claims: Answers to tasks that no head count answers, of those tasks.
        median_seconds: Over the measurements that ran without a stop; None without any. `worst_seconds` is the longest.
        early_right: Early estimates that are D, of those there are on tasks with a D.
        early_agrees: Early estimates equal to the answer, of the results that have both.
    """

    tasks: int
    exact: Share
    held: Share
    claims: Share
    median_seconds: float | None
    worst_seconds: float | None
    early_right: Share
    early_agrees: Share

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {name: value.as_dict() if isinstance(value, Share) else value for name, value in vars(self).items()}


def summarise(results: Iterable[TaskResult]) -> Summary:
    """The summary of a group of results."""
    results = list(results)
    known = [result for result in results if result.task.intrinsic_dim is not None]
    unknown = [result for result in results if result.task.intrinsic_dim is None]
    seconds = [result.seconds for result in results if result.seconds is not None]
    estimated = [result for result in known if result.early is not None]
    both = [result for result in results if result.early is not None and result.heads is not None]
    return Summary(
        tasks=len(results),
        exact=_share(known, lambda result: result.exact),
        held=_share(known, lambda result: result.held),
        claims=_share(unknown, lambda result: result.claimed),
        median_seconds=statistics.median(seconds) if seconds else None,
        worst_seconds=max(seconds, default=None),
        early_right=_share(estimated, lambda result: result.early == result.task.intrinsic_dim),
        early_agrees=_share(both, lambda result: result.early == result.heads),
    )


def _share(results: Sequence[TaskResult], holds: Callable[[TaskResult], bool]) -> Share:
    return Share(sum(map(holds, results)), len(results))


def by_family(results: Iterable[TaskResult]) -> dict[str, Summary]:
    """A summary per family, in the order of the results."""
    return _grouped(results, lambda result: result.task.family)


def by_intrinsic_dim(results: Iterable[TaskResult]) -> dict[int, Summary]:
    """A summary per D, the smallest first; tasks without an answer are left out."""
    known = [(result.task.intrinsic_dim, result) for result in results if result.task.intrinsic_dim is not None]
    return {d: summarise(result for other, result in known if other == d) for d in sorted({d for d, _ in known})}


def overview(results: Iterable[TaskResult]) -> dict[str, Summary]:
    """The last rows of the table: by size of D, whether there is an answer, held out or open, and all."""
    results = list(results)
    groups: dict[str, Callable[[TaskResult], bool]] = {
        f"D <= {FEW_HEADS}": lambda result: 1 <= (result.task.intrinsic_dim or 0) <= FEW_HEADS,
        "D = 9, 10": lambda result: (result.task.intrinsic_dim or 0) > FEW_HEADS,
        "no answer exists": lambda result: result.task.intrinsic_dim is None,
        "held out": lambda result: result.task.held_out,
        "open": lambda result: not result.task.held_out,
        "all": lambda result: True,
    }
    return {name: summarise(filter(belongs, results)) for name, belongs in groups.items()}


def _grouped(results: Iterable[TaskResult], group: Callable[[TaskResult], str]) -> dict[str, Summary]:
    results = list(results)
    return {
        name: summarise(result for result in results if group(result) == name)
        for name in dict.fromkeys(map(group, results))
    }
