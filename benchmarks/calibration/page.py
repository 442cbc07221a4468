"""A calibration in words: for the terminal, and for docs/calibration.md, between two markers."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headcount.errors import InputError, require
from headcount.report.files import write_whole

from .record import Share, Summary, TaskResult, by_family, by_intrinsic_dim, overview, summarise

BEGIN, END = "<!-- calibration results: begin -->", "<!-- calibration results: end -->"
COLUMNS = (
    "exactly right",
    "interval holds D",
    "answers where none exists",
    "median",
    "worst",
    "early estimate is D",
    "early estimate is the answer",
)


def write_page(path: Path, results: Sequence[TaskResult], *, command: str, figure: Path | None = None) -> None:
    """Put the tables of these results between the markers of a page; the rest of it stays.

    Args:
        path: A Markdown page with the two markers.
        results: What the tables are about.
        command: The command that gave them, named on the page.
        figure: A drawn figure to show.

    Raises:
        InputError: If the page cannot be read, or does not have each marker once, in order.
        HeadcountError: If it cannot be written.
    """
    before, after = parts(path)
    measured = markdown(results, command=command, figure=None if figure is None else _link(figure, path))
    write_whole(path, f"{before}{BEGIN}\n{measured}{END}{after}".encode())


def parts(path: Path, markers: tuple[str, str] = (BEGIN, END)) -> tuple[str, str]:
    """What is before the first marker of a page and behind the second. **Raises** `InputError`, see `write_page`."""
    first, last = markers
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", what="page", given=str(path)) from error
    require(
        text.count(first) == text.count(last) == 1 and text.index(first) < text.index(last),
        f'{path} must hold the line "{first}" once and then "{last}" once; results are written between them.',
        what="page",
        given=str(path),
    )
    before, rest = text.split(first)
    return before, rest.split(last)[1]


def markdown(results: Sequence[TaskResult], *, command: str, figure: str | None = None) -> str:
    """The results as Markdown: sentences, figure, the tables by family and by D, and what was not exactly right."""
    protocols = ", ".join(dict.fromkeys(result.protocol for result in results))
    lines = [f"Written by `{command}` ({protocols}; {len(results)} tasks). Brackets are Wilson's 95 % intervals.", ""]
    lines += [f"* {sentence}" for sentence in sentences(results)]
    if figure is not None:
        lines += ["", f"![Answers and early estimates against D]({figure})"]
    lines += [
        "",
        *table("family", by_family(results) | {f"**{name}**": row for name, row in overview(results).items()}),
    ]
    lines += ["", *table("D", {str(d): summary for d, summary in by_intrinsic_dim(results).items()})]
    wrong = [result for result in results if not result.right]
    if wrong:
        lines += ["", "Not exactly right:", "", *(f"* {outcome(result)}" for result in wrong)]
    return "\n".join(lines) + "\n"


def table(first: str, rows: Mapping[str, Summary]) -> Iterable[str]:
    yield f"| {first} | tasks | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---:|' * (len(COLUMNS) + 1)}"
    for name, row in rows.items():
        shares = [share_with_interval(value) for value in (row.exact, row.held, row.claims)]
        early = [share_with_interval(value) for value in (row.early_right, row.early_agrees)]
        cells = [name, str(row.tasks), *shares, seconds(row.median_seconds), seconds(row.worst_seconds), *early]
        yield f"| {' | '.join(cells)} |"


def _link(figure: Path, page: Path) -> str:
    """The figure as a link of the page."""
    return Path(os.path.relpath(figure.resolve(), page.resolve().parent)).as_posix()


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
