"""Figure 4: error against hidden width at every length, one panel per head count, D = 4."""

from ..base import Effort, Scale
from .table import PAPER_EFFORT
from .width import WidthStudy

STUDY = WidthStudy(
    name="figure4",
    title="Figure 4",
    asks="Error against the hidden width N of both nets at every length, a panel per head count.",
    efforts={
        Scale.SMOKE: Effort(lengths=(8, 16), seeds=2, steps=2000),
        Scale.LAPTOP: Effort(lengths=(8, 16, 32, 64), seeds=3, steps=6000),
        Scale.PAPER: PAPER_EFFORT,
    },
    widths={Scale.SMOKE: (8, 16, 32), Scale.LAPTOP: (8, 16, 32, 64), Scale.PAPER: (8, 16, 32, 64, 128)},
)
