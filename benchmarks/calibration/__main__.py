"""How often is headcount right? Measure tasks whose answer is known. The same command again continues.

    python -m benchmarks.calibration [--effort quick] [--tasks 2] [--families recall,windows] [--out calibration]
    python -m benchmarks.calibration --seeds 4 --heads 1:12 --out papers

Exits with 3 if some measurements failed.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount._cache import keep_compiled_programs
from headcount.cli.arguments import counts
from headcount.engine import executor_of
from headcount.errors import HeadcountError, did_you_mean, require
from headcount.report.files import write_whole
from headcount.report.render.figure import save_figure

from .families import FAMILIES, GRADUAL, KnownTask, calibration_set, enough_set
from .figure import draw_results
from .page import outcome, parts, sentences, table, write_page
from .record import TaskResult, by_family, overview
from .run import PAPER_HEADS, TABLE, calibrate, finished, options_of, protocol_of, to_csv


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.calibration", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("calibration"), help="a folder for the results, one per task")
    add("--families", help="only these families: maxima,recall")
    add("--tasks", type=int, help="only the first tasks of every family, at most this number")
    add("--effort", choices=("quick", "normal", "thorough"), help="default: normal")
    add("--seeds", type=int, help="the papers' protocol instead: random starts only")
    add("--heads", help=f"head counts of random starts (default: {PAPER_HEADS[0]}:{PAPER_HEADS[-1]})")
    add("--figure", type=Path, help="draw answers against D: .svg, .pdf or .png")
    add("--page", type=Path, help="write the tables between the markers of this Markdown page")
    add("--on", help='where models are trained: "ray", or the address of a Ray cluster')
    add("--workers", type=int, help="workers of a Ray cluster")
    add("--json", action="store_true", help="print everything as JSON")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        results = _run(given)
    except HeadcountError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"Stopped. Results are kept in {given.out}; the same command continues.", file=sys.stderr)
        return 130
    write_whole(given.out / TABLE, to_csv(results).encode(), "the table")
    if given.figure is not None:
        save_figure(draw_results(results), given.figure)
    if given.page is not None:
        words = sys.argv[1:] if arguments is None else arguments
        command = shlex.join(["python", "-m", "benchmarks.calibration", *map(str, words)])
        write_page(given.page, results, command=command, figure=given.figure)
    if given.json:
        print(json.dumps(_as_json(results), indent=1))
    else:
        print("\n".join([*table("family", by_family(results) | overview(results)), "", *sentences(results)]))
    return 3 if any(result.error for result in results) else 0


def _run(given: argparse.Namespace) -> list[TaskResult]:
    options = options_of(effort=given.effort, seeds=given.seeds, heads=counts(given.heads, "--heads"))
    chosen, protocol = choose(given.families, given.tasks), protocol_of(options)
    if given.page is not None:
        parts(given.page)  # refused before hours of training
    keep_compiled_programs()
    done = len(finished(chosen, given.out, protocol))
    print(f"{len(chosen)} tasks, {protocol}; {done} of them already in {given.out}", file=sys.stderr)

    def on_task(result: TaskResult) -> None:
        nonlocal done
        done += 1
        print(f"{done} of {len(chosen)}: {outcome(result)}", file=sys.stderr, flush=True)

    if done == len(chosen):
        return calibrate(chosen, given.out, **options)
    with executor_of(given.on, given.workers) as executor:
        return calibrate(chosen, given.out, on=executor, on_task=on_task, **options)


def choose(families: str | None, first: int | None) -> list[KnownTask]:
    """The first tasks of these families, or the calibration set. Raises InputError for an unknown family."""
    names = (
        [name for name in FAMILIES if name != GRADUAL]
        if families is None
        else [name.strip() for name in families.split(",")]
    )
    for name in names:
        hint = f"{did_you_mean(name, FAMILIES)} The families: {', '.join(FAMILIES)}."
        require(name in FAMILIES, f'there is no family "{name}".{hint}', what="families", given=name)
    require(first is None or first >= 1, f"--tasks must be at least 1, got {first}.", what="tasks", given=first)
    every = (*calibration_set(), *enough_set())
    return [task for name in names for task in [each for each in every if each.family == name][:first]]


def _as_json(results: Sequence[TaskResult]) -> dict[str, Any]:
    groups = {"families": by_family(results), "overview": overview(results)}
    rows = {part: {name: row.as_dict() for name, row in summaries.items()} for part, summaries in groups.items()}
    return {**rows, "tasks": [result.as_row() for result in results]}


if __name__ == "__main__":
    sys.exit(main())
