"""Table 2 and Figure 1a: heads of 8 numbers, nets of 32 units, D = 4."""

from ..base import Effort, Scale
from ..published import published_table
from .table import ALL_LENGTHS, PAPER_EFFORT, TableStudy, class_token

STUDY = TableStudy(
    name="table2",
    title="Table 2 and Figure 1a",
    asks="Error by heads and length for the sum of four maxima, with heads of 8 numbers.",
    subject="The sum of four maxima",
    published=published_table("table2", statistic="mean"),
    intrinsic_dim=4,
    transition=4,
    transition_statement="The transition is at h = D = 4 heads.",
    model=class_token(head_dim=8, hidden=32),
    efforts={
        Scale.SMOKE: Effort(lengths=(8, 16), seeds=3, steps=4000),
        Scale.LAPTOP: Effort(lengths=ALL_LENGTHS, seeds=5, steps=8000),
        Scale.PAPER: PAPER_EFFORT,
    },
    notes=(
        "Published are mean and standard deviation over an unstated number of seeds. At 4 heads and length 64 that is "
        "8.75e-06 with deviation 5.58e-05: no fewer than 41 positive numbers can have these two, so either there were "
        "more seeds than that, or a cell's value is not the mean of the seeds its deviation is of.",
    ),
)
