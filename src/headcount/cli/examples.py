"""Which verbs belong together, and what to type: the help's groups and examples. Nothing is imported for it."""

GROUPS = {
    "Measure": ("measure", "reproduce", "calibrate"),
    "Trained models": ("inspect", "prune", "group", "shrink"),
    "Look": ("show", "report", "serve", "compare", "status", "export"),
    "Check": ("verify", "collide", "doctor"),
    "Theory": ("bounds", "prove", "tasks", "models"),
    "Shell": ("completion",),
}
EVERY_COMBINATION = "Every combination, as in the papers"
PANELS = ("", "Your data", "Task", EVERY_COMBINATION, "Training", "Model")
"""Groups of options, the common ones first."""

EXAMPLES = {
    "measure": (
        ("headcount measure sum-of-maxima --intrinsic-dim 3", "a named task"),
        ("headcount measure data.npz --effort quick", "your arrays x and y, a first answer"),
        ("headcount measure mine.py:task --lengths 8,16 --minutes 10", "your Python task"),
        ("headcount measure photos/ --dry-run", "a folder of images: what it would cost"),
        ("headcount measure nearest-neighbour --ranks 1,2,4,8", "short of heads, or of rank?"),
        ("headcount measure sum-of-maxima --kv-heads 1,2 --head-dims 2,4,8", "with shared keys and values: a map"),
        ("headcount measure sum-of-maxima --effort thorough --on ray", "on a Ray cluster, or a local one"),
    ),
    "show": (
        ("headcount show results/sum-of-maxima", "the answer and the errors"),
        ("headcount show results/sum-of-maxima --figure errors.svg", "the errors as a figure"),
    ),
    "status": (
        ("headcount status results/sum-of-maxima", "what is done and what is missing"),
        ("headcount status results", "all results folders below"),
    ),
    "compare": (
        ("headcount compare results/a results/b", "answers and errors side by side"),
        ("headcount compare results/a results/b --figure both.svg", "all errors in one figure"),
    ),
    "report": (
        ("headcount report results/sum-of-maxima", "writes report.html into the folder"),
        ("headcount report results/sum-of-maxima --figures figures --format pdf", "and every figure by itself"),
    ),
    "serve": (
        ("headcount serve results --open", "every results folder below, in a browser"),
        ("headcount serve results/sum-of-maxima --port 8899", "one folder, at a port of your choice"),
    ),
    "export": (
        ("headcount export results/sum-of-maxima > cells.csv", "every cell as CSV"),
        ("headcount export results/sum-of-maxima --format json --timing", "as JSON, with seconds, device and back end"),
    ),
    "reproduce": (
        ("headcount reproduce", "the studies and what they cost here"),
        ("headcount reproduce table2 --scale smoke", "one of them, in a minute or two"),
        ("headcount reproduce rank-figure1 --scale paper --layers 3 --seeds 1", "a part; others are added to it"),
    ),
    "calibrate": (
        ("headcount calibrate --effort quick", "how often the answer comes out right"),
        ("headcount calibrate --out calibration --json", "everything as JSON"),
    ),
    "inspect": (
        ("headcount inspect all-MiniLM-L6-v2/ --data sentences.txt", "which heads it needs, and a page"),
        ("headcount inspect SmolLM2-135M/", "without data: sequences of the model itself"),
        ("headcount inspect vit/ --data photos/", "a vision transformer on a folder of images"),
    ),
    "prune": (
        ("headcount prune SmolLM2-135M/ --keep 6 --data text.txt --out smaller", "6 of 9 heads per layer"),
        (
            "headcount prune ViT/ --remove 25% --data photos/ --out smaller --recover 300",
            "then train the output projections a little",
        ),
        ("headcount prune BERT/ --keep 8 --zeroed --out masked", "where no class stores fewer heads"),
        ("headcount prune SmolLM2-135M/ --keep 6 --dry-run", "whether it can be stored, and what it saves"),
    ),
    "group": (
        ("headcount group Llama/ --key-heads 3 --data text.txt --out grouped", "3 key heads for all heads of a layer"),
        ("headcount group Llama/ --key-heads 3 --dry-run", "whether it can be stored, and what it saves"),
    ),
    "shrink": (
        ("headcount shrink Llama/ --head-dim 32 --data text.txt --out narrow", "32 numbers per head"),
        ("headcount shrink ViT/ --head-dim 32 --dry-run", "whether it can be stored, and what it saves"),
    ),
    "verify": (
        ("headcount verify results/sum-of-maxima --cells 3", "train three stored cells again"),
        ("headcount verify smaller", "does a pruned model compute what was measured?"),
    ),
    "collide": (("headcount collide results/sum-of-maxima --heads 1:3", "sequences that small models confuse"),),
    "bounds": (
        ("headcount bounds --heads 2 --length 128 --intrinsic-dim 4", "how many heads"),
        ("headcount bounds --heads 4 --length 16 --rank 2 --dim 8", "of which rank"),
        ("headcount bounds --class hard --alphabet 5 --heads 2 --length 8 --intrinsic-dim 3", "any hard heads"),
        (
            "headcount bounds --class bounded --slope 1e3 --heads 1 --head-dim 2 --length 128 --intrinsic-dim 2",
            "any heads with bounded values and readout slope",
        ),
    ),
    "prove": (("headcount prove --json", "every claim with evidence, control and verdict, and what is not run"),),
    "tasks": (
        ("headcount tasks", "the named tasks and their options"),
        ("headcount tasks --support", "how many tokens each of them depends on at once"),
        ("headcount tasks quadratic-basins", "one of them, also against the papers' assumptions"),
    ),
    "models": (
        ("headcount models", "heads, key heads and widths, by year"),
        ("headcount models --figure models.svg", "heads against width"),
    ),
    "completion": (
        ("headcount completion bash > ~/.local/share/bash-completion/completions/headcount", "for bash"),
        ("headcount completion fish > ~/.config/fish/completions/headcount.fish", "for fish"),
    ),
    "doctor": (("headcount doctor", "what works here, and what does not"),),
}
"""What to type, and what it does."""


def group_of(verb: str) -> str:
    """The heading a verb stands under in the help."""
    return next((group for group, verbs in GROUPS.items() if verb in verbs), "More")


def with_examples(verb: str, text: str) -> str:
    """A verb's help with its examples after the first paragraph, each on a line of its own."""
    first, _, rest = text.strip().partition("\n\n")
    examples = EXAMPLES.get(verb, ())
    if not examples:
        return text
    widest = max(len(command) for command, _ in examples)
    beside = widest <= 46
    lines = [
        f"  {command:<{widest}}  # {what}" if beside else f"  {command}\n      # {what}" for command, what in examples
    ]
    return "\n\n".join(filter(None, [first, "\b\nExamples:\n" + "\n".join(lines), rest]))
