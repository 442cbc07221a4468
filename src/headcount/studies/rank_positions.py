"""The second paper's figure of position codes: added to the points, or set beside them."""

from ..analysis.comparison import Claim, Verdict, decided
from .base import Scale
from .rank import Curves, RankEffort, RankStudy
from .rank_claims import SAME, full_rank_claim, more_heads_claim


def _codes_claim(measured: Curves) -> Claim:
    statement = "Position codes do not make up for rank."
    pairs = []
    for variant, line in measured.items():
        full = measured.get(variant._replace(positions="none"))
        if variant.positions == "none" or full is None:
            continue
        # A concatenated code doubles the width, so heads of the points' own dimension are half of it.
        below = [line[rank] for rank in line if rank < variant.dim]
        if below and variant.dim in full:
            pairs.append((variant, min(below), full[variant.dim]))
    if not pairs:
        return Claim(statement, Verdict.UNDECIDED, "codes were not measured below full rank")
    evidence = "best error below full rank with codes, and at full rank without: " + "; ".join(
        f"{v.positions}, {v.layers} layer(s), {v.multiplier} block(s) {below:.2g}, {full:.2g}"
        for v, below, full in pairs
    )
    return Claim(statement, decided(all(below > full * SAME for _, below, full in pairs)), evidence)


def _claims(measured: Curves) -> tuple[Claim, ...]:
    one_dim = {v: line for v, line in measured.items() if v.positions != "concatenated"}
    return _codes_claim(measured), full_rank_claim(one_dim), more_heads_claim(one_dim)


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
