"""A calibration in words, for the terminal and for docs/calibration.md."""

from collections.abc import Iterable

from .record import Share, Summary, TaskResult, summarise


def share(value: Share) -> str:
    """`19/20 95 %`; a dash where there is nothing to count."""
    return f"{value.count}/{value.total} {percent(value.value)}" if value.total else "-"


def share_with_interval(value: Share) -> str:
    """`19/20, 95 % [76, 99]`."""
    if value.total == 0:
        return "-"
    low, high = value.interval
    return f"{value.count}/{value.total}, {percent(value.value)} [{100 * low:.0f}, {100 * high:.0f}]"


def percent(value: float) -> str:
    """A share in percent; 99.5 % is not rounded to all."""
    digits = 1 if 0 < value < 0.005 or 0.995 <= value < 1 else 0
    return f"{100 * value:.{digits}f} %"


def seconds(value: float | None) -> str:
    """`31 s`, `4.2 s`; a dash where it is not known."""
    return "-" if value is None else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def sentences(results: Iterable[TaskResult]) -> list[str]:
    """What the results say, a sentence each: answers, tasks without one, time, the early estimate, failures."""
    results = list(results)
    all_of_them = summarise(results)
    return [*_of_answers(all_of_them), *_of_time(all_of_them), *_of_early(all_of_them), *_of_failures(results)]


def _of_answers(summary: Summary) -> list[str]:
    lines = []
    if summary.exact.total:
        exact, held = summary.exact, summary.held
        lines.append(
            f"Exactly right on {exact.count} of {exact.total} tasks of known D ({_between(exact)}); "
            f"the interval holds D on {held.count} ({_between(held)})."
        )
    if summary.claims.total:
        claims = summary.claims
        lines.append(
            f"An answer was given to {claims.count} of the {claims.total} tasks that have none ({_between(claims)})."
        )
    return lines


def _between(value: Share) -> str:
    low, high = value.interval
    return f"{percent(value.value)}, 95 % interval {100 * low:.0f} to {100 * high:.0f} %"


def _of_time(summary: Summary) -> list[str]:
    if summary.median_seconds is None:
        return []
    return [f"A task took {seconds(summary.median_seconds)} at the median, {seconds(summary.worst_seconds)} at worst."]


def _of_early(summary: Summary) -> list[str]:
    right, agrees = summary.early_right, summary.early_agrees
    if right.total == 0:
        return []
    line = f"The early estimate was D on {right.count} of {right.total} tasks ({percent(right.value)})"
    if agrees.total:
        line += f" and the final answer on {agrees.count} of {agrees.total} ({percent(agrees.value)})"
    return [f"{line}."]


def _of_failures(results: list[TaskResult]) -> list[str]:
    failed = [result for result in results if result.error]
    if not failed:
        return []
    return [
        f"{len(failed)} of {len(results)} measurements failed and count as no answer; the first, "
        f"{failed[0].task.name}: {failed[0].error}"
    ]


def outcome(result: TaskResult) -> str:
    """A task and its answer in one line."""
    known = "no head count" if result.task.intrinsic_dim is None else f"D = {result.task.intrinsic_dim}"
    return f"{result.task.name}: {known}, {result.error or result.sentence}"
