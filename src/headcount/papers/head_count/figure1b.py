"""Figure 1b: error against hidden width at a short, a middle and a long length, D = 4."""

from ..base import Effort, Scale
from .width import WidthStudy

STUDY = WidthStudy(
    name="figure1b",
    title="Figure 1b",
    asks="Error against the hidden width N of both nets: how much size buys when heads are too few.",
    efforts={
        Scale.SMOKE: Effort(lengths=(8, 32), seeds=2, steps=2000),
        Scale.LAPTOP: Effort(lengths=(8, 32), seeds=3, steps=6000),
        Scale.PAPER: Effort(lengths=(8, 32, 128), seeds=10, steps=20_000),
    },
    widths={Scale.SMOKE: (8, 16, 32), Scale.LAPTOP: (8, 16, 32, 64, 128), Scale.PAPER: (8, 16, 32, 64, 128)},
)
