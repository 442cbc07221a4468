"""`headcount calibrate`: how often is headcount right?"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from .._cache import keep_compiled_programs
from ..calibration.families import FAMILIES, KnownTask, calibration_set
from ..calibration.page import parts as page_parts
from ..calibration.page import write_page
from ..calibration.record import Summary, TaskResult, by_family, overview
from ..calibration.run import EFFORTS, PAPER_HEADS, TABLE, finished, protocol_of, refuse_other, to_csv
from ..calibration.run import calibrate as run_tasks
from ..calibration.words import outcome, seconds, sentences, share
from ..engine import check_where
from ..errors import did_you_mean, require, require_count
from ..report.files import write_whole
from ..report.progress import counted_progress
from ..report.render import check_ending
from .app import Json, data, messages, print_json, say
from .arguments import counts
from .options import On, Workers
from .running import this_command, training_on

EFFORT = f"{', '.join(EFFORTS)} (default: normal)."
HEADS = f"Head counts of random starts (default: {PAPER_HEADS[0]}:{PAPER_HEADS[-1]})."
PAGE = "Write the tables between the markers of this Markdown page."


def calibrate(
    out: Annotated[Path, typer.Option(help="A folder for the results, one per task.")] = Path("calibration"),
    families: Annotated[str | None, typer.Option(help="Only these families: maxima,recall.")] = None,
    tasks: Annotated[int | None, typer.Option(help="Only the first tasks of every family, so many.")] = None,
    effort: Annotated[str | None, typer.Option(help=EFFORT)] = None,
    seeds: Annotated[int | None, typer.Option(help="The papers' protocol instead: random starts only.")] = None,
    heads: Annotated[str | None, typer.Option(help=HEADS)] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw answers against D: .svg, .pdf or .png.")] = None,
    page: Annotated[Path | None, typer.Option(help=PAGE)] = None,
    on: On = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Measure tasks whose answer is known, and say how often it comes out right. The same command again continues.

    Exits with 3 if some measurements failed.
    """
    chosen, protocol = choose(families, tasks), protocol_of(effort=effort, seeds=seeds, heads=counts(heads, "--heads"))
    if figure is not None:
        check_ending(figure)
    if page is not None:
        page_parts(page)  # refused before hours of training
    check_where(on, workers)
    refuse_other(chosen, out, protocol)
    keep_compiled_programs()
    done = finished(chosen, out, protocol)
    say(f"{len(chosen)} tasks, {protocol}; {len(done)} of them already in {out}")
    missing = len(chosen) - len(done)
    with training_on(on, workers, needed=missing > 0) as executor:
        results = _run(chosen, out, missing, on=executor, **vars(protocol))
    write_whole(out / TABLE, to_csv(results).encode(), "the table")
    if figure is not None:
        from ..calibration.figure import draw_results
        from ..report.render.figure import save_figure

        save_figure(draw_results(results), figure)
        say(f"drawn in {figure}")
    if page is not None:
        write_page(page, results, command=this_command(), figure=figure)
        say(f"written to {page}")
    if as_json:
        print_json(_as_json(results))
    else:
        data.print(_view(results))
    if any(result.error for result in results):
        raise typer.Exit(3)


def choose(families: str | None, first: int | None) -> list[KnownTask]:
    """The tasks of these families, of each the first few. **Raises** `InputError` for an unknown family or none."""
    names = list(FAMILIES) if families is None else [name.strip() for name in families.split(",")]
    for name in names:
        hint = f"{did_you_mean(name, FAMILIES)} The families: {', '.join(FAMILIES)}."
        require(name in FAMILIES, f'there is no family "{name}".{hint}', what="families", given=name)
    if first is not None:
        require_count("tasks", first)
    every = calibration_set()
    of_family = {name: [task for task in every if task.family == name] for name in names}
    return [task for name in of_family for task in of_family[name][:first]]


def _run(chosen: Sequence[KnownTask], out: Path, missing: int, **protocol: Any) -> list[TaskResult]:
    try:
        with _progress(missing) as on_done:

            def on_task(result: TaskResult) -> None:
                on_done(1)
                if not result.right:
                    say(outcome(result))

            return run_tasks(chosen, out, on_task=on_task, **protocol)
    except KeyboardInterrupt:
        say(f"Stopped. Results are kept in {out}, also those of the task that was being measured. To go on, run:")
        say(f"  {this_command()}")
        raise typer.Exit(130) from None


def _progress(missing: int) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    if missing == 0:
        return contextlib.nullcontext(lambda count: None)
    return counted_progress(messages, "calibrating", missing, "tasks")


def _as_json(results: Sequence[TaskResult]) -> dict[str, Any]:
    parts = {"families": by_family(results), "overview": overview(results)}
    rows = {part: {name: row.as_dict() for name, row in summaries.items()} for part, summaries in parts.items()}
    return {**rows, "tasks": [result.as_row() for result in results]}


def _view(results: Sequence[TaskResult]) -> RenderableType:
    """The table, then what it says."""
    view = Table(box=None, padding=(0, 1, 0, 0))
    view.add_column("")
    for column in (
        "exactly\nright",
        "interval\nholds D",
        "answers\nto none",
        "median",
        "worst",
        "early\nestimate is D",
    ):
        view.add_column(column, justify="right")
    families = by_family(results)
    for place, (name, summary) in enumerate((families | overview(results)).items()):
        view.add_row(name, *_cells(summary), end_section=place == len(families) - 1)
    return Group(view, "", *(escape(sentence) for sentence in sentences(results)))


def _cells(row: Summary) -> tuple[str, ...]:
    claims = f"{row.claims.count}/{row.claims.total}" if row.claims.total else "-"
    times = (seconds(row.median_seconds), seconds(row.worst_seconds))
    return share(row.exact), share(row.held), claims, *times, share(row.early_right)
