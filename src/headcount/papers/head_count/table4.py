"""Table 4: three maxima in place of four, total width 32."""

from ..base import Effort, Scale
from ..published import published_table
from .table import ALL_LENGTHS, PAPER_EFFORT, TableStudy, class_token

STUDY = TableStudy(
    name="table4",
    title="Table 4",
    asks="Three maxima instead of four, the heads sharing 32 numbers: the transition must move with D.",
    subject="The sum of three maxima",
    published=published_table("table4", statistic="minimum"),
    intrinsic_dim=3,
    transition=3,
    transition_statement="The transition moves to h = D = 3 heads.",
    model=class_token(total_dim=32, hidden=32),
    efforts={
        Scale.SMOKE: Effort(lengths=(8, 16), seeds=2, steps=3000),
        Scale.LAPTOP: Effort(lengths=ALL_LENGTHS, seeds=5, steps=8000),
        Scale.PAPER: PAPER_EFFORT,
    },
)
