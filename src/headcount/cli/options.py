"""The options of `headcount measure`, by group: what each is called, and its help. Values come from `recipes.py`."""

from pathlib import Path
from typing import Annotated

import typer

from ..recipes import ENCODER_HIDDEN, HEADS, LABELLED_LAYERS, LABELLED_TRAIN, LENGTHS, SEEDS, TRAIN

TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK|FILE|DIR", help="A task's name, FILE.npz, X.npy, FILE.py:NAME, FILE.jsonl, or a folder."
    ),
]
Heads = Annotated[str | None, typer.Option(help=f"Head counts: 1:6, or 1,2,4,8 (default: {HEADS[0]}:{HEADS[-1]}).")]
Ranks = Annotated[str | None, typer.Option(help="Query and key widths to try with every head count: 1,2,4,8.")]
Lengths = Annotated[
    str | None, typer.Option(help=f"Sequence lengths (default: {','.join(map(str, LENGTHS))}, or your data's).")
]
Seeds = Annotated[int | None, typer.Option(help=f"Seeds per head count and length (default: {SEEDS}).")]
Out = Annotated[Path | None, typer.Option(help="Results folder (default: results/TASK).")]
Figure = Annotated[Path | None, typer.Option(help="Draw the result into a .svg, .pdf or .png file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]

TRAINING = "Training"
Steps = Annotated[
    int | None,
    typer.Option(
        help=f"Training steps per model (default: {TRAIN.steps}, data with labels {LABELLED_TRAIN.steps}).",
        rich_help_panel=TRAINING,
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(
        help=f"Examples per training step (default: {TRAIN.batch}, data with labels {LABELLED_TRAIN.batch}).",
        rich_help_panel=TRAINING,
    ),
]
LearningRates = Annotated[
    str | None,
    typer.Option(
        help="Peak learning rates; the best per seed counts "
        f"(default: {TRAIN.learning_rate:g}, data with labels {LABELLED_TRAIN.learning_rate:g}).",
        rich_help_panel=TRAINING,
    ),
]
TrainExamples = Annotated[
    int | None,
    typer.Option(
        help="Training examples; 0: fresh ones every step "
        f"(default: {TRAIN.train_examples}, encoders 0, data with labels all).",
        rich_help_panel=TRAINING,
    ),
]
ValidationExamples = Annotated[
    int | None,
    typer.Option(help=f"Validation examples (default: {TRAIN.validation_examples}).", rich_help_panel=TRAINING),
]
Precision = Annotated[
    str | None,
    typer.Option(help="float32 (default); encoders also bfloat16, half precision for a GPU.", rich_help_panel=TRAINING),
]

MODEL = "Model"
HeadDim = Annotated[
    int | None, typer.Option(help="Value width of a head (default: 8, an encoder's rank).", rich_help_panel=MODEL)
]
TotalDim = Annotated[
    int | None, typer.Option(help="Width shared by all heads, instead of --head-dim.", rich_help_panel=MODEL)
]
Hidden = Annotated[
    int | None,
    typer.Option(
        help=f"Width of the feed-forward nets (default: 32, encoders {ENCODER_HIDDEN}).", rich_help_panel=MODEL
    ),
]
Layers = Annotated[
    int | None,
    typer.Option(help=f"Attention layers (default: 1, data with labels {LABELLED_LAYERS}).", rich_help_panel=MODEL),
]
PositionsOption = Annotated[
    str | None, typer.Option(help="auto (default), none, additive or concatenated.", rich_help_panel=MODEL)
]
Beta = Annotated[
    float | None, typer.Option(help="Factor on every attention score (default: 1).", rich_help_panel=MODEL)
]
Multiplier = Annotated[
    int | None,
    typer.Option(help="Attention blocks that an encoder layer averages (default: 1).", rich_help_panel=MODEL),
]

TASK = "Task"
IntrinsicDim = Annotated[int | None, typer.Option(help="The task's D.", rich_help_panel=TASK)]
Dim = Annotated[int | None, typer.Option(help="Numbers per token.", rich_help_panel=TASK)]
Directions = Annotated[str | None, typer.Option(help="random, gaussian or basis.", rich_help_panel=TASK)]
Distribution = Annotated[
    str | None, typer.Option(help="Distribution of the tokens: gaussian or cube.", rich_help_panel=TASK)
]
Windows = Annotated[str | None, typer.Option(help="Position sets as fractions: 0:0.5,0.5:1.", rich_help_panel=TASK)]
TaskSeed = Annotated[int | None, typer.Option(help="Draws the task's own numbers.", rich_help_panel=TASK)]
Points = Annotated[str | None, typer.Option(help="uniform, orthogonal or doubled points.", rich_help_panel=TASK)]
Terms = Annotated[int | None, typer.Option(help="Biased nearest neighbours summed up.", rich_help_panel=TASK)]
Inputs = Annotated[int | None, typer.Option(help="Numbers in a regressor x.", rich_help_panel=TASK)]
Noise = Annotated[float | None, typer.Option(help="Standard deviation of the noise.", rich_help_panel=TASK)]

DATA = "Your data"
Targets = Annotated[Path | None, typer.Option(help="y.npy, when the file holds x alone.", rich_help_panel=DATA)]
Shorter = Annotated[
    str | None, typer.Option(help="How shorter lengths are made: given, leading, trailing.", rich_help_panel=DATA)
]
ValidationFraction = Annotated[
    float | None, typer.Option(help="Share of the examples kept for validation.", rich_help_panel=DATA)
]
Patch = Annotated[int | None, typer.Option(help="Side of a square patch in pixels (default: 4).", rich_help_panel=DATA)]
Side = Annotated[
    int | None, typer.Option(help="Images are cropped square and resized to this side.", rich_help_panel=DATA)
]
Embeddings = Annotated[
    Path | None, typer.Option(help="Folder of the BERT model that passages are read with.", rich_help_panel=DATA)
]
LayoutOption = Annotated[
    str | None, typer.Option(help="Passages: candidates (as tokens) or pairs.", rich_help_panel=DATA)
]
SplitOption = Annotated[str | None, typer.Option(help="Which queries of a folder: train, dev.", rich_help_panel=DATA)]
