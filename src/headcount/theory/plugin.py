"""The plugin of the theory: its verbs, and the support dimension of measured tasks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..registry import Plugin, TaskFact, Verb

if TYPE_CHECKING:
    from ..registry import ModelFact
    from ..tasks import AbstractTask

VERBS: dict[str, Verb] = {
    "collide": Verb(
        summary="Find sequences that stored models cannot tell apart, and certify them.",
        group="Check",
        home="headcount.theory.cli.collide",
        examples=(("headcount collide results/sum-of-maxima --heads 1:3", "sequences that small models confuse"),),
    ),
    "bounds": Verb(
        summary="Every bound of a paper at one setting.",
        group="Theory",
        home="headcount.theory.cli.bounds",
        figure=(
            "--plot",
            "Draw the exponent k, with --rank the least error, with --class floors or the phase diagram "
            "(.svg, .pdf, .png).",
        ),
        examples=(
            ("headcount bounds --heads 2 --length 128 --intrinsic-dim 4", "how many heads"),
            ("headcount bounds --heads 4 --length 16 --rank 2 --dim 8", "of which rank"),
            ("headcount bounds --class hard --alphabet 5 --heads 2 --length 8 --intrinsic-dim 3", "any hard heads"),
            (
                "headcount bounds --class bounded --slope 1e3 --heads 1 --head-dim 2 --length 128 --intrinsic-dim 2",
                "any heads with bounded values and readout slope",
            ),
        ),
    ),
    "prove": Verb(
        summary="Run every theorem of both papers that we could run, at small size.",
        group="Theory",
        home="headcount.theory.cli.prove",
        examples=(("headcount prove --json", "every claim with evidence, control and verdict, and what is not run"),),
    ),
    "tasks": Verb(
        summary="The named tasks, or one of them: its support dimension, and the papers' assumptions.",
        group="Theory",
        home="headcount.theory.cli.tasks",
        examples=(
            ("headcount tasks", "the named tasks and their options"),
            ("headcount tasks --support", "how many tokens each of them depends on at once"),
            ("headcount tasks quadratic-basins", "one of them, also against the papers' assumptions"),
        ),
    ),
}


class TheoryPlugin(Plugin):
    """Bounds, proofs, collisions and the support dimension."""

    verbs = VERBS

    def task_facts(self, task: "AbstractTask", lengths: Sequence[int], stored: Mapping[str, Any]) -> Iterable[TaskFact]:
        from .support.stored import task_support_facts

        return task_support_facts(task, lengths, stored)

    def model_facts(self, task: "AbstractTask") -> Mapping[str, "ModelFact"]:
        from .support.stored import model_facts

        return model_facts(task)


PLUGIN = TheoryPlugin()
