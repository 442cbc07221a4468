"""The study: every task's answer first, then its stock models, then what explains the disagreements; all resumable."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount import ArrayTask
from headcount.errors import HeadcountError
from headcount.stock import StockConfig, StockExamples

from .answers import StoredAnswer, measured_answer, with_choice
from .data import REAL_SETS, RealSet
from .explain import doubtful, explained
from .grid import SEEDS, STEPS, Results, Trained, Trial, known_configs, real_configs
from .judge import Need, Verdict, best_trials, gradual_need, known_need, recommended_config, verdict
from .known import EXAMPLES, KNOWN_TASKS, KnownD

REAL_EXAMPLES = 2500
"""Examples of a real set in the study, a fifth of them for validation."""
DEEPER = ("lookup-2",)
"""Tasks whose answer is measured with two layers too."""
SOLVED_ERROR = 0.03
"""What counts as solved where no model of a rule learned the task."""
ANSWERS = "answers.jsonl"
Say = Callable[[str], None]


@dataclass(frozen=True)
class StudyTask:
    """A task of the study and where its arrays come from."""

    source: KnownD | RealSet
    cache: Path

    @property
    def name(self) -> str:
        """Unique within the study."""
        return self.source.name

    @property
    def known(self) -> int | None:
        """D; None of a real set."""
        return self.source.intrinsic_dim if isinstance(self.source, KnownD) else None

    @property
    def family(self) -> str:
        """Family of a task of known D, kind of a real set."""
        return self.source.family if isinstance(self.source, KnownD) else self.source.kind

    @property
    def examples(self) -> int:
        """Examples that headcount and stock models share."""
        return EXAMPLES if isinstance(self.source, KnownD) else REAL_EXAMPLES

    def arrays(self, examples: int | None = None) -> tuple[Any, Any, dict[str, Any]]:
        """Return x, y and options of `headcount.measure`."""
        count = examples or self.examples
        if isinstance(self.source, KnownD):
            return self.source.arrays(count)
        return self.source.arrays(self.cache, count)

    def stock_examples(self, examples: int | None = None) -> StockExamples:
        """Return the examples in the split that headcount's models have."""
        x, y, options = self.arrays(examples)
        return StockExamples.of_task(ArrayTask(x, y, name=self.name, **options))


def study_tasks(cache: Path, *, development: bool = False, names: Iterable[str] = ()) -> list[StudyTask]:
    """Return the tasks of known D and the held-out real sets; `development` ones instead of these, or those named."""
    chosen = [*KNOWN_TASKS, *(each for each in REAL_SETS if each.held_out != development)]
    asked = set(names)
    return [StudyTask(each, cache) for each in chosen if not asked or each.name in asked]


def run_answers(tasks: list[StudyTask], out: Path, say: Say) -> dict[tuple[str, int], StoredAnswer]:
    """Return headcount's answer to every task, by name and layers, measured and stored where it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    found = stored_answers(out)
    asked = [(task, layers) for task in tasks for layers in (1, *((2,) if task.name in DEEPER else ()))]
    for task, layers in asked:
        if (task.name, layers) not in found:
            x, y, options = task.arrays()
            answer = measured_answer(task.name, x, y, out / f"{task.name}-{layers}", layers=layers, **options)
            if isinstance(task.source, RealSet) and answer.heads is not None:
                answer = with_choice(answer, task.stock_examples(), STEPS["real"])
            found[task.name, layers] = answer
            with (out / ANSWERS).open("a") as file:
                file.write(json.dumps(answer.as_dict()) + "\n")
            say(f"{task.name}, {layers} layers: {answer.sentence} ({answer.seconds:.0f} CPU s)")
    return found


def stored_answers(out: Path) -> dict[tuple[str, int], StoredAnswer]:
    """Return the answers in a folder, by task and layers; the last of each counts."""
    path, found = out / ANSWERS, {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            content = json.loads(line)
        except ValueError:  # cut off
            continue
        content["errors"] = {int(count): error for count, error in content["errors"].items()}
        found[content["task"], content["layers"]] = StoredAnswer(**content)
    return found


def run_stock(task: StudyTask, answer: StoredAnswer, results: Results, say: Say) -> None:
    """Train the stock models of a task that are missing."""
    trials = planned(task)
    if not results.missing(trials) and not results.missing(second_starts(task, answer, results)):
        return
    try:
        examples = task.stock_examples()
    except HeadcountError as error:
        say(f"{task.name}: no stock models: {error}")
        return
    for trial in trials:
        results.train(trial, examples, keep_losses=task.known is None)
    for trial in second_starts(task, answer, results):
        results.train(trial, examples, keep_losses=task.known is None)
    say(f"{task.name}: {len(trials)} stock models, {sum(results[each].seconds for each in trials):.0f} CPU s")


def second_starts(task: StudyTask, answer: StoredAnswer, results: Results) -> list[Trial]:
    """Return what is trained from a second seed: of known D fewer heads than did, of a real set what is compared."""
    if isinstance(task.source, RealSet):
        config = recommended_config(answer)
        configs = [
            *(each.config for each in best_trials(task.name, results, task.examples)),
            *([config] if config else []),
        ]
        return [Trial(task.name, each, seed, examples=task.examples) for each in configs for seed in SEEDS]
    again = []
    for configs in known_configs(task.source).values():
        errors = {each.heads: results[known_trial(task, each, SEEDS[0])].error for each in configs}
        need = known_need(errors)
        again += [each for each in configs if need is None or each.heads < need.high]
    return [known_trial(task, each, SEEDS[1]) for each in again]


def planned(task: StudyTask) -> list[Trial]:
    """Return the stock models of a task from the first seed."""
    if isinstance(task.source, RealSet):
        return [Trial(task.name, config, examples=task.examples) for config in real_configs()]
    configs = [config for configs in known_configs(task.source).values() for config in configs]
    return [known_trial(task, config, SEEDS[0]) for config in configs]


def known_trial(task: StudyTask, config: StockConfig, seed: int) -> Trial:
    """Return a trial of a task of known D."""
    return Trial(task.name, config, seed, STEPS["known"], task.examples)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison: a task, a rule of stock models, and how what they need lies to headcount's interval."""

    task: StudyTask
    rule: str
    answer: StoredAnswer
    need: Need | None
    verdict: Verdict
    errors: dict[int, float]


def known_rows(task: StudyTask, answers: dict[tuple[str, int], StoredAnswer], results: Results) -> list[Row]:
    """Return the comparisons of a task of known D, one per rule whose models are trained."""
    rows = []
    assert isinstance(task.source, KnownD)
    for rule, configs in known_configs(task.source).items():
        errors = {config.heads: smallest_error(task, config, results) for config in configs}
        known = {count: error for count, error in errors.items() if error is not None}
        if len(known) < len(configs):
            continue
        answer = answers[task.name, 1]
        need = known_need(known)
        rows.append(Row(task=task, rule=rule, answer=answer, need=need, verdict=verdict(answer, need), errors=known))
    return rows


def smallest_error(task: StudyTask, config: StockConfig, results: Results) -> float | None:
    """Return the smallest error of a model over seeds; None where none is trained."""
    trials = [known_trial(task, config, seed) for seed in SEEDS]
    found: list[Trained] = [results[trial] for trial in trials if trial in results]
    return min((each.error for each in found), default=None)


def real_row(
    task: StudyTask, answer: StoredAnswer, results: Results, *, layers: int = 1, width: int = 32
) -> Row | None:
    """Return the comparison of a real set at one depth and width of its grid; None where it is not trained."""
    trials = [
        Trial(task.name, config, examples=task.examples)
        for config in real_configs()
        if (config.layers, config.width) == (layers, width)
    ]
    if results.missing(trials):
        return None
    losses = {trial.config.heads: results.mean([trial])[1] for trial in trials}
    need = gradual_need(losses)
    errors = {trial.config.heads: results[trial].error for trial in trials}
    rule = f"width {width}, {layers} layer{'s' if layers > 1 else ''}"
    return Row(task=task, rule=rule, answer=answer, need=need, verdict=verdict(answer, need), errors=errors)


def run_experiments(
    rows: list[Row], results: Results, say: Say
) -> dict[tuple[str, str], list[tuple[str, float, bool]]]:
    """Train what explains the disagreements of one layer, and return it by task and rule."""
    found = {}
    for row in rows:
        assert isinstance(row.task.source, KnownD)
        config = doubtful(row.answer, row.need, row.verdict, known_configs(row.task.source)[row.rule])
        if config is None or not row.rule.endswith("1 layer"):
            continue
        trial = known_trial(row.task, config, SEEDS[0])
        smallest = min(row.errors.values()) if row.need else SOLVED_ERROR
        found[row.task.name, row.rule] = list(explained(trial, smallest, results, row.task.stock_examples))
        say(f"{row.task.name}, {row.rule}: {found[row.task.name, row.rule]}")
    return found
