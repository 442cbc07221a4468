"""The verbs by group, in the order of the help: those of the core, and those of the satellites."""

from ..registry import Verb, plugins

GROUPS = ("Measure", "Trained models", "Look", "Check", "Theory", "Shell")
CORE: dict[str, Verb] = {
    "measure": Verb(
        summary="Say how many heads a task needs, from models trained on it.",
        group="Measure",
        home="headcount.cli.measure",
        figure=("--figure", "Draw the result into a .svg, .pdf or .png file."),
        examples=(
            ("headcount measure sum-of-maxima --intrinsic-dim 3", "a named task"),
            ("headcount measure data.npz --effort quick", "your arrays x and y, a first answer"),
            ("headcount measure data.npz --for torch", "and the smallest PyTorch model that does as well"),
            ("headcount measure mine.py:task --lengths 8,16 --minutes 10", "your Python task"),
            ("headcount measure photos/ --dry-run", "a folder of images: what it would cost"),
            ("headcount measure nearest-neighbour --ranks 1,2,4,8", "short of heads, or of rank?"),
            ("headcount measure sum-of-maxima --kv-heads 1,2 --head-dims 2,4,8", "with shared keys and values: a map"),
            ("headcount measure sum-of-maxima --effort thorough --on ray", "on a Ray cluster, or a local one"),
        ),
    ),
    "show": Verb(
        summary="The answer and the errors of every experiment in a results folder.",
        group="Look",
        home="headcount.cli.show",
        figure=("--figure", "Draw the result into a .svg, .pdf or .png file."),
        examples=(
            ("headcount show results/sum-of-maxima", "the answer and the errors"),
            ("headcount show results/sum-of-maxima --figure errors.svg", "the errors as a figure"),
        ),
    ),
    "report": Verb(
        summary="Everything a results folder says, as one HTML page that needs nothing but itself.",
        group="Look",
        home="headcount.cli.report",
        examples=(
            ("headcount report results/sum-of-maxima", "writes report.html into the folder"),
            ("headcount report results/sum-of-maxima --figures figures --format pdf", "and every figure by itself"),
        ),
    ),
    "compare": Verb(
        summary="The answers and the errors of several results folders side by side.",
        group="Look",
        home="headcount.cli.compare",
        figure=("--figure", "Draw all errors into one .svg, .pdf or .png file."),
        examples=(
            ("headcount compare results/a results/b", "answers and errors side by side"),
            ("headcount compare results/a results/b --figure both.svg", "all errors in one figure"),
        ),
    ),
    "status": Verb(
        summary="What a results folder holds, what is missing, and how to continue.",
        group="Look",
        home="headcount.cli.status",
        examples=(
            ("headcount status results/sum-of-maxima", "what is done and what is missing"),
            ("headcount status results", "all results folders below"),
        ),
    ),
    "export": Verb(
        summary="Every cell of a results folder as a table.",
        group="Look",
        home="headcount.cli.export",
        examples=(
            ("headcount export results/sum-of-maxima > cells.csv", "every cell as CSV"),
            (
                "headcount export results/sum-of-maxima --format json --timing",
                "as JSON, with seconds, device and back end",
            ),
        ),
    ),
    "verify": Verb(
        summary="Train a random sample of stored cells again and compare; or run a written model's stored inputs.",
        group="Check",
        home="headcount.cli.verify",
        examples=(
            ("headcount verify results/sum-of-maxima --cells 3", "train three stored cells again"),
            ("headcount verify smaller", "does a pruned model compute what was measured?"),
        ),
    ),
    "doctor": Verb(
        summary="Check that this machine can run headcount.",
        group="Check",
        home="headcount.cli.doctor",
        examples=(("headcount doctor", "what works here, and what does not"),),
    ),
}


def every_verb() -> dict[str, Verb]:
    """Return all verbs, those of a group together; groups of other distributions come last."""
    verbs = CORE | {name: verb for plugin in plugins() for name, verb in plugin.verbs.items()}
    groups = [*GROUPS, *(verb.group for verb in verbs.values())]
    return dict(sorted(verbs.items(), key=lambda item: groups.index(item[1].group)))


VERBS = every_verb()

EVERY_COMBINATION = "Every combination, as in the papers"
PANELS = ("", "Your data", "Task", EVERY_COMBINATION, "Training", "Model")
"""Groups of options, the common ones first."""


def with_examples(verb: str, text: str) -> str:
    """Put the examples of a verb into its help, after the first paragraph, each on a line of its own."""
    first, _, rest = text.strip().partition("\n\n")
    examples = VERBS[verb].examples
    if not examples:
        return text
    widest = max(len(command) for command, _ in examples)
    fits = widest <= 46
    lines = [
        f"  {command:<{widest}}  # {what}" if fits else f"  {command}\n      # {what}" for command, what in examples
    ]
    return "\n\n".join(filter(None, [first, "\b\nExamples:\n" + "\n".join(lines), rest]))
