"""Judges of error against hidden width N: `table` is over heads, hidden, length and seed, `enough` are D heads."""

import itertools

import numpy as np

from ...answer import ErrorTable, PowerLaw, count_of_heads, power_law
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided, verdict_of
from .heads import FLAT_SLOPE, finite_ratio


def width_fits(table: ErrorTable) -> dict[tuple[int, int], PowerLaw]:
    """The power law in N of the best of seeds, by heads and length, where two widths are there."""
    best = table.reduced("seed").ordered("heads", "length", "hidden")
    widths = np.asarray(best.values("hidden"), float)
    places = itertools.product(best.values("heads"), best.values("length"))
    rows = best.errors.reshape(-1, len(widths))
    fits = {place: power_law(widths, row) for place, row in zip(places, rows, strict=True)}
    return {place: fit for place, fit in fits.items() if fit is not None}


def falls_claim(table: ErrorTable, enough: int) -> Claim:
    statement = "With fewer than D heads the error falls as a power of N."
    fits = {place: fit for place, fit in width_fits(table).items() if place[0] < enough}
    if not fits:
        return Claim(statement, Verdict.UNDECIDED, "no head count below D was measured at two widths")
    evidence = "exponents with 90 % intervals: " + "; ".join(
        f"{count_of_heads(heads)}, length {length} {_interval(fit)}" for (heads, length), fit in fits.items()
    )
    falling, level = ([fit.high < 0 for fit in fits.values()], [fit.low > -FLAT_SLOPE for fit in fits.values()])
    return Claim(statement, verdict_of(falling, level), evidence)


def longer_is_worse_claim(table: ErrorTable, enough: int) -> Claim:
    statement = "With fewer than D heads the longest sequences have a larger error than the shortest at the same N."
    best = table.reduced("seed").ordered("heads", "length", "hidden")
    few = best.select(heads=[heads for heads in best.values("heads") if heads < enough]).errors
    ratio = finite_ratio(few[:, -1], few[:, 0])
    shortest, longest = best.values("length")[0], best.values("length")[-1]
    if shortest == longest or not len(ratio):
        return Claim(statement, Verdict.UNDECIDED, "the shortest and the longest length were not both measured")
    worse = int(np.sum(ratio > 1))
    evidence = f"from length {shortest} to {longest} the error grows in {worse} of {len(ratio)} pairs of heads and N"
    return Claim(statement, decided(worse == len(ratio)), evidence)


def flatter_claim(table: ErrorTable, enough: int) -> Claim:
    """Theorem 2(2): err ~ M^(-1/k) with k growing in T, so the power is nearer to zero for longer sequences."""
    statement = "With fewer than D heads size buys less on longer sequences: the power is nearer to zero."
    fits = width_fits(table)
    short, long = table.values("length")[0], table.values("length")[-1]
    both = [h for h in table.values("heads") if h < enough and (h, short) in fits and (h, long) in fits]
    if short == long or not both:
        return Claim(statement, Verdict.UNDECIDED, "the shortest and the longest length were not both measured")
    evidence = f"exponent at length {short} and at {long}, with 90 % intervals: " + "; ".join(
        f"{count_of_heads(h)} {_interval(fits[h, short])}, {_interval(fits[h, long])}" for h in both
    )
    nearer = [fits[h, long].low > fits[h, short].high for h in both]
    further = [fits[h, long].high < fits[h, short].low for h in both]
    return Claim(statement, verdict_of(nearer, further), evidence)


def missing_head_claim(table: ErrorTable, enough: int) -> Claim:
    statement = "No size tried makes up for a missing head: D heads do better at every N."
    missing = Claim(statement, Verdict.UNDECIDED, "D and D - 1 heads were not both measured")
    if not {enough, enough - 1} <= set(table.values("heads")):
        return missing
    best = table.reduced("seed")
    ratio = finite_ratio(best.select(heads=enough - 1).errors, best.select(heads=enough).errors)
    if not len(ratio):
        return missing
    evidence = f"D - 1 heads err {ratio.min():.3g} to {ratio.max():.3g} times as much as D heads at the same N"
    return Claim(statement, decided(bool(ratio.min() > 1)), evidence)


def _interval(fit: PowerLaw) -> str:
    if not np.isfinite(fit.low):
        return f"{fit.exponent:+.2f} (no interval from two widths)"
    return f"{fit.exponent:+.2f} [{fit.low:+.2f}, {fit.high:+.2f}]"
