"""The second paper's figure of error by rank and number of points N, two layers."""

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ..base import Scale
from ..claims.rank import full_rank_claim, longer_claim, more_heads_claim, shorter_claim
from .base import RankEffort, RankStudy


def _claims(table: ErrorTable) -> tuple[Claim, ...]:
    longest = table.select(length=[max(table.values("length"))])
    return (
        shorter_claim(table),
        longer_claim(table),
        full_rank_claim(longest),
        more_heads_claim(longest),
    )


STUDY = RankStudy(
    name="rank-figure-n",
    title="Figure of N, arXiv 2407.16153",
    asks="Error by rank for few and for many points: where depth makes up for rank, and where it does not.",
    figure="figureN",
    claims=_claims,
    efforts={
        Scale.SMOKE: RankEffort(
            lengths=(2, 8), seeds=1, steps=1000, dims=(8,), heads=(1, 2, 8), layers=(1, 2), multipliers=(4,),
            hidden=64, batch=64, norm_first=True,
        ),
        Scale.LAPTOP: RankEffort(
            lengths=(2, 4, 16), seeds=1, steps=3000, dims=(16,), heads=(1, 4, 16), layers=(1, 2), multipliers=(8,),
            hidden=128, batch=64, norm_first=True,
        ),
        Scale.PAPER: RankEffort(
            lengths=(4, 16, 64, 256), seeds=5, steps=200_000, dims=(64,), heads=(1, 2, 4, 8, 64), layers=(1, 2),
            multipliers=(64,), learning_rate=0.005,
        ),
    },
    notes=(
        "The published figure has two layers; one layer is trained here too, to see what the second one gains.",
        "Published at 4 points: near 0 at every rank; the plot shows no more.",
    ),
)  # fmt: skip
