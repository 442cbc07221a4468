"""Does headcount's answer carry over to stock transformers? Answers come first; the same command continues.

    python -m benchmarks.carry_over --out carry-over --figure docs/carry-over.svg --page docs/carry-over.md
    python -m benchmarks.carry_over --tasks lookup-3,readers-2 --out trial
    python -m benchmarks.carry_over --development --out development

Packages that ship the real sets are downloaded into --cache and are not installed. Needs torch and transformers.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.calibration.page import parts
from headcount._cache import keep_compiled_programs
from headcount.errors import HeadcountError, did_you_mean, require
from headcount.report.render.figure import save_figure

from .data import REAL_SETS
from .figure import draw_outcome
from .grid import Results
from .judge import recommended
from .known import KNOWN_TASKS
from .page import MARKERS, Outcome, summary, write_page
from .study import StudyTask, known_rows, real_row, run_answers, run_experiments, run_stock, study_tasks


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.carry_over", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("carry-over"), help="a folder for answers and results of stock models")
    add("--cache", type=Path, default=Path(".cache/carry-over"), help="a folder for downloaded packages")
    add("--tasks", help="only these tasks: lookup-3,digits-rows")
    add("--development", action="store_true", help="the other half of the real sets, on which choices may be made")
    add("--answers-only", action="store_true", help="headcount's answers, and no stock model")
    add("--figure", type=Path, help="draw the result: .svg, .pdf or .png")
    add("--page", type=Path, help="write the result between the markers of this Markdown page")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if given.page is not None:
            parts(given.page, MARKERS)  # refused before an hour of training
        outcome = _run(given)
    except HeadcountError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"Stopped. Results are kept in {given.out}; the same command continues.", file=sys.stderr)
        return 130
    if given.figure is not None:
        save_figure(draw_outcome(outcome), given.figure)
    if given.page is not None:
        figure = Path(os.path.relpath(given.figure or "carry-over.svg", given.page.parent)).as_posix()
        command = shlex.join(["python", "-m", "benchmarks.carry_over", *map(str, words)])
        write_page(given.page, outcome, command=command, figure=figure)
    print("\n".join(summary(outcome)))
    return 0


def _run(given: argparse.Namespace) -> Outcome:
    keep_compiled_programs()
    names = [] if given.tasks is None else [name.strip() for name in given.tasks.split(",")]
    known = [each.name for each in (*KNOWN_TASKS, *REAL_SETS)]
    for name in names:
        hint = did_you_mean(name, known)
        require(name in known, f'there is no task "{name}".{hint}', what="tasks", given=name)
    tasks = study_tasks(given.cache, development=given.development, names=names)
    answers = run_answers(tasks, given.out, _say)
    results = Results(given.out)
    if not given.answers_only:
        for task in tasks:
            run_stock(task, answers[task.name, 1], results, _say)
    known_tasks, real_tasks = _halves(tasks)
    rows = [row for task in known_tasks for row in known_rows(task, answers, results)]
    found = {
        (task, layers): real_row(task, answers[task.name, 1], results, layers=layers)
        for task in real_tasks
        for layers in (1, 2)
    }
    trained = [task for task in real_tasks if found[task, 1] is not None]
    return Outcome(
        known=rows,
        real=[row for row in found.values() if row is not None],
        recommended={task.name: recommended(answers[task.name, 1], results, task.examples) for task in trained},
        answers=answers,
        tasks=tasks,
        experiments={} if given.answers_only else run_experiments(rows, results, _say),
    )


def _halves(tasks: list[StudyTask]) -> tuple[list[StudyTask], list[StudyTask]]:
    known = [task for task in tasks if task.known is not None]
    return known, [task for task in tasks if task.known is None]


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
