"""The verbs by group, in the order of the help: what each says of itself, what to type, and the module it lives in.

A verb's module is imported when the verb is used, so that the satellites' verbs stand here without an import of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verb:
    """`summary` is one line of help; `home` the module under `headcount` whose function has the verb's name; `examples`
    are commands with what they do.
    """

    summary: str
    group: str
    home: str
    examples: tuple[tuple[str, str], ...] = ()


VERBS: dict[str, Verb] = {
    "measure": Verb(
        summary="Say how many heads a task needs, from models trained on it.",
        group="Measure",
        home="cli.measure",
        examples=(
            ("headcount measure sum-of-maxima --intrinsic-dim 3", "a named task"),
            ("headcount measure data.npz --effort quick", "your arrays x and y, a first answer"),
            ("headcount measure mine.py:task --lengths 8,16 --minutes 10", "your Python task"),
            ("headcount measure photos/ --dry-run", "a folder of images: what it would cost"),
            ("headcount measure nearest-neighbour --ranks 1,2,4,8", "short of heads, or of rank?"),
            ("headcount measure sum-of-maxima --kv-heads 1,2 --head-dims 2,4,8", "with shared keys and values: a map"),
            ("headcount measure sum-of-maxima --effort thorough --on ray", "on a Ray cluster, or a local one"),
        ),
    ),
    "reproduce": Verb(
        summary="Reproduce a published table or figure, and judge its claims.",
        group="Measure",
        home="papers.cli.reproduce",
        examples=(
            ("headcount reproduce", "the studies and what they cost here"),
            ("headcount reproduce table2 --scale smoke", "one of them, in a minute or two"),
            ("headcount reproduce rank-figure1 --scale paper --layers 3 --seeds 1", "a part; others are added to it"),
        ),
    ),
    "calibrate": Verb(
        summary="Measure tasks whose answer is known, and say how often it comes out right.",
        group="Measure",
        home="cli.calibrate",
        examples=(
            ("headcount calibrate --effort quick", "how often the answer comes out right"),
            ("headcount calibrate --out calibration --json", "everything as JSON"),
        ),
    ),
    "inspect": Verb(
        summary="Say which heads of a trained model are needed, of which rank, and what can go.",
        group="Trained models",
        home="pretrained.cli.inspect",
        examples=(
            ("headcount inspect all-MiniLM-L6-v2/ --data sentences.txt", "which heads it needs, and a page"),
            ("headcount inspect SmolLM2-135M/", "without data: sequences of the model itself"),
            ("headcount inspect vit/ --data photos/", "a vision transformer on a folder of images"),
        ),
    ),
    "prune": Verb(
        summary="Remove heads of a trained model; the result loads in stock transformers.",
        group="Trained models",
        home="pretrained.cli.change",
        examples=(
            ("headcount prune SmolLM2-135M/ --keep 6 --data text.txt --out smaller", "6 of 9 heads per layer"),
            (
                "headcount prune ViT/ --remove 25% --data photos/ --out smaller --recover 300",
                "then train the output projections a little",
            ),
            ("headcount prune BERT/ --keep 8 --zeroed --out masked", "where no class stores fewer heads"),
            ("headcount prune SmolLM2-135M/ --keep 6 --dry-run", "whether it can be stored, and what it saves"),
        ),
    ),
    "group": Verb(
        summary="Let heads of a trained model share keys and values; the result loads in stock transformers.",
        group="Trained models",
        home="pretrained.cli.change",
        examples=(
            (
                "headcount group Llama/ --key-heads 3 --data text.txt --out grouped",
                "3 key heads for all heads of a layer",
            ),
            ("headcount group Llama/ --key-heads 3 --dry-run", "whether it can be stored, and what it saves"),
        ),
    ),
    "shrink": Verb(
        summary="Lower the rank of a trained model's heads; the result loads in stock transformers.",
        group="Trained models",
        home="pretrained.cli.change",
        examples=(
            ("headcount shrink Llama/ --head-dim 32 --data text.txt --out narrow", "32 numbers per head"),
            ("headcount shrink ViT/ --head-dim 32 --dry-run", "whether it can be stored, and what it saves"),
        ),
    ),
    "show": Verb(
        summary="The answer and the errors of every experiment in a results folder.",
        group="Look",
        home="cli.show",
        examples=(
            ("headcount show results/sum-of-maxima", "the answer and the errors"),
            ("headcount show results/sum-of-maxima --figure errors.svg", "the errors as a figure"),
        ),
    ),
    "report": Verb(
        summary="Everything a results folder says, as one HTML page that needs nothing but itself.",
        group="Look",
        home="cli.report",
        examples=(
            ("headcount report results/sum-of-maxima", "writes report.html into the folder"),
            ("headcount report results/sum-of-maxima --figures figures --format pdf", "and every figure by itself"),
        ),
    ),
    "serve": Verb(
        summary="Results folders as live pages in a browser, on this machine alone.",
        group="Look",
        home="serve.cli.serve",
        examples=(
            ("headcount serve results --open", "every results folder below, in a browser"),
            ("headcount serve results/sum-of-maxima --port 8899", "one folder, at a port of your choice"),
        ),
    ),
    "compare": Verb(
        summary="The answers and the errors of several results folders side by side.",
        group="Look",
        home="cli.compare",
        examples=(
            ("headcount compare results/a results/b", "answers and errors side by side"),
            ("headcount compare results/a results/b --figure both.svg", "all errors in one figure"),
        ),
    ),
    "status": Verb(
        summary="What a results folder holds, what is missing, and how to go on.",
        group="Look",
        home="cli.status",
        examples=(
            ("headcount status results/sum-of-maxima", "what is done and what is missing"),
            ("headcount status results", "all results folders below"),
        ),
    ),
    "export": Verb(
        summary="Every cell of a results folder as a table.",
        group="Look",
        home="cli.export",
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
        home="cli.verify",
        examples=(
            ("headcount verify results/sum-of-maxima --cells 3", "train three stored cells again"),
            ("headcount verify smaller", "does a pruned model compute what was measured?"),
        ),
    ),
    "collide": Verb(
        summary="Find sequences that stored models cannot tell apart, and certify them.",
        group="Check",
        home="theory.cli.collide",
        examples=(("headcount collide results/sum-of-maxima --heads 1:3", "sequences that small models confuse"),),
    ),
    "doctor": Verb(
        summary="Check that this machine can run headcount.",
        group="Check",
        home="cli.doctor",
        examples=(("headcount doctor", "what works here, and what does not"),),
    ),
    "bounds": Verb(
        summary="Every bound of a paper at one setting.",
        group="Theory",
        home="theory.cli.bounds",
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
        home="theory.cli.prove",
        examples=(("headcount prove --json", "every claim with evidence, control and verdict, and what is not run"),),
    ),
    "tasks": Verb(
        summary="The named tasks, or one of them: its support dimension, and the papers' assumptions.",
        group="Theory",
        home="theory.cli.tasks",
        examples=(
            ("headcount tasks", "the named tasks and their options"),
            ("headcount tasks --support", "how many tokens each of them depends on at once"),
            ("headcount tasks quadratic-basins", "one of them, also against the papers' assumptions"),
        ),
    ),
    "models": Verb(
        summary="Head counts of published models, and what the bounds say of them.",
        group="Theory",
        home="papers.cli.models",
        examples=(
            ("headcount models", "heads, key heads and widths, by year"),
            ("headcount models --figure models.svg", "heads against width"),
        ),
    ),
    "completion": Verb(
        summary="Print a script that completes verbs and options when Tab is pressed.",
        group="Shell",
        home="cli.completion",
        examples=(
            ("headcount completion bash > ~/.local/share/bash-completion/completions/headcount", "for bash"),
            ("headcount completion fish > ~/.config/fish/completions/headcount.fish", "for fish"),
        ),
    ),
}

EVERY_COMBINATION = "Every combination, as in the papers"
PANELS = ("", "Your data", "Task", EVERY_COMBINATION, "Training", "Model")
"""Groups of options, the common ones first."""


def with_examples(verb: str, text: str) -> str:
    """A verb's help with its examples after the first paragraph, each on a line of its own."""
    first, _, rest = text.strip().partition("\n\n")
    examples = VERBS[verb].examples
    if not examples:
        return text
    widest = max(len(command) for command, _ in examples)
    beside = widest <= 46
    lines = [
        f"  {command:<{widest}}  # {what}" if beside else f"  {command}\n      # {what}" for command, what in examples
    ]
    return "\n\n".join(filter(None, [first, "\b\nExamples:\n" + "\n".join(lines), rest]))
