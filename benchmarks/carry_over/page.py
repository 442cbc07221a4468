"""The study in words, for the terminal and for docs/carry-over.md: the result first, then its tables."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.calibration.page import parts, percent
from headcount.report.files import write_whole

from .answers import StoredAnswer
from .grid import STEPS, fixed_head_width
from .judge import VERDICTS, Need, Recommended
from .study import Row, StudyTask

MARKERS = ("<!-- carry-over results: begin -->", "<!-- carry-over results: end -->")
HEAD_WIDTH = "fixed head width, 1 layer"
Experiments = dict[tuple[str, str], list[tuple[str, float, bool]]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything that the page and the figure show."""

    known: list[Row]
    real: list[Row]
    recommended: dict[str, Recommended | None]
    answers: dict[tuple[str, int], StoredAnswer]
    tasks: list[StudyTask]
    experiments: Experiments = field(default_factory=dict)


def write_page(path: Path, outcome: Outcome, *, command: str, figure: str) -> None:
    """Put the result and its tables between the markers of a page; the rest of it stays."""
    before, after = parts(path, MARKERS)
    lines = [
        headline(outcome),
        "",
        f"![Heads that stock transformers need, next to headcount's intervals]({figure})",
        "",
    ]
    lines += [f"*Written by `{command}`.*", "", *tables(outcome)]
    write_whole(path, "\n".join([before + MARKERS[0], *lines, MARKERS[1] + after]).encode())


def headline(outcome: Outcome) -> str:
    """Return the result in a sentence or two."""
    sentences = []
    held = [row for row in outcome.known if row.rule == HEAD_WIDTH]
    if held:
        agree = sum(row.verdict == "agree" for row in held)
        sentences.append(
            f"On {agree} of {len(held)} tasks of known D the heads that a stock one-layer transformer with heads of a "
            f"fixed width needs lie in headcount's interval"
        )
    found = outcome.recommended
    if found:
        good = sum(each is not None and each.holds for each in found.values())
        shares = sorted(each.share for each in found.values() if each is not None)
        middle = f", in {percent(shares[len(shares) // 2])} of the grid's time at the median" if shares else ""
        sentences.append(
            f"on {good} of {len(found)} real data sets the encoder that it names is within 10 % of the best of 24 "
            f"stock encoders, or within the sampling error{middle}"
        )
    trained = {row.task.name for row in (*outcome.known, *outcome.real)}
    missing = [task.name for task in outcome.tasks if task.name not in trained]
    if missing:
        sentences.append(f"{len(missing)} of {len(outcome.tasks)} tasks are not trained yet ({', '.join(missing)})")
    return "; ".join(sentences) + "."


def tables(outcome: Outcome) -> list[str]:
    """Return the tables: verdicts by rule and family, every task, what explains disagreements, real sets."""
    lines = [*_counted("rule", [(row.rule, row) for row in outcome.known]), ""]
    lines += [
        *_counted(
            "family, fixed head width", [(row.task.family, row) for row in outcome.known if row.rule == HEAD_WIDTH]
        )
    ]
    lines += ["", *_known(outcome), "", *_explained(outcome.experiments)]
    if outcome.recommended:
        lines += ["", *_counted("real sets", [(row.rule, row) for row in outcome.real]), "", *_real(outcome)]
    return lines


def _counted(first: str, rows: Iterable[tuple[str, Row]]) -> Iterable[str]:
    """Yield how often each verdict came, by group."""
    groups: dict[str, Counter[str]] = {}
    for name, row in rows:
        groups.setdefault(name, Counter())[row.verdict] += 1
    yield f"| {first} | {' | '.join(VERDICTS)} | of |"
    yield f"|---|{'---:|' * (len(VERDICTS) + 1)}"
    for name, counts in groups.items():
        yield f"| {name} | {' | '.join(str(counts[each]) for each in VERDICTS)} | {counts.total()} |"


def _known(outcome: Outcome) -> Iterable[str]:
    """Yield the tasks of known D with what each rule needs."""
    rules = list(dict.fromkeys(row.rule for row in outcome.known))
    yield f"| task | D | headcount | {' | '.join(rules)} |"
    yield f"|---|---:|---|{'---|' * len(rules)}"
    found = {(row.task.name, row.rule): row for row in outcome.known}
    for task in (each for each in outcome.tasks if each.known is not None):
        answer = outcome.answers.get((task.name, 1))
        cells = [_need(found.get((task.name, rule))) for rule in rules]
        deeper = outcome.answers.get((task.name, 2))
        words = (answer.sentence if answer else "-") + (f"; two layers: {deeper.sentence}" if deeper else "")
        yield f"| {task.name} | {task.known} | {words} | {' | '.join(cells)} |"


def _need(row: Row | None) -> str:
    if row is None:
        return "-"
    errors = ", ".join(f"{count}: {error:.2g}" for count, error in row.errors.items())
    return f"{need_words(row.need)}{'' if row.verdict == 'agree' else f' ({row.verdict})'}; {errors}"


def need_words(need: Need | None) -> str:
    """Return the need as `3`, or `4 to 6` where those between were not tried."""
    if need is None:
        return "none"
    return f"{need.high}" if need.low == need.high else f"{need.low} to {need.high}"


def _explained(experiments: Experiments) -> Iterable[str]:
    if not experiments:
        return
    yield "| where stock models of one layer need more | tried, with the error | explains it |"
    yield "|---|---|---|"
    for (name, rule), tried in experiments.items():
        why = next((words for words, _, solved in tried if solved), "none of these")
        yield f"| {name}, {rule} | {'; '.join(f'{words}: {error:.2g}' for words, error, _ in tried)} | {why} |"


def _real(outcome: Outcome) -> Iterable[str]:
    """Yield the real sets: the answer, the recommended encoder, the best of the grid, and the share of its time."""
    yield "| real set | kind | headcount | CPU s | recommended: error | best of 24: error | margin | holds | time |"
    yield "|---|---|---|---:|---|---|---:|---|---:|"
    for name, each in outcome.recommended.items():
        answer, task = outcome.answers[name, 1], next(task for task in outcome.tasks if task.name == name)
        cells = [name, task.family, answer.sentence, f"{answer.seconds:.0f}"]
        if each is None:
            cells += ["-", "-", "-", "no", "-"]
        else:
            cells += [f"{each.config}: {each.error:.3g}", f"{each.best_config}: {each.best:.3g}", f"{each.margin:.2g}"]
            cells += ["yes" if each.holds else "**no**", percent(each.share)]
        yield f"| {' | '.join(cells)} |"


def summary(outcome: Outcome) -> Sequence[str]:
    """Return the result and its tables, for a terminal."""
    about = f"{fixed_head_width(1).library} at fixed head width, torch at fixed width; {STEPS['known']} steps"
    return [headline(outcome), about, "", *tables(outcome)]
