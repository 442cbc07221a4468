"""The options that `prune`, `group` and `shrink` share: what each is called, and its help."""

from pathlib import Path
from typing import Annotated

import typer

MODEL = "A folder with config.json and weights, or a name on the Hugging Face hub."
ModelName = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)]
DATA = "Text lines, scored pairs, an image folder, or FILE.py:loss (default: drawn from the model itself)."
Data = Annotated[str | None, typer.Option("--data", metavar="FILE|DIR", help=DATA)]
Out = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where the smaller model is written; must be new or empty.")
]
RECOVER = "After the refit, train for so many steps towards the original's answers; 0: the refit alone."
Recover = Annotated[int, typer.Option(metavar="STEPS", min=0, help=RECOVER)]
RECOVERED = "What --recover trains: output (the output projections), low-rank (a rank-8 update of all projections)."
RecoverWhat = Annotated[str, typer.Option(metavar="output|low-rank", help=RECOVERED)]
Device = Annotated[str, typer.Option(help="Where torch runs: cpu, cuda.")]
Length = Annotated[int | None, typer.Option(min=2, help="Tokens per sequence (default: by the model).")]
Limit = Annotated[int | None, typer.Option("--examples", min=2, help="Read at most so many examples of the data.")]
Seed = Annotated[int, typer.Option(min=0, help="Draws the split of the data, and all else that is drawn.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be stored and what it saves, and stop.")]
