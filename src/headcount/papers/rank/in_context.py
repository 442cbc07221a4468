"""The second paper's in-context linear regression: fewer and wider heads at equal parameters."""

from typing import TYPE_CHECKING

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ..base import Scale
from ..claims.rank import wider_heads_claim
from .base import RankEffort, RankStudy

if TYPE_CHECKING:
    from ...tasks import AbstractTask


def _claims(table: ErrorTable) -> tuple[Claim, ...]:
    return (wider_heads_claim(table),)


def _task(_width: int, length: int) -> "AbstractTask":
    from ...tasks import InContextRegression

    return InContextRegression(inputs=(length - 1) // 2, length=length)


STUDY = RankStudy(
    name="rank-in-context",
    title="In-context regression, arXiv 2407.16153",
    asks="Linear regression from pairs in the sequence (Garg et al. 2022), by heads at equal parameters.",
    claims=_claims,
    task=_task,
    efforts={
        Scale.SMOKE: RankEffort(
            lengths=(9,), seeds=1, steps=2000, dims=(16,), heads=(1, 4, 16), layers=(3,), multipliers=(1,),
            hidden=64, batch=64, norm_first=True, learning_rate=0.003, norm="layer",
        ),
        Scale.LAPTOP: RankEffort(
            lengths=(9,), seeds=2, steps=4000, dims=(16,), heads=(1, 2, 4, 8, 16), layers=(3,), multipliers=(1,),
            hidden=64, batch=64, norm_first=True, learning_rate=0.003, norm="layer",
        ),
        Scale.PAPER: RankEffort(
            lengths=(41,), seeds=1, steps=100_000, dims=(256,), heads=(1, 2, 4, 8, 16, 32, 64), layers=(12,),
            multipliers=(1,), hidden=1024, batch=64, learning_rate=3e-4, norm="layer", norm_first=True,
        ),
    },
    notes=(
        "Which sizes the second paper used is not in the facts at hand; at paper scale they are those of Garg et al. "
        "(20 inputs, 40 pairs, 12 layers of 256 numbers), with an encoder that reads pairs and one query in place of "
        "their causal decoder.",
    ),
)  # fmt: skip
