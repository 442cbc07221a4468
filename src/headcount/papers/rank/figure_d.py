"""The second paper's figure of error by rank and dimension d."""

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ..base import Scale
from ..claims.rank import full_rank_claim, more_heads_claim
from .base import RankEffort, RankStudy


def _claims(table: ErrorTable) -> tuple[Claim, ...]:
    return more_heads_claim(table), full_rank_claim(table, layers=2)


STUDY = RankStudy(
    name="rank-figure-d",
    title="Figure of d, arXiv 2407.16153",
    asks="Error by rank in dimensions 16 to 256, two layers, eight blocks.",
    claims=_claims,
    efforts={
        Scale.SMOKE: RankEffort(
            lengths=(8,), seeds=1, steps=1000, dims=(8, 12), heads=(1, 2, 4), layers=(2,), multipliers=(4,),
            hidden=64, batch=64, norm_first=True,
        ),
        Scale.LAPTOP: RankEffort(
            lengths=(16,), seeds=1, steps=3000, dims=(8, 16, 32), heads=(1, 2, 8), layers=(2,), multipliers=(2,),
            hidden=128, batch=64, norm_first=True,
        ),
        Scale.PAPER: RankEffort(
            lengths=(16,), seeds=5, steps=200_000, dims=(16, 64, 128, 256), heads=(1, 2, 4, 8, 16), layers=(2,),
            multipliers=(8,), learning_rate=0.005,
        ),
    },
    notes=("The paper draws this figure; no points of it were at hand.",),
)  # fmt: skip
