"""Judges of architectures at equal parameters: `best[task][column]` is an error, a column "4 heads" or a control."""

from collections.abc import Iterable, Sequence

from ...answer.bootstrap import MIN_SEEDS
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, verdict_of

Errors = dict[str, dict[str, float]]
CLEARLY = 2.0
"""A smaller ratio of two errors decides nothing: of two equal architectures one is always ahead."""
RETRIEVALS = ("maxima", "basins", "halves")
NEEDED = 4
"""Retrievals of these tasks."""


def retrieval_claim(best: Errors) -> Claim:
    """Heads buy nothing over max pooling where the target is a function of D maxima."""
    statement = "Max pooling solves D retrievals as well as D heads or more do: within a factor of two, or better."
    pairs = [
        (task, _least(best, task, _heads(best, task, NEEDED)), _least(best, task, ["max pool"])) for task in RETRIEVALS
    ]
    return _judged(statement, pairs, ("D heads or more", "max pool"), at_least=1 / CLEARLY, below=1 / CLEARLY)


def fewer_heads_claim(best: Errors) -> Claim:
    """What too few heads cannot retrieve, a maximum per feature does."""
    statement = "Fewer than D heads do worse on D retrievals than max pooling."
    few = {task: _heads(best, task, 1, NEEDED - 1) for task in RETRIEVALS}
    pairs = [(task, _least(best, task, few[task]), _least(best, task, ["max pool"])) for task in RETRIEVALS]
    return _judged(statement, pairs, ("fewer than D heads", "max pool"))


def mean_claim(best: Errors) -> Claim:
    """DeepSets has the parameters, and not the maximum."""
    statement = "Mean pooling (DeepSets) does worse on D retrievals than max pooling."
    pairs = [(task, _least(best, task, ["mean pool"]), _least(best, task, ["max pool"])) for task in RETRIEVALS]
    return _judged(statement, pairs, ("mean pool", "max pool"))


def recurrent_claim(best: Errors) -> Claim:
    """A state has to carry every maximum so far; a CNN whose channels are pooled by a maximum does not."""
    statement = "A GRU does worse on D retrievals than max pooling."
    pairs = [(task, _least(best, task, ["GRU"]), _least(best, task, ["max pool"])) for task in RETRIEVALS]
    return _judged(statement, pairs, ("GRU", "max pool"))


def average_claim(best: Errors) -> Claim:
    """Which pool a task needs has to be known; equal weights are as near to a head as one weight of 1."""
    statement = "Max pooling does worse on an average than attention, which has no pool to be chosen."
    pairs = [("average", _least(best, "average", ["max pool"]), _least(best, "average", _heads(best, "average", 1)))]
    return _judged(statement, pairs, ("max pool", "attention"))


def value_claim(best: Errors) -> Claim:
    """A head scores one feature and reads another; a maximum reads what it scores."""
    task = "value"
    statement = "To read one feature where another is largest, attention does better than every control."
    pairs = [(task, _least(best, task, _controls(best, task)), _least(best, task, _heads(best, task, 1)))]
    return _judged(statement, pairs, ("the best control", "attention"))


def query_claim(best: Errors) -> Claim:
    """What is looked for is in the sequence itself."""
    task = "nearest"
    statement = "To read the token nearest to a query, attention does better than every control."
    pairs = [(task, _least(best, task, _controls(best, task)), _least(best, task, _heads(best, task, 1)))]
    return _judged(statement, pairs, ("the best control", "attention"))


def _judged(
    statement: str,
    pairs: Sequence[tuple[str, tuple[str, float] | None, tuple[str, float] | None]],
    names: tuple[str, str],
    *,
    at_least: float = CLEARLY,
    below: float = 1.0,
) -> Claim:
    """The first of each pair errs at least so many times as much as the second; refuted where the ratio is below."""
    known = [(task, one, other) for task, one, other in pairs if one is not None and other is not None]
    if not known:
        return Claim(
            statement, Verdict.UNDECIDED, f"no such models have {MIN_SEEDS} finished seeds; --scale laptop trains them"
        )
    ratios = [one[1] / other[1] for _, one, other in known]
    evidence = "; ".join(f"{task}: {_named(names[0], one)}, {_named(names[1], other)}" for task, one, other in known)
    holds = [ratio >= at_least for ratio in ratios] + [False] * (len(pairs) - len(known))
    return Claim(statement, verdict_of(holds, [ratio < below for ratio in ratios]), evidence)


def _named(group: str, least: tuple[str, float]) -> str:
    column, error = least
    return f"{group} {error:.2g}" if column in group else f"{group} {error:.2g} ({column})"


def _least(best: Errors, task: str, columns: Iterable[str]) -> tuple[str, float] | None:
    """The column with the smallest error, and that error; None where none of them is there."""
    there = {name: best.get(task, {})[name] for name in columns if name in best.get(task, {})}
    return min(there.items(), key=lambda item: item[1]) if there else None


def _heads(best: Errors, task: str, low: int, high: int | None = None) -> list[str]:
    """The columns of attention with `low` to `high` heads."""
    counts = {name: int(name.split()[0]) for name in best.get(task, {}) if "head" in name}
    return [name for name, count in counts.items() if count >= low and (high is None or count <= high)]


def _controls(best: Errors, task: str) -> list[str]:
    return [name for name in best.get(task, {}) if "head" not in name]
