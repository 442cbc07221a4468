"""Figure 1 of the second paper: error by rank for 1, 3 and 5 layers and 1, 8 and 64 attention blocks."""

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ..base import Scale
from ..claims.rank import blocks_claim, depth_claim, full_rank_claim, more_heads_claim
from .base import RankEffort, RankStudy


def _claims(table: ErrorTable) -> tuple[Claim, ...]:
    return (
        full_rank_claim(table),
        more_heads_claim(table),
        blocks_claim(table),
        depth_claim(table),
    )


STUDY = RankStudy(
    name="rank-figure1",
    title="Figure 1 of arXiv 2407.16153",
    asks="Error by rank at equal parameters for the farthest of 16 points, by depth and number of attention blocks.",
    figure="figure1",
    claims=_claims,
    efforts={
        Scale.SMOKE: RankEffort(
            lengths=(8,), seeds=1, steps=1000, dims=(8,), heads=(1, 2, 8), layers=(1, 3), multipliers=(1, 4),
            hidden=64, batch=64, norm_first=True,
        ),
        Scale.LAPTOP: RankEffort(
            lengths=(16,), seeds=1, steps=3000, dims=(16,), heads=(1, 2, 4, 16), layers=(1, 3), multipliers=(1, 8),
            hidden=128, batch=64, norm_first=True,
        ),
        Scale.PAPER: RankEffort(
            lengths=(16,), seeds=5, steps=100_000, dims=(64,), heads=(1, 2, 4, 8, 16, 32, 64), layers=(1, 3, 5),
            multipliers=(1, 8, 64),
        ),
    },
    notes=(
        "Read off the published plot, one layer: every rank up to 32 stays between 0.3 and 0.9.",
    ),
)  # fmt: skip
