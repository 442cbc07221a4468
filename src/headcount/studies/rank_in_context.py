"""The second paper's in-context linear regression: fewer and wider heads at equal parameters."""

import numpy as np

from ..analysis.comparison import Claim, Verdict, decided
from ..tasks import InContextRegression
from .base import Scale
from .rank import Curves, RankEffort, RankStudy
from .rank_claims import SAME


def _claims(measured: Curves) -> tuple[Claim, ...]:
    statement = "At equal parameters fewer, wider heads do better."
    lines = {variant: line for variant, line in measured.items() if len(line) > 2}
    if not lines:
        return (Claim(statement, Verdict.UNDECIDED, "fewer than three head counts were measured"),)
    holds, said = [], []
    for variant, line in lines.items():
        ranks = sorted(line)
        slope = float(np.polyfit(np.log(ranks), np.log([line[rank] for rank in ranks]), 1)[0])
        holds.append(slope < 0 and line[ranks[0]] > SAME * line[ranks[-1]])
        said.append(
            f"{variant.layers} layers: rank {ranks[-1]} {line[ranks[-1]]:.2g}, rank {ranks[0]} {line[ranks[0]]:.2g}, "
            f"error ~ rank^{slope:.2f}"
        )
    return (Claim(statement, decided(all(holds)), "; ".join(said)),)


STUDY = RankStudy(
    name="rank-in-context",
    title="In-context regression, arXiv 2407.16153",
    asks="Linear regression from pairs in the sequence (Garg et al. 2022), by heads at equal parameters.",
    claims=_claims,
    task=lambda _width, length: InContextRegression(inputs=(length - 1) // 2, length=length),
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
