"""Judge errors by rank at equal parameters.

`table` is over rank, layers, multiplier, dim, length and positions: the best of seeds of encoders whose heads share the
width. A line is the errors by rank of one combination of the others.
"""

import itertools
from typing import Any

import numpy as np

from ...answer import ErrorTable
from ...answer.signals import MIN_DROP
from .judge import Cases, claims_that, exactly, geometric_mean

DROP = 10**MIN_DROP
"""The factor by which an error must fall to count as a drop, the same as for heads."""
SAME = 1.1
"""Errors within this factor are not told apart."""


def full_rank(at: dict[str, Any]) -> int:
    """The rank of one head that has all of the width, with that of a concatenated position code."""
    return 2 * at["dim"] if at.get("positions") == "concatenated" else at["dim"]


def varying_axes(table: ErrorTable) -> frozenset[str]:
    return frozenset(axis for axis, values in table.axes.items() if axis != "rank" and len(values) > 1)


def line_name(at: dict[str, Any], differing: frozenset[str], otherwise: str = "measured") -> str:
    """Name a line by the axes along which lines differ; `otherwise` where none does."""
    words = {
        "layers": count_of_layers(at.get("layers", 1)),
        "multiplier": "1 block" if at.get("multiplier") == 1 else f"{at.get('multiplier')} blocks",
        "dim": f"d = {at.get('dim')}",
        "length": f"{at.get('length')} points",
        "positions": f"positions {at.get('positions')}",
        "recipe": at.get("recipe", ""),
    }
    return ", ".join(word for axis, word in words.items() if axis in differing and axis in at) or otherwise


def count_of_layers(layers: int) -> str:
    return "1 layer" if layers == 1 else f"{layers} layers"


@claims_that("{statement}", "no such model was measured at two ranks")
def full_rank_claim(table: ErrorTable, layers: int = 1, statement: str = "One layer needs full rank.") -> Cases:
    """The error falls at full rank, and not before; of the numbers of blocks tried, the best one counts."""
    differing = varying_axes(table) - {"multiplier", "layers"}
    yield "the error falls from half to full rank (and from the lowest rank to half) "
    for at, line in _of_layers(table, layers).reduced("multiplier").lines("rank"):
        ranks = sorted(line)
        if len(ranks) > 1 and full_rank(at) in line:
            full, before = line[ranks[-2]] / line[ranks[-1]], line[ranks[0]] / line[ranks[-2]]
            words = f"{line_name(at, differing, otherwise='')} {full:.3g}-fold ({before:.3g}-fold)".strip()
            yield exactly(words, full >= DROP and full > before)


@claims_that("At equal parameters more heads hurt.", "no model was measured at two ranks")
def more_heads_claim(table: ErrorTable) -> Cases:
    lines = table.lines("rank")
    steps = [(at, line, low, high) for at, line in lines for low, high in itertools.pairwise(sorted(line))]
    helped = [
        f"; not from rank {high} to {low} with {line_name(at, varying_axes(table))}: {line[high]:.2g}, {line[low]:.2g}"
        for at, line, low, high in steps
        if line[low] * SAME < line[high]
    ]
    best_full = all(min(line, key=line.__getitem__) == max(line) for _, line in lines)
    if steps:
        yield exactly(
            f"in {len(steps) - len(helped)} of {len(steps)} steps from one rank to the next lower, with more heads, "
            f"the error does not fall{''.join(helped[-1:])}; the highest rank is the best "
            f"{'everywhere' if best_full else 'not everywhere'}",
            not helped and best_full,
        )


@claims_that(
    "More heads of half the rank do not make up for full rank.", "one layer was not measured with several blocks"
)
def blocks_claim(table: ErrorTable) -> Cases:
    for at, line in _of_layers(table, 1).lines("rank"):
        full = full_rank(at)
        single, half = table.at(**at | {"layers": 1, "multiplier": 1, "rank": full}), line.get(full // 2)
        if at["multiplier"] != 1 and half is not None and np.isfinite(single):
            words = f"{at['multiplier']} blocks of half rank {half:.2g}, one of full rank {single:.2g}"
            yield exactly(words, half > single * SAME)


@claims_that("Depth helps below full rank.", "no rank below the full one was measured at two depths")
def depth_claim(table: ErrorTable) -> Cases:
    """They lower the error on the whole, and raise it nowhere."""
    gains = [gain for _, gain in _gains(table)]
    if gains:
        mean, least = geometric_mean(gains), min(gains)
        yield exactly(
            f"one layer's error over the deepest's, at {len(gains)} ranks and numbers of blocks: {least:.3g} to "
            f"{max(gains):.3g}, mean {mean:.3g}",
            mean > SAME and least * SAME >= 1,
        )


@claims_that(
    "Depth helps for short sequences and less for long ones.", "depth was not measured at two numbers of points"
)
def shorter_claim(table: ErrorTable) -> Cases:
    gains: dict[int, list[float]] = {}
    for at, gain in _gains(table):
        gains.setdefault(at["length"], []).append(gain)
    if len(gains) > 1:
        means = {length: geometric_mean(values) for length, values in sorted(gains.items())}
        shortest, *_, longest = means.values()
        words = "; ".join(f"{length} points {gain:.3g}" for length, gain in means.items())
        yield "one layer's error over the deepest's, mean over ranks below full: "
        yield exactly(words, shortest > SAME and longest * SAME < shortest)


@claims_that(
    "With two layers low rank errs more, the more points there are.",
    "two layers of one rank were not measured at several numbers of points",
)
def longer_claim(table: ErrorTable) -> Cases:
    deep = {at["length"]: line for at, line in _of_layers(table, 2).lines("rank")}
    shared = set.intersection(*map(set, deep.values())) if len(deep) > 1 else set()
    if shared:
        lowest = {length: line[min(shared)] for length, line in sorted(deep.items())}
        errors, words = list(lowest.values()), "; ".join(f"{n} points {error:.2g}" for n, error in lowest.items())
        yield exactly(f"error at the lowest rank: {words}", errors == sorted(errors))


@claims_that("Position codes do not make up for rank.", "codes were not measured below full rank")
def codes_claim(table: ErrorTable) -> Cases:
    yield "best error below full rank with codes, and at full rank without: "
    for at, line in table.lines("rank"):
        # A concatenated code doubles the width, so heads of the points' own dimension are half of it.
        below = [error for rank, error in line.items() if rank < at["dim"]]
        full = table.at(**at | {"positions": "none", "rank": at["dim"]})
        if at["positions"] != "none" and below and np.isfinite(full):
            model = f"{at['positions']}, {at['layers']} layer(s), {at['multiplier']} block(s)"
            yield exactly(f"{model} {min(below):.2g}, {full:.2g}", min(below) > full * SAME)


@claims_that("At equal parameters fewer, wider heads do better.", "fewer than three head counts were measured")
def wider_heads_claim(table: ErrorTable) -> Cases:
    """The error falls as a power of the rank, from the lowest to the highest."""
    for at, line in table.lines("rank"):
        if len(line) > 2:
            (low, at_low), *_, (high, at_high) = sorted(line.items())
            slope = float(np.polyfit(np.log(sorted(line)), np.log([line[rank] for rank in sorted(line)]), 1)[0])
            ends = f"rank {high} {at_high:.2g}, rank {low} {at_low:.2g}"
            yield exactly(
                f"{at['layers']} layers: {ends}, error ~ rank^{slope:.2f}", slope < 0 and at_low > SAME * at_high
            )


def _of_layers(table: ErrorTable, layers: int) -> ErrorTable:
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
