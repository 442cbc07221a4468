"""Table 3: the heads share 32 numbers, so that more heads are narrower ones, D = 4."""

from ..base import Effort, Scale
from ..published import published_table
from .table import ALL_LENGTHS, PAPER_EFFORT, TableStudy, class_token

STUDY = TableStudy(
    name="table3",
    title="Table 3",
    asks="The same task when all heads share 32 numbers: ceil(32 / h) each.",
    subject="The sum of four maxima, seen by heads that share 32 numbers,",
    published=published_table("table3", statistic="minimum"),
    intrinsic_dim=4,
    transition=4,
    transition_statement="The transition stays at h = D = 4 heads when their total width is fixed.",
    model=class_token(total_dim=32, hidden=32),
    efforts={
        Scale.SMOKE: Effort(lengths=(8, 16), seeds=2, steps=3000),
        Scale.LAPTOP: Effort(lengths=ALL_LENGTHS, seeds=5, steps=8000),
        Scale.PAPER: PAPER_EFFORT,
    },
)
