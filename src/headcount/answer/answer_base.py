"""The answer of any rule."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..store.experiment import Value

Limit = Literal["heads", "rank", "both", "neither", "unknown"]
Kind = Literal["needs", "floor", "enough", "none"]
"""Of an answer: a number of heads is needed; or the fewest do as well as more, above a floor; or a number is enough,
though the error falls without a sharp drop; or there is no answer."""
SIGNALS = ("drop", "slope", "reversal")
Unknown = Literal["seeds", "data", "search"]
"""What an interval allows for: other seeds, other draws of the data, and solutions that the search missed."""


@dataclass(frozen=True)
class Interval:
    """A count and the bounds it lies in."""

    at: int
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.at} [{self.low}, {self.high}]"


@dataclass(frozen=True, kw_only=True)
class HeadsAt:
    """How many heads are needed at one kv_heads ("own": as many as heads) and head_dim; None where that was not varied.

    `needs` is None where the head counts `tried` show no transition: `kind` is "floor" where more heads do no better,
    and "none" where nothing can be said. `sentence` says what they show. `behind` is the error with enough heads over
    the smallest such error of the map. `far`: the error drops with heads and yet stays far above that of the best place
    at every head count tried, so that no number of them is enough; see `heads_map`.
    """

    kv_heads: int | str | None
    head_dim: int | None
    kind: Kind
    needs: Interval | None
    error: float | None
    tried: tuple[int, ...]
    sentence: str
    behind: float = 1.0
    far: bool = False

    @property
    def needed(self) -> int | None:
        """The fewest heads that are enough at this place; None where none of those tried are known to be."""
        return None if self.needs is None or self.far else self.needs.at


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How many heads a task needs, and of what rank where that was asked too; or why there is no answer.

    `sentence` is the verdict in one line. `kind` is "needs" where fewer heads (or a lower rank) do worse, or all do
    without an error worth naming; "floor" where the smallest head count tried does as well as more, and none gets below
    `floor`; "enough" where the error falls with heads and no drop says how many: then `needs` has the fewest whose
    error is hardly above the best, and `gains` what each larger head count would gain, with the margin of chance;
    "none" where there is no answer. `floor` is the error that stays at every head count, at the worst length;
    None where errors go to about 0. `needs` has an interval per axis that was asked about, and is empty where
    there is no answer: the smallest value that is enough, and bounds that hold all of `unknowns`: what 90 % of
    bootstrap resamples of the seeds give, what every draw of the data gives, and the next smaller head count where the
    search may have missed a solution; also values between the tried ones. `limit` is what the task is short of.
    `support` is the share of resamples that agree, `silent` the share that show no transition (None where it was not
    counted). `error` is the smallest error where heads are enough, at the worst length.

    Of a sweep over heads: `signals` are the estimates of the three signals, `by_length` the drop's at each length
    alone, None where one is silent; `slopes` and `reversals` are per head count. Of a sweep over heads and rank: `at`
    is the solved (heads, rank) of smallest heads x rank, `frontier` the solved ones that contain no other, fewest heads
    first. `fold` is the mean factor by which the error falls at the answer. Of a sweep over heads and kv_heads or
    head_dim, `map` says what is needed at each of them, and `needs` is that of the place that needs fewest heads. What
    was not asked is empty.

    Example:
        >>> import numpy as np, headcount as hc
        >>> from headcount.answer import answer
        >>> errors = np.array([[0.5] * 4, [0.4] * 4, [1e-3] * 4, [1e-3] * 4])
        >>> found = answer(hc.ErrorTable(axes={"heads": (1, 2, 3, 4), "seed": (0, 1, 2, 3)}, errors=errors))
        >>> found.sentence, found.heads
        ('needs 3 heads [3, 3]', 3)
    """

    sentence: str
    kind: Kind = "none"
    floor: float | None = None
    needs: dict[str, Interval] = field(default_factory=dict)
    limit: Limit = "unknown"
    reason: str = ""
    support: float = 0.0
    silent: float | None = None
    error: float | None = None
    fold: float | None = None
    signals: dict[str, int | None] = field(default_factory=dict)
    by_length: dict[Value, int | None] = field(default_factory=dict)
    slopes: dict[int, float | None] = field(default_factory=dict)
    reversals: dict[int, float | None] = field(default_factory=dict)
    at: tuple[int, int] | None = None
    frontier: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    unknowns: dict[Unknown, Interval] = field(default_factory=dict)
    gains: dict[int, tuple[float, float]] = field(default_factory=dict)
    map: tuple[HeadsAt, ...] = ()

    @property
    def widest(self) -> Unknown | None:
        """Which of the unknowns leaves most head counts open; None where none leaves more than one."""
        wide: list[Unknown] = [name for name, each in self.unknowns.items() if each.high > each.low]
        return max(wide, key=lambda name: self.unknowns[name].high - self.unknowns[name].low, default=None)

    @property
    def heads(self) -> int | None:
        """The fewest heads that are enough; None where there is no answer."""
        return self.needs["heads"].at if "heads" in self.needs else None

    @property
    def low(self) -> int | None:
        """The lower bound of `heads`."""
        return self.needs["heads"].low if "heads" in self.needs else None

    @property
    def high(self) -> int | None:
        """The upper bound of `heads`."""
        return self.needs["heads"].high if "heads" in self.needs else None

    @property
    def rank(self) -> int | None:
        """The smallest rank that is enough with some number of heads; None where none is known, or none was asked."""
        return self.needs["rank"].at if "rank" in self.needs else None

    def solves(self, heads: int, rank: int | None = None) -> bool:
        """Whether a model of this size is known to be enough."""
        if self.frontier:
            return rank is not None and any(heads >= fewest and rank >= least for fewest, least in self.frontier)
        return self.heads is not None and heads >= self.heads

    def as_dict(self) -> dict[str, Any]:
        """Return JSON: `verdict` is the sentence; heads, low, high and rank repeat the intervals of `needs`."""
        content = asdict(self)
        flat = {name: getattr(self, name) for name in ("heads", "low", "high", "rank")}
        return {"verdict": content.pop("sentence")} | flat | content
