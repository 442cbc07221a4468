"""The options of `headcount measure`, by group: what each is called, and its help. Values come from `recipes.py`."""

from pathlib import Path
from typing import Annotated

import typer

from ..recipes import ENCODER_HIDDEN, HEADS, LABELLED_LAYERS, LABELLED_TRAIN, LENGTHS, SEEDS, TRAIN


def _option(kind: type, text: str, panel: str | None = None):
    return Annotated[kind | None, typer.Option(help=text, rich_help_panel=panel)]


TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK|FILE|DIR", help="A task's name, FILE.npz, X.npy, FILE.py:NAME, FILE.jsonl, or a folder."
    ),
]
Heads = _option(str, f"Head counts: 1:6, or 1,2,4,8 (default: {HEADS[0]}:{HEADS[-1]}).")
Ranks = _option(str, "Query and key widths to try with every head count: 1,2,4,8.")
Lengths = _option(str, f"Sequence lengths (default: {','.join(map(str, LENGTHS))}, or your data's).")
Seeds = _option(int, f"Seeds per head count and length (default: {SEEDS}).")
Out = _option(Path, "Results folder (default: results/TASK).")
Figure = _option(Path, "Draw the result into a .svg, .pdf or .png file.")
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]

TRAINING = "Training"
Steps = _option(
    int, f"Training steps per model (default: {TRAIN.steps}, data with labels {LABELLED_TRAIN.steps}).", TRAINING
)
Batch = _option(
    int, f"Examples per training step (default: {TRAIN.batch}, data with labels {LABELLED_TRAIN.batch}).", TRAINING
)
LearningRates = _option(
    str,
    "Peak learning rates; the best per seed counts "
    f"(default: {TRAIN.learning_rate:g}, data with labels {LABELLED_TRAIN.learning_rate:g}).",
    TRAINING,
)
TrainExamples = _option(
    int,
    f"Training examples; 0: fresh ones every step (default: {TRAIN.train_examples}, encoders 0, data with labels all).",
    TRAINING,
)
ValidationExamples = _option(int, f"Validation examples (default: {TRAIN.validation_examples}).", TRAINING)
Precision = _option(str, "float32 (default); encoders also bfloat16, half precision for a GPU.", TRAINING)

MODEL = "Model"
HeadDim = _option(int, "Value width of a head (default: 8, an encoder's rank).", MODEL)
TotalDim = _option(int, "Width shared by all heads, instead of --head-dim.", MODEL)
Hidden = _option(int, f"Width of the feed-forward nets (default: 32, encoders {ENCODER_HIDDEN}).", MODEL)
Layers = _option(int, f"Attention layers (default: 1, data with labels {LABELLED_LAYERS}).", MODEL)
PositionsOption = _option(str, "auto (default), none, additive or concatenated.", MODEL)
Beta = _option(float, "Factor on every attention score (default: 1).", MODEL)
Multiplier = _option(int, "Attention blocks that an encoder layer averages (default: 1).", MODEL)

TASK = "Task"
IntrinsicDim = _option(int, "The task's D.", TASK)
Dim = _option(int, "Numbers per token.", TASK)
Directions = _option(str, "random, gaussian or basis.", TASK)
Distribution = _option(str, "Distribution of the tokens: gaussian or cube.", TASK)
Windows = _option(str, "Position sets as fractions: 0:0.5,0.5:1.", TASK)
TaskSeed = _option(int, "Draws the task's own numbers.", TASK)
Points = _option(str, "uniform, orthogonal or doubled points.", TASK)
Terms = _option(int, "Biased nearest neighbours summed up.", TASK)
Inputs = _option(int, "Numbers in a regressor x.", TASK)
Noise = _option(float, "Standard deviation of the noise.", TASK)

DATA = "Your data"
Targets = _option(Path, "y.npy, when the file holds x alone.", DATA)
Shorter = _option(str, "How shorter lengths are made: given, leading, trailing.", DATA)
ValidationFraction = _option(float, "Share of the examples kept for validation.", DATA)
Patch = _option(int, "Side of a square patch in pixels (default: 4).", DATA)
Side = _option(int, "Images are cropped square and resized to this side.", DATA)
Embeddings = _option(Path, "Folder of the BERT model that passages are read with.", DATA)
LayoutOption = _option(str, "Passages: candidates (as tokens) or pairs.", DATA)
SplitOption = _option(str, "Which queries of a folder: train, dev.", DATA)
