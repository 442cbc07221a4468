"""The measured part of docs/calibration.md, written from results between two markers."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..errors import InputError, require
from ..report.files import write_whole
from .record import Summary, TaskResult, by_family, by_intrinsic_dim, overview
from .words import outcome, seconds, sentences, share_with_interval

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


def parts(path: Path) -> tuple[str, str]:
    """What is before the first marker of a page and behind the second. **Raises** `InputError`, see `write_page`."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", what="page", given=str(path)) from error
    require(
        text.count(BEGIN) == text.count(END) == 1 and text.index(BEGIN) < text.index(END),
        f'{path} must hold the line "{BEGIN}" once and then "{END}" once; results are written between them.',
        what="page",
        given=str(path),
    )
    before, rest = text.split(BEGIN)
    return before, rest.split(END)[1]


def markdown(results: Sequence[TaskResult], *, command: str, figure: str | None = None) -> str:
    """The results as Markdown: sentences, figure, the tables by family and by D, and what was not exactly right."""
    protocols = ", ".join(dict.fromkeys(result.protocol for result in results))
    lines = [f"Written by `{command}` ({protocols}; {len(results)} tasks). Brackets are Wilson's 95 % intervals.", ""]
    lines += [f"* {sentence}" for sentence in sentences(results)]
    if figure is not None:
        lines += ["", f"![Answers and early estimates against D]({figure})"]
    lines += [
        "",
        *_table("family", by_family(results) | {f"**{name}**": row for name, row in overview(results).items()}),
    ]
    lines += ["", *_table("D", {str(d): summary for d, summary in by_intrinsic_dim(results).items()})]
    wrong = [result for result in results if not result.right]
    if wrong:
        lines += ["", "Not exactly right:", "", *(f"* {outcome(result)}" for result in wrong)]
    return "\n".join(lines) + "\n"


def _table(first: str, rows: Mapping[str, Summary]) -> Iterable[str]:
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
