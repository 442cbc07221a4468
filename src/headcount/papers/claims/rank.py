"""Judges of error by rank at equal parameters.

`table` is over rank, layers, multiplier, dim, length and positions: the best of seeds of encoders whose heads share the
width. A line is the errors by rank of one combination of the others.
"""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided
from ...answer.signals import MIN_DROP

DROP = 10**MIN_DROP
"""The factor by which an error must fall to count as a drop, the same as for heads."""
SAME = 1.1
"""Errors within this factor are not told apart."""


def full_rank(at: dict[str, Any]) -> int:
    """The rank of one head that has all of the width, a position code beside it included."""
    return 2 * at["dim"] if at.get("positions") == "concatenated" else at["dim"]


def varying(table: ErrorTable) -> frozenset[str]:
    """The axes along which lines differ."""
    return frozenset(axis for axis, values in table.axes.items() if axis != "rank" and len(values) > 1)


def named(at: dict[str, Any], differing: frozenset[str], otherwise: str = "measured") -> str:
    """What tells a line from the others, in words; `otherwise` where nothing does."""
    words = {
        "layers": "1 layer" if at.get("layers") == 1 else f"{at.get('layers')} layers",
        "multiplier": "1 block" if at.get("multiplier") == 1 else f"{at.get('multiplier')} blocks",
        "dim": f"d = {at.get('dim')}",
        "length": f"{at.get('length')} points",
        "positions": f"positions {at.get('positions')}",
        "recipe": at.get("recipe", ""),
    }
    return ", ".join(word for axis, word in words.items() if axis in differing and axis in at) or otherwise


def full_rank_claim(table: ErrorTable, layers: int = 1) -> Claim:
    """The error falls at full rank, and not before; of the numbers of blocks tried, the best one counts."""
    statement = "One layer needs full rank."
    if layers != 1:
        statement = f"With {layers} layers the error still falls at full rank."
    lines = _of_layers(table, layers).reduced("multiplier").lines("rank")
    drops = [
        (at, line[ranks[-2]] / line[ranks[-1]], line[ranks[0]] / line[ranks[-2]])
        for at, line in lines
        if len(ranks := sorted(line)) > 1 and full_rank(at) in line
    ]
    if not drops:
        return Claim(statement, Verdict.UNDECIDED, "no such model was measured at two ranks")
    differing = varying(table) - {"multiplier", "layers"}
    evidence = "the error falls from half to full rank (and from the lowest rank to half) " + "; ".join(
        f"{named(at, differing, otherwise='')} {at_full:.3g}-fold ({before:.3g}-fold)".strip()
        for at, at_full, before in drops
    )
    return Claim(statement, decided(all(full >= DROP and full > before for _, full, before in drops)), evidence)


def more_heads_claim(table: ErrorTable) -> Claim:
    """At equal parameters each halving of the rank, and doubling of the heads, raises the error."""
    statement = "At equal parameters more heads hurt."
    lines = table.lines("rank")
    steps = [(at, line, low, high) for at, line in lines for low, high in itertools.pairwise(sorted(line))]
    if not steps:
        return Claim(statement, Verdict.UNDECIDED, "no model was measured at two ranks")
    helped = [step for step in steps if step[1][step[2]] * SAME < step[1][step[3]]]
    best_full = all(min(line, key=line.__getitem__) == max(line) for _, line in lines)
    worst = ""
    if helped:
        at, line, low, high = helped[-1]
        worst = f"; not from rank {high} to {low} with {named(at, varying(table))}: {line[high]:.2g}, {line[low]:.2g}"
    evidence = (
        f"in {len(steps) - len(helped)} of {len(steps)} steps from one rank to the next lower, with more heads, the "
        f"error does not fall{worst}; the highest rank is the best {'everywhere' if best_full else 'not everywhere'}"
    )
    return Claim(statement, decided(not helped and best_full), evidence)


def blocks_claim(table: ErrorTable) -> Claim:
    """More blocks of half the rank do not reach one block of full rank."""
    statement = "More heads of half the rank do not make up for full rank."
    compared = []
    for at, line in _of_layers(table, 1).lines("rank"):
        full = full_rank(at)
        single = table.at(**at | {"layers": 1, "multiplier": 1, "rank": full})
        if at["multiplier"] != 1 and full // 2 in line and np.isfinite(single):
            compared.append((at["multiplier"], line[full // 2], single))
    if not compared:
        return Claim(statement, Verdict.UNDECIDED, "one layer was not measured with several blocks")
    evidence = "; ".join(
        f"{blocks} blocks of half rank {half:.2g}, one of full rank {full:.2g}" for blocks, half, full in compared
    )
    return Claim(statement, decided(all(half > full * SAME for _, half, full in compared)), evidence)


def depth_claim(table: ErrorTable) -> Claim:
    """More layers lower the error below full rank on the whole, and raise it nowhere."""
    statement = "Depth helps below full rank."
    gains = [gain for _, gain in _gains(table)]
    if not gains:
        return Claim(statement, Verdict.UNDECIDED, "no rank below the full one was measured at two depths")
    mean = _geometric_mean(gains)
    evidence = (
        f"one layer's error over the deepest's, at {len(gains)} ranks and numbers of blocks: {min(gains):.3g} to "
        f"{max(gains):.3g}, mean {mean:.3g}"
    )
    return Claim(statement, decided(mean > SAME and min(gains) * SAME >= 1), evidence)


def shorter_claim(table: ErrorTable) -> Claim:
    """Depth gains less on long sequences: the factor at the lowest ranks falls with the number of points."""
    statement = "Depth helps for short sequences and less for long ones."
    gains: dict[int, list[float]] = {}
    for at, gain in _gains(table):
        gains.setdefault(at["length"], []).append(gain)
    if len(gains) < 2:
        return Claim(statement, Verdict.UNDECIDED, "depth was not measured at two numbers of points")
    means = {length: _geometric_mean(values) for length, values in sorted(gains.items())}
    evidence = "one layer's error over the deepest's, mean over ranks below full: " + "; ".join(
        f"{length} points {gain:.3g}" for length, gain in means.items()
    )
    shortest, *_, longest = means.values()
    return Claim(statement, decided(shortest > SAME and longest * SAME < shortest), evidence)


def longer_claim(table: ErrorTable) -> Claim:
    """With two layers the error at the lowest rank grows with the number of points."""
    statement = "With two layers low rank errs more, the more points there are."
    deep = {at["length"]: line for at, line in _of_layers(table, 2).lines("rank")}
    if len(deep) < 2:
        return Claim(statement, Verdict.UNDECIDED, "two layers were not measured at two numbers of points")
    shared = set.intersection(*map(set, deep.values()))
    if not shared:
        return Claim(statement, Verdict.UNDECIDED, "no rank was measured at every number of points")
    lowest = {length: line[min(shared)] for length, line in sorted(deep.items())}
    evidence = "error at the lowest rank: " + "; ".join(f"{n} points {error:.2g}" for n, error in lowest.items())
    errors = list(lowest.values())
    return Claim(statement, decided(errors == sorted(errors)), evidence)


def codes_claim(table: ErrorTable) -> Claim:
    """Below full rank a position code does not reach full rank without one."""
    statement = "Position codes do not make up for rank."
    pairs = []
    for at, line in table.lines("rank"):
        # A concatenated code doubles the width, so heads of the points' own dimension are half of it.
        below = [error for rank, error in line.items() if rank < at["dim"]]
        full = table.at(**at | {"positions": "none", "rank": at["dim"]})
        if at["positions"] != "none" and below and np.isfinite(full):
            pairs.append((at, min(below), full))
    if not pairs:
        return Claim(statement, Verdict.UNDECIDED, "codes were not measured below full rank")
    evidence = "best error below full rank with codes, and at full rank without: " + "; ".join(
        f"{at['positions']}, {at['layers']} layer(s), {at['multiplier']} block(s) {below:.2g}, {full:.2g}"
        for at, below, full in pairs
    )
    return Claim(statement, decided(all(below > full * SAME for _, below, full in pairs)), evidence)


def wider_heads_claim(table: ErrorTable) -> Claim:
    """The error falls as a power of the rank, from the lowest to the highest."""
    statement = "At equal parameters fewer, wider heads do better."
    lines = [(at, dict(sorted(line.items()))) for at, line in table.lines("rank") if len(line) > 2]
    if not lines:
        return Claim(statement, Verdict.UNDECIDED, "fewer than three head counts were measured")
    holds, evidence = [], []
    for at, line in lines:
        (low, at_low), *_, (high, at_high) = line.items()
        slope = float(np.polyfit(np.log(list(line)), np.log(list(line.values())), 1)[0])
        holds.append(slope < 0 and at_low > SAME * at_high)
        ends = f"rank {high} {at_high:.2g}, rank {low} {at_low:.2g}"
        evidence.append(f"{at['layers']} layers: {ends}, error ~ rank^{slope:.2f}")
    return Claim(statement, decided(all(holds)), "; ".join(evidence))


def _of_layers(table: ErrorTable, layers: int) -> ErrorTable:
    """The part of so many layers; an empty one where there is none."""
    return table.select(layers=[layers] if layers in table.values("layers") else [])


def _gains(table: ErrorTable) -> list[tuple[dict[str, Any], float]]:
    """One layer's error over the deepest's, for every line of one layer and every rank below its highest."""
    deepest = max(table.values("layers"), default=1)
    if deepest == 1:
        return []
    gains = []
    for at, line in _of_layers(table, 1).lines("rank"):
        for rank in sorted(line)[:-1]:
            deep = table.at(**at | {"layers": deepest, "rank": rank})
            gains += [(at, line[rank] / deep)] if np.isfinite(deep) else []
    return gains


def _geometric_mean(values: Iterable[float]) -> float:
    values = list(values)
    return float(np.exp(np.mean(np.log(values))))
