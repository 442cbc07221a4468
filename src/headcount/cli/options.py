"""The options of `headcount measure`, by group: what each is called, and its help. Values come from `recipes.py`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..recipes import ENCODER_HIDDEN, HEADS, LABELLED_LAYERS, LABELLED_TRAIN, LENGTHS, TOP_HEADS, TRAIN
from ..search.levels import DEFAULT_EFFORT, EFFORTS
from ..tasks import PRESETS
from .backend import BACKEND_HELP, use_backend
from .verbs import EVERY_COMBINATION

combinations = partial(typer.Option, rich_help_panel=EVERY_COMBINATION)
training = partial(typer.Option, rich_help_panel="Training")
model = partial(typer.Option, rich_help_panel="Model")
task = partial(typer.Option, rich_help_panel="Task")
data = partial(typer.Option, rich_help_panel="Your data")


def _usual(field: str) -> str:
    """The recipe's value of a field of the training."""
    return f"(default: {getattr(TRAIN, field):g}, images and passages {getattr(LABELLED_TRAIN, field):g})"


TASKS = "A task's name, a file (.npz, .npy, .csv, .parquet, .pt, .jsonl ...), FILE.py:NAME, or a folder."
TaskName = Annotated[str, typer.Argument(metavar="TASK|FILE|DIR", help=TASKS, autocompletion=lambda: list(PRESETS))]
HEADS_HELP = f"Head counts: 1:6, or 1,2,4,8 (default: 1:{TOP_HEADS} and more if needed, with --seeds 1:{HEADS[-1]})."
Heads = Annotated[str | None, typer.Option(help=HEADS_HELP)]
Ranks = Annotated[str | None, combinations(help="Query and key widths to try with every head count: 1,2,4,8.")]
KV_HEADS = "Sets of keys and values that heads share: 1 for all models, or 1,2,4 to try with every head count."
KvHeads = Annotated[str | None, combinations(help=KV_HEADS)]
HeadDims = Annotated[str | None, combinations(help="Value widths of a head to try with every head count: 2,4,8.")]
EVERY_LENGTH = ",".join(map(str, LENGTHS))
Lengths = Annotated[str | None, typer.Option(help=f"Sequence lengths (default: {EVERY_LENGTH}, or your data's).")]
SEEDS_HELP = "Random starts at every head count and length, as in the papers, and nothing else."
Seeds = Annotated[int | None, combinations(help=SEEDS_HELP)]
EFFORT = f"How much is tried before the answer is settled: {', '.join(EFFORTS)} (default: {DEFAULT_EFFORT})."
Effort = Annotated[str | None, typer.Option(help=EFFORT, autocompletion=lambda: list(EFFORTS))]
Minutes = Annotated[
    float | None, typer.Option(help="Answer after so many minutes from what has finished (exit code 4).")
]
Out = Annotated[Path | None, typer.Option(help="Results folder (default: results/TASK); a local disk is fastest.")]
Figure = Annotated[Path | None, typer.Option(help="Draw the result into a .svg, .pdf or .png file.")]
LIVE = "Show the run as a live page; it stays until Ctrl-C after the answer."
Live = Annotated[bool, typer.Option("--live", help=LIVE)]
ON = "Where models are trained: threads (default), ray, or a Ray cluster's ray://HOST:PORT; see docs/clusters.md."
On = Annotated[str | None, typer.Option("--on", metavar="WHERE", help=ON)]
WORKERS = "At most so many workers of a Ray cluster (default: one per GPU, or per core where there is none)."
Workers = Annotated[int | None, typer.Option("--workers", help=WORKERS)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]

Steps = Annotated[int | None, training(help=f"Training steps per model {_usual('steps')}.")]
Batch = Annotated[int | None, training(help=f"Examples per training step {_usual('batch')}.")]
RATES = f"Peak learning rates; the best per seed counts {_usual('learning_rate')}."
LearningRates = Annotated[str | None, training(help=RATES)]
EXAMPLES = f"(default: {TRAIN.train_examples}, encoders 0, images and passages all)"
TrainExamples = Annotated[int | None, training(help=f"Training examples; 0: fresh ones every step {EXAMPLES}.")]
VALIDATION = f"Validation examples (default: {TRAIN.validation_examples})."
ValidationExamples = Annotated[int | None, training(help=VALIDATION)]
Precision = Annotated[str | None, training(help="float32 (default); encoders also bfloat16, half precision for a GPU.")]
Backend = Annotated[str | None, training(help=BACKEND_HELP, callback=use_backend)]

HeadDim = Annotated[int | None, model(help="Value width of a head (default: 8, an encoder's rank).")]
TotalDim = Annotated[int | None, model(help="Width shared by all heads, instead of --head-dim.")]
Hidden = Annotated[int | None, model(help=f"Width of the feed-forward nets (default: 32, encoders {ENCODER_HIDDEN}).")]
Layers = Annotated[int | None, model(help=f"Attention layers (default: 1, images and passages {LABELLED_LAYERS}).")]
Positions = Annotated[str | None, model(help="auto (default), none, additive or concatenated.")]
Beta = Annotated[float | None, model(help="Factor on every attention score (default: 1).")]
Multiplier = Annotated[int | None, model(help="Attention blocks that an encoder layer averages (default: 1).")]

Window = Annotated[int | None, model(help="Tokens that a query sees: the class token the last ones (default: all).")]
Causal = Annotated[bool, model("--causal", help="No token reads later ones; of use with several layers.")]
Attention = Annotated[str | None, model(help="soft (default), hard, linear or top-k.")]
TopK = Annotated[int | None, model(help="Tokens that a head of top-k attention reads.")]
InnerHidden = Annotated[int | None, model(help="Units of nets between the layers of class-token models (default: 0).")]
FinalNorm = Annotated[bool, model("--final-norm", help="A norm before the answer is read.")]

IntrinsicDim = Annotated[int | None, task(help="The task's D.")]
Dim = Annotated[int | None, task(help="Numbers per token.")]
Directions = Annotated[str | None, task(help="random, gaussian or basis.")]
Distribution = Annotated[str | None, task(help="Distribution of the tokens: gaussian or cube.")]
Windows = Annotated[str | None, task(help="Position sets as fractions: 0:0.5,0.5:1.")]
TaskSeed = Annotated[int | None, task(help="Draws the task's own numbers.")]
Points = Annotated[str | None, task(help="uniform, orthogonal or doubled points.")]
Terms = Annotated[int | None, task(help="Biased nearest neighbours summed up.")]
Inputs = Annotated[int | None, task(help="Numbers in a regressor x.")]
Noise = Annotated[float | None, task(help="Standard deviation of the noise.")]

TARGETS = "The column of a table with the target (several: a,b); or y.npy, where the file is x.npy."
Targets = Annotated[str | None, data(metavar="COLUMN|FILE", help=TARGETS)]
SEQUENCE = "For a table of one row per token: the column that says which sequence a row belongs to."
Sequence = Annotated[str | None, data(metavar="COLUMN", help=SEQUENCE)]
LABELS = "y holds class labels, learned with cross-entropy, or numbers (default: detected from y, and printed)."
Labels = Annotated[bool | None, data("--labels/--regression", help=LABELS)]
ANSWERED_AT = "Where a model answers: sequence (default), query (at the last token), tokens (at each)."
AnsweredAt = Annotated[str | None, data(help=ANSWERED_AT)]
Vocabulary = Annotated[int | None, data(help="Tokens are ids below this number, each with a learned embedding.")]
Shorter = Annotated[str | None, data(help="How shorter lengths are made: given, leading, trailing.")]
ValidationFraction = Annotated[float | None, data(help="Share of the examples kept for validation.")]
Patch = Annotated[int | None, data(help="Side of a square patch in pixels (default: 4).")]
Side = Annotated[int | None, data(help="Images are cropped square and resized to this side.")]
Embeddings = Annotated[Path | None, data(help="Folder of the BERT model that passages are read with.")]
Layout = Annotated[str | None, data(help="Passages: candidates (as tokens) or pairs.")]
Split = Annotated[str | None, data(help="Which queries of a folder: train, dev.")]
