"""Table 5: two attention layers, total width 32, D = 4: heads count once per layer."""

from ..base import Effort, Scale
from ..published import published_table
from .table import PAPER_EFFORT, TableStudy, class_token

STUDY = TableStudy(
    name="table5",
    title="Table 5",
    asks="Two attention layers whose heads share 32 numbers: two layers of two heads do for four maxima.",
    subject="The sum of four maxima, in each of two layers,",
    published=published_table("table5", statistic="minimum"),
    intrinsic_dim=4,
    transition=2,
    transition_statement="With L = 2 layers the transition is at L h = D, that is 2 heads.",
    model=class_token(total_dim=32, hidden=32, layers=2),
    efforts={
        Scale.SMOKE: Effort(lengths=(8,), seeds=2, steps=2000),
        Scale.LAPTOP: Effort(lengths=(8, 16, 32), seeds=3, steps=4000),
        Scale.PAPER: PAPER_EFFORT,
    },
    notes=(
        "How the paper stacks its layers is not published. Ours: each attention layer with a residual, no feed-forward "
        "net and no norm between, the two outer nets as in one layer.",
    ),
)
