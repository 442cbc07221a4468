"""The second paper's figure of error by rank and number of points N, two layers."""

from ..analysis.comparison import Claim, Verdict, decided
from .base import Scale
from .rank import Curves, RankEffort, RankStudy
from .rank_claims import full_rank_claim, magnitude_claim, more_heads_claim, shorter_claim


def _longer_claim(measured: Curves) -> Claim:
    statement = "With two layers low rank errs more, the more points there are."
    deep = {v.length: line for v, line in measured.items() if v.layers == 2}
    if len(deep) < 2:
        return Claim(statement, Verdict.UNDECIDED, "two layers were not measured at two numbers of points")
    shared = set.intersection(*map(set, deep.values()))
    if not shared:
        return Claim(statement, Verdict.UNDECIDED, "no rank was measured at every number of points")
    lowest = {length: line[min(shared)] for length, line in sorted(deep.items())}
    evidence = "error at the lowest rank: " + "; ".join(f"{n} points {error:.2g}" for n, error in lowest.items())
    errors = list(lowest.values())
    return Claim(statement, decided(errors == sorted(errors)), evidence)


def _claims(measured: Curves) -> tuple[Claim, ...]:
    longest = max((variant.length for variant in measured), default=0)
    many = {variant: line for variant, line in measured.items() if variant.length == longest}
    return (
        shorter_claim(measured),
        _longer_claim(measured),
        full_rank_claim(many),
        more_heads_claim(many),
        magnitude_claim(measured, "figureN"),
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
