"""What to do after an answer: why, and the command that does it.

Every rule looks at one thing that may be wrong with a result. The rules are in the order of what they matter: what
stopped training first, then what hides an answer, then what would make it more certain.
"""

import functools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..store import Experiment, Outcome, Record, TrainSpec
from .answer import asked_table, has_map
from .answer_base import Answer
from .baselines import CONSTANT, Baseline
from .commands import as_arguments, as_option, changed_command, measured_task, option_value
from .heads_map import has_heads_map
from .heads_rule import DIVERGED, ONE_SEED, judged_errors
from .prose import differ_by_chance
from .signals import (
    ALIKE,
    GROWS_WITH_LENGTH,
    NO_SHARP_DROP,
    NOT_LEARNED,
    ONE_HEAD_COUNT,
    SMALL,
    STILL_FALLING,
    has_learned,
)
from .table import ErrorTable
from .words import count_of_heads, error_words, heads_listed

MAX_STEPS = 3
OVERFITTING = 7.0
"""A validation error this many times the training error is overfitting."""
FALLING, LAST_POINTS = 0.95, 3
"""A validation curve has not converged if over its last points (a tenth of the steps) it falls below this share."""
MANY_SEEDS = 16
"""Seeds that are worth trying where fewer left several head counts open."""
USUAL_SEEDS, USUAL_HEADS = 4, range(1, 7)
ENOUGH_HEADS = 16
"""Head counts that are worth trying where fewer did not show an answer."""
MAX_VALIDATION_FRACTION = 0.4
SLOWER = 0.3
MORE_EXAMPLES = 4
THOROUGH = "thorough"
FAILS = 0.5
"""A smallest error above this share of a constant answer's: every head count fails."""
STORED = ("examples", "content", "corpus")
"""What the spec of a task of stored examples has: arrays, images, passages."""
OF_DATA = ("answered_at", "validation_fraction")
"""Options of a file of data; a task that was made in Python has them already."""
CONTINUING = ("heads", "seeds", "effort")
"""Options that continue the same experiment."""
ALWAYS_TAKEN = (*CONTINUING, "learning_rates")
"""Arguments that `hc.measure` takes with any task, model and training."""
OF_THE_TASK = ("--targets", "--sequence", "--embeddings")
"""Options of `headcount measure` that `headcount verify` needs to read a user's data again."""
MAX_HEADS = 32
"""Head counts past which no more are advised."""
UNKNOWNS = {"seeds": "the scatter between seeds", "data": "other draws of the data", "search": "the search"}
MORE_HEADS = {
    STILL_FALLING: "The error still falls with every head",
    NO_SHARP_DROP: "The error changes with heads, and more may show a drop that lasts",
    GROWS_WITH_LENGTH: "No head count lowers the error, and it grows with length; more heads may",
}


@dataclass(frozen=True)
class NextStep:
    """`why` is a sentence without a full stop; `command` is what to run, or Python to write; empty where none helps."""

    why: str
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that advice depends on.

    `examples` is the number of validation examples, None where that is not known. `effort` is the stored fact of this
    name; it is empty where every combination was trained. `command` is what was typed, empty for a run from Python.
    """

    experiment: Experiment
    records: Sequence[Record]
    table: ErrorTable
    answer: Answer
    baselines: Sequence[Baseline] = ()
    examples: int | None = None
    effort: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    command: str = ""

    def step(self, why: str, **options: Any) -> NextStep:
        """Return a step that changes one option; in words alone where the run may not take it."""
        ((name, value),) = options.items()
        taken = name in ALWAYS_TAKEN
        if self.command:
            taken = name not in OF_DATA or (self.of_arrays and ":" not in measured_task(self.command))
        if not taken:
            return NextStep(f"{why} ({as_arguments(options)})")
        if self.command and self.folder and name not in CONTINUING:  # another question, in a folder of its own
            options["out"] = f"{self.folder.rstrip('/')}-{name.replace('_', '-')}-{as_option(value)}"
        return NextStep(why, changed_command(self.command, options))

    def setting(self, part: str, name: str, otherwise: Any = None) -> Any:
        """Return a setting of the task, the model or the training that all cells share."""
        return self.experiment.settings.get(part, {}).get(name, otherwise)

    def usual(self, name: str) -> Any:
        """Return a setting of the training that all share, or the largest of models that started at random weights."""
        tried = [getattr(record.cell.train, name) for record in self.records if not record.cell.parent]
        return self.setting("train", name) or max(tried, default=getattr(TrainSpec(), name))

    @property
    def of_map(self) -> bool:
        """Whether head counts were tried at several ranks, kv_heads or head_dims."""
        return has_map(self.table) or has_heads_map(self.table)

    @property
    def judged(self) -> ErrorTable | None:
        """The errors that decide; None of a map, and where nothing finished."""
        return None if self.of_map else judged_errors(asked_table(self.table)[0])

    @property
    def of_arrays(self) -> bool:
        """Whether the task is a user's x and y, which only they know how to read."""
        return self.setting("task", "examples") is not None

    @property
    def stored(self) -> bool:
        """Whether the examples are a user's arrays, images or passages, of which no more can be drawn."""
        return any(self.setting("task", name) is not None for name in STORED)

    @functools.cached_property
    def unsolved(self) -> Record | None:
        """The best record at the answer, or of all without one; None where its error is too small to be lowered."""
        measured = [record for record in self.records if record.finished and not math.isnan(record.error)]
        at = [record for record in measured if record.cell.model.get("heads") == self.answer.heads]
        best = min(at or measured, key=lambda record: record.error, default=None)
        return None if best is None or best.error <= SMALL * best.metrics.get("baseline", 1.0) else best

    @property
    def missing(self) -> int:
        """Models that were asked for and have no result, where nothing was asked to the end since."""
        return 0 if self.effort.get("ended") else len(self.experiment.places) - len(self.records)

    @property
    def overfitted(self) -> float | None:
        """The training error of the unsolved record, where it is far below the validation error."""
        record = self.unsolved
        if record is None or self.setting("train", "train_examples") == 0:
            return None
        name = self.table.metric.name
        training = record.metrics.get(f"fitted_{name}", record.metrics.get(f"train_{name}"))
        return None if training is None or OVERFITTING * training > record.error else training

    @property
    def converged(self) -> bool:
        """Whether the unsolved record's error no longer falls at the end of training, or there is no such record."""
        errors = [] if self.unsolved is None else [error for _, error in self.unsolved.curve]
        return len(errors) <= LAST_POINTS or errors[-1] >= FALLING * errors[-LAST_POINTS]


def next_steps(situation: Situation) -> tuple[NextStep, ...]:
    """Return what to do next, the most useful first: at least one step and at most three."""
    steps: list[NextStep] = []
    for rule in RULES:
        for step in rule(situation):
            if step.command not in {each.command for each in steps if each.command}:
                steps.append(step)
    return tuple(steps[:MAX_STEPS])


def _stopped(of: Situation) -> Iterator[NextStep]:
    """Continue training that ended before it was done, with the same command."""
    again = of.command or "hc.measure(...)"
    if of.effort.get("ended") == "budget":
        yield NextStep("The minutes were over before the answer was settled; the same command continues", again)
    elif of.missing:
        models = "1 model asked for is" if of.missing == 1 else f"{of.missing} models asked for are"
        yield NextStep(f"{models} not trained yet; the same command continues", again)
    failed = sum(not record.settled for record in of.records)
    if failed:
        yield NextStep(f"Of {len(of.records)} models {failed} failed; the same command trains them again", again)
    diverged = sum(record.outcome is Outcome.DIVERGED for record in of.records)
    if diverged:
        why = f"Of {len(of.records)} models {diverged} {DIVERGED}"
        yield of.step(why, learning_rates=[min(SLOWER * of.usual("learning_rate"), TrainSpec().learning_rate)])


def _too_little_tried(of: Situation) -> Iterator[NextStep]:
    if of.answer.reason == ONE_SEED and not of.effort:
        yield of.step("One seed is not evidence", seeds=USUAL_SEEDS)
    if of.answer.reason == ONE_HEAD_COUNT and "heads" in of.experiment.axes:
        yield of.step("Head counts are compared, so give several", heads=USUAL_HEADS)


def _nothing_learned(of: Situation) -> Iterator[NextStep]:
    if not of.answer.reason.startswith(NOT_LEARNED) and "no model tried learns" not in of.answer.reason:
        return
    rivals = [each for each in of.baselines if each.name != CONSTANT]
    constant = next((each.error for each in of.baselines if each.name == CONSTANT), 1.0)
    best, longer = min(rivals, key=lambda each: each.error, default=None), 2 * of.usual("steps")
    if best is not None and has_learned(best.error, constant, float(of.table.noise.max())):
        reached = f"{best.label} has {error_words(of.table.metric, [best.error])}"
        why = f"Nothing was learned, but y depends on x: {reached}; another learning rate may help"
        yield of.step(why, learning_rates=[SLOWER * of.usual("learning_rate")])
        yield of.step("Or train for longer", steps=longer)
        return
    # From a part of the training examples it does not follow.
    *others, last = [each.label for each in rivals if not each.note] or [""]
    also = f", nor by {', '.join(others)}{' or ' if others else ''}{last}" if last else ""
    why = f"Nothing was learned{also}: is row i of y the target of row i of x? Or training is too short"
    yield of.step(why, steps=longer)


def _more_heads(of: Situation) -> Iterator[NextStep]:
    """Lower an error that more heads may still lower."""
    judged = of.judged
    if judged is None or of.answer.reason not in MORE_HEADS or differ_by_chance(judged, of.examples):
        return
    if of.answer.kind == "enough" and of.answer.gains:
        return
    window, longest = of.setting("model", "window"), max(judged.values("length"))
    if window is not None and window < longest and of.setting("model", "layers", 1) == 1:
        hidden = f"With one layer and a window of {window}, no head sees the other tokens of {longest}"
        yield of.step(f"{hidden}; a window over all of them", window=longest)
        return
    most = judged.values("heads")[-1]
    if most < MAX_HEADS:
        more = range(1, max(ENOUGH_HEADS, 2 * most) + 1)
        yield of.step(f"{MORE_HEADS[of.answer.reason]}; at most {most} were tried", heads=more)
    if of.answer.reason == GROWS_WITH_LENGTH:
        yield of.step("Or another layer", layers=of.setting("model", "layers", 1) + 1)


def _few_examples(of: Situation) -> Iterator[NextStep]:
    judged = of.judged
    if judged is None or of.answer.kind in ("needs", "floor") or len(judged.values("heads")) < 2:
        return
    if of.examples is None or not differ_by_chance(judged, of.examples):
        return
    heads = heads_listed(judged.values("heads"))
    why = f"{heads} differ by less than the sampling error of {of.examples:,} validation examples, which is no trend"
    fraction = of.setting("task", "validation_fraction")
    if not of.stored:
        yield of.step(why, validation_examples=MORE_EXAMPLES * of.examples)
    elif fraction is not None and of.examples < MAX_VALIDATION_FRACTION * of.setting("task", "examples", float("inf")):
        yield of.step(f"{why}; more data would tell, or a larger share", validation_fraction=MAX_VALIDATION_FRACTION)
    else:
        yield NextStep(f"{why}; only more data would tell")


def _flat(of: Situation) -> Iterator[NextStep]:
    """Lower an error that no head count lowers."""
    flat = of.answer.kind == "floor" or (of.answer.kind == "enough" and of.answer.limit == "neither")
    if not flat or of.unsolved is None:
        return
    floor = "" if of.answer.floor is None else f" ({error_words(of.table.metric, [of.answer.floor])})"
    yield of.step(
        f"Heads do not lower the error{floor}; another layer may", layers=of.setting("model", "layers", 1) + 1
    )


def _at_the_query(of: Situation) -> Iterator[NextStep]:
    """Read stored examples that no head count learns at the last token."""
    read_at = of.setting("task", "answered_at") or of.setting("model", "answered_at") or "sequence"
    judged = of.judged
    if not of.of_arrays or read_at != "sequence" or judged is None or judged.relative.min() <= FAILS:
        return
    rival = min((each.error for each in of.baselines if each.name != CONSTANT), default=math.inf)
    if rival > ALIKE * judged.errors.min():  # what needs no attention does not fail for want of a query
        words = "Every head count leaves most of the error. If the last token asks about the others, read it there"
        yield of.step(words, answered_at="query")


def _overfitting(of: Situation) -> Iterator[NextStep]:
    record, training = of.unsolved, of.overfitted
    if record is None or training is None:
        return
    words = [error_words(of.table.metric, [value]) for value in (training, record.error)]
    why = f"Overfitting: {words[0]} on training examples, {words[1]} on validation examples"
    if not of.stored:
        examples = of.setting("train", "train_examples", record.cell.train.train_examples)
        yield of.step(f"{why}; use more training examples", train_examples=MORE_EXAMPLES * examples)
        return
    hidden = of.setting("model", "hidden")
    if hidden is None or hidden < 8:
        yield NextStep(f"{why}; more data would help")
    else:
        yield of.step(f"{why}; more data would help, or a smaller net", hidden=hidden // 2)


def _not_converged(of: Situation) -> Iterator[NextStep]:
    record = of.unsolved
    if record is None or of.converged or of.answer.reason.startswith(NOT_LEARNED):
        return
    heads = record.cell.model.get("heads")
    of_what = "" if heads is None else f" of {count_of_heads(heads)}"
    yield of.step(f"The error{of_what} still falls at the end of training", steps=2 * of.usual("steps"))


def _uncertain(of: Situation) -> Iterator[NextStep]:
    """Narrow an interval of several head counts, or an answer that the seeds do not bear out."""
    if of.answer.reason in (ONE_SEED, ONE_HEAD_COUNT) or of.answer.reason.endswith(DIVERGED):
        return
    narrowing = None if of.of_map else narrowing_of(of.answer, of.table, of.effort)
    if narrowing is not None:
        counts = f"{of.answer.low} to {count_of_heads(of.answer.high or 0)}"
        few = of.answer.kind == "enough" and of.answer.widest == "data"
        unknown = "few validation examples" if few else UNKNOWNS[of.answer.widest or "seeds"]
        yield of.step(f"{counts} are left open by {unknown}", **narrowing)
    elif of.answer.kind == "none" and (of.of_map or not of.effort):
        yield of.step("More seeds may show an answer", seeds=2 * max(1, len(of.table.values("seed"))))
    elif of.answer.kind == "none" and of.effort.get("level") != THOROUGH:
        yield of.step("More starts may show an answer", effort=THOROUGH)


def narrowing_of(answer: Answer, table: ErrorTable, effort: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options that leave fewer head counts open; None where one is left, or all was tried."""
    if answer.widest is None:
        return None
    if answer.kind == "enough" and answer.widest == "data":
        return {"effort": "normal"} if effort.get("level") == "quick" else None
    interval = answer.unknowns[answer.widest]
    tried = table.values("heads")
    untried = [count for count in range(interval.low, interval.high + 1) if count not in tried]
    if untried:
        return {"heads": sorted({*tried, *untried})}
    if table.has("start") or effort:
        return None if effort.get("level") == THOROUGH else {"effort": THOROUGH}
    return {"seeds": max(MANY_SEEDS, 2 * len(table.values("seed")))}


def _settled(of: Situation) -> Iterator[NextStep]:
    """Do what is always worth doing."""
    folder = of.folder or "DIR"
    yield NextStep("Everything on one page", shlex.join(["headcount", "report", folder]))
    if of.answer.kind == "needs" and of.command:
        task, words = measured_task(of.command), ["headcount", "verify", folder]
        if of.stored or task != of.setting("task", "task"):
            given = {"--task": task} | {option: option_value(of.command, option) for option in OF_THE_TASK}
            words += [word for option, value in given.items() if value for word in (option, value)]
        yield NextStep("Train some of these models again and compare", shlex.join(words))


RULES: tuple[Callable[[Situation], Iterator[NextStep]], ...] = (
    _stopped,
    _too_little_tried,
    _at_the_query,
    _nothing_learned,
    _few_examples,
    _overfitting,
    _more_heads,
    _flat,
    _not_converged,
    _uncertain,
    _settled,
)
