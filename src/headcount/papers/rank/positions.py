"""The second paper's figure of position codes: added to the points, or set beside them."""

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ..base import Scale
from ..claims.rank import codes_claim, full_rank_claim, more_heads_claim
from .base import RankEffort, RankStudy


def _claims(table: ErrorTable) -> tuple[Claim, ...]:
    # A code beside the points doubles the width: its ranks are not those of the others.
    one_width = table.select(positions=[each for each in table.values("positions") if each != "concatenated"])
    return codes_claim(table), full_rank_claim(one_width), more_heads_claim(one_width)


STUDY = RankStudy(
    name="rank-positions",
    title="Figure of positions, arXiv 2407.16153",
    asks="Whether learned position codes, added or set beside the points, change what rank does.",
    claims=_claims,
    efforts={
        Scale.SMOKE: RankEffort(
            lengths=(8,), seeds=1, steps=1000, dims=(8,), heads=(1, 2, 8), layers=(1,), multipliers=(4,),
            positions=("none", "additive", "concatenated"), hidden=64, batch=64, norm_first=True,
        ),
        Scale.LAPTOP: RankEffort(
            lengths=(16,), seeds=1, steps=3000, dims=(16,), heads=(1, 2, 8), layers=(1,), multipliers=(4,),
            positions=("none", "additive", "concatenated"), hidden=128, batch=64, norm_first=True,
        ),
        Scale.PAPER: RankEffort(
            lengths=(16,), seeds=5, steps=200_000, dims=(64,), heads=(1, 2, 4, 8, 16, 32, 64), layers=(1, 3),
            multipliers=(1, 8), positions=("none", "additive", "concatenated"), learning_rate=0.005,
        ),
    },
    notes=(
        "A code set beside a point doubles the width, so the heads that share it have twice the rank at the same "
        "number of heads; codes are drawn uniformly from [-1, 1] and learned. The paper draws this figure; no points "
        "of it were at hand.",
    ),
)  # fmt: skip
