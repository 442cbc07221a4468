"""The second paper's claims, judged on measured curves of error by rank."""

import itertools
from collections.abc import Iterable

from ..analysis.comparison import TENFOLD, Claim, Verdict, decided
from ..analysis.signals import MIN_DROP
from .rank import Curves, Variant, published_curves, varying

DROP = 10**MIN_DROP
"""The factor by which an error must fall to count as a drop, the same as for heads."""
SAME = 1.1
"""Errors within this factor are not told apart."""


def full_rank_claim(measured: Curves, layers: int = 1) -> Claim:
    """The error falls at full rank, and not before; of the numbers of blocks tried, the best one counts."""
    if layers == 1:
        statement = "One layer needs full rank."
    else:
        statement = f"With {layers} layers the error still falls at full rank."
    best: Curves = {}
    for variant, line in measured.items():
        if variant.layers == layers:
            kept = best.setdefault(variant._replace(multiplier=0), {})
            kept.update({rank: min(error, kept.get(rank, error)) for rank, error in line.items()})
    drops = {
        variant: (line[ranks[-2]] / line[ranks[-1]], line[ranks[0]] / line[ranks[-2]])
        for variant, line in best.items()
        if len(ranks := sorted(line)) > 1 and variant.full_rank in line
    }
    if not drops:
        return Claim(statement, Verdict.UNDECIDED, "no such model was measured at two ranks")
    differing = varying(measured) - {"multiplier", "layers"}
    evidence = "the error falls from half to full rank (and from the lowest rank to half) " + "; ".join(
        f"{variant.name(differing, otherwise='')} {at_full:.3g}-fold ({before:.3g}-fold)".strip()
        for variant, (at_full, before) in drops.items()
    )
    sharp = [at_full >= DROP and at_full > before for at_full, before in drops.values()]
    return Claim(statement, decided(all(sharp)), evidence)


def more_heads_claim(measured: Curves) -> Claim:
    """At equal parameters each halving of the rank, and doubling of the heads, raises the error."""
    statement = "At equal parameters more heads hurt."
    steps, hurt, worst = 0, 0, ""
    differing = varying(measured)
    for variant, line in measured.items():
        ranks = sorted(line)
        for low, high in itertools.pairwise(ranks):
            steps += 1
            if line[low] * SAME >= line[high]:
                hurt += 1
            else:
                worst = (
                    f"; not from rank {high} to {low} with {variant.name(differing)}: {line[high]:.2g}, {line[low]:.2g}"
                )
    if not steps:
        return Claim(statement, Verdict.UNDECIDED, "no model was measured at two ranks")
    best_full = all(min(line, key=line.__getitem__) == max(line) for line in measured.values())
    evidence = (
        f"in {hurt} of {steps} steps from one rank to the next lower, with more heads, the error does not fall{worst}; "
        f"the highest rank is the best {'everywhere' if best_full else 'not everywhere'}"
    )
    return Claim(statement, decided(hurt == steps and best_full), evidence)


def blocks_claim(measured: Curves) -> Claim:
    """More blocks of half the rank do not reach one block of full rank."""
    statement = "More heads of half the rank do not make up for full rank."
    compared = []
    for variant, line in measured.items():
        single = measured.get(variant._replace(multiplier=1))
        if variant.multiplier == 1 or single is None or variant.layers != 1:
            continue
        full = variant.full_rank
        if full in single and full // 2 in line:
            compared.append((variant, line[full // 2], single[full]))
    if not compared:
        return Claim(statement, Verdict.UNDECIDED, "one layer was not measured with several blocks")
    evidence = "; ".join(
        f"{v.multiplier} blocks of half rank {half:.2g}, one of full rank {full:.2g}" for v, half, full in compared
    )
    return Claim(statement, decided(all(half > full * SAME for _, half, full in compared)), evidence)


def depth_claim(measured: Curves) -> Claim:
    """More layers lower the error below full rank on the whole, and raise it nowhere."""
    statement = "Depth helps below full rank."
    gains = _gains(measured)
    if not gains:
        return Claim(statement, Verdict.UNDECIDED, "no rank below the full one was measured at two depths")
    factors = [gain for *_, gain in gains]
    mean = _geometric_mean(factors)
    evidence = (
        f"one layer's error over the deepest's, at {len(gains)} ranks and numbers of blocks: {min(factors):.3g} to "
        f"{max(factors):.3g}, mean {mean:.3g}"
    )
    return Claim(statement, decided(mean > SAME and min(factors) * SAME >= 1), evidence)


def shorter_claim(measured: Curves) -> Claim:
    """Depth gains less on long sequences: the factor at the lowest ranks falls with the number of points."""
    statement = "Depth helps for short sequences and less for long ones."
    gains: dict[int, list[float]] = {}
    for variant, _, gain in _gains(measured):
        gains.setdefault(variant.length, []).append(gain)
    if len(gains) < 2:
        return Claim(statement, Verdict.UNDECIDED, "depth was not measured at two numbers of points")
    means = {length: _geometric_mean(values) for length, values in sorted(gains.items())}
    evidence = "one layer's error over the deepest's, mean over ranks below full: " + "; ".join(
        f"{length} points {gain:.3g}" for length, gain in means.items()
    )
    shortest, longest = next(iter(means.values())), list(means.values())[-1]
    return Claim(statement, decided(shortest > SAME and longest * SAME < shortest), evidence)


def magnitude_claim(measured: Curves, figure: str) -> Claim:
    """Every measured point is within a factor of ten of the published one."""
    statement = "Every error is of the published order of magnitude."
    pairs = [
        (line[rank], value)
        for variant, theirs in published_curves(figure).items()
        for line in [measured.get(variant, {})]
        for rank, value in theirs.items()
        if rank in line and value > 0
    ]
    if not pairs:
        return Claim(statement, Verdict.UNDECIDED, "no published point was measured; --scale paper does")
    near = sum(10**-TENFOLD <= ours / theirs <= 10**TENFOLD for ours, theirs in pairs)
    evidence = f"{near} of {len(pairs)} points read off the plot are within tenfold"
    return Claim(statement, decided(near == len(pairs)), evidence)


def _gains(measured: Curves) -> list[tuple[Variant, int, float]]:
    """One layer's error over the deepest's, for every variant of one layer and every rank below the full one."""
    deepest = max((variant.layers for variant in measured), default=1)
    found = []
    for variant, line in measured.items():
        deep = measured.get(variant._replace(layers=deepest))
        if variant.layers != 1 or deepest == 1 or deep is None:
            continue
        found += [(variant, rank, line[rank] / deep[rank]) for rank in sorted(line)[:-1] if rank in deep]
    return found


def _geometric_mean(values: Iterable[float]) -> float:
    product, count = 1.0, 0
    for value in values:
        product, count = product * value, count + 1
    return product ** (1 / count)
