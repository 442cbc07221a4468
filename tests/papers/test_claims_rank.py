"""Claims about rank are judged by the numbers: they hold, differ, or stay undecided."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from headcount.answer import ErrorTable, Verdict
from headcount.papers.claims.heads import magnitude_claim
from headcount.papers.claims.rank import (
    blocks_claim,
    codes_claim,
    depth_claim,
    full_rank_claim,
    longer_claim,
    more_heads_claim,
    shorter_claim,
    wider_heads_claim,
)
from headcount.papers.published import published_points

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
USUAL = {"layers": 1, "multiplier": 1, "dim": 8, "positions": "none", "length": 8}


def of(line: dict[int, float], **changes) -> list[tuple[dict, dict[int, float]]]:
    """One line of width 8."""
    return [(USUAL | changes, line)]


def table(lines) -> ErrorTable:
    """The table of these lines, NaN between them."""
    axes = {"rank": tuple(sorted({rank for _, line in lines for rank in line}))}
    axes |= {axis: tuple(dict.fromkeys(sorted(at[axis] for at, _ in lines))) for axis in USUAL}
    errors = np.full([len(values) for values in axes.values()], np.nan)
    for (at, line), rank in itertools.product(lines, axes["rank"]):
        place = at | {"rank": rank}
        errors[tuple(values.index(place[axis]) for axis, values in axes.items())] = line.get(rank, np.nan)
    return ErrorTable(axes=axes, errors=errors)


SHARP = {1: 0.9, 4: 0.8, 8: 0.01}
SMOOTH = {1: 0.9, 4: 0.05, 8: 0.01}
FLAT = {1: 0.5, 4: 0.5, 8: 0.5}
RISING = {1: 0.1, 4: 0.2, 8: 0.5}
IN_CONTEXT = {1: 0.5, 4: 0.2, 16: 0.05}
LOW = {1: 0.1, 4: 0.1}
of_figure_1 = partial(magnitude_claim, published=published_points("figure1"))


def published_times(factor: float):
    """Figure 1, all errors larger by a factor."""
    lines = published_points("figure1").lines("rank")
    return [(at, {rank: factor * value for rank, value in line.items()}) for at, line in lines]


JUDGED = {
    "full rank": (full_rank_claim, of(SHARP), HOLDS),
    "full rank of two ranks": (full_rank_claim, of({4: 0.8, 8: 0.01}), HOLDS),
    "full rank with other blocks": (full_rank_claim, of(FLAT) + of(SHARP, multiplier=4), HOLDS),
    "full rank: blocks of half rank do it": (full_rank_claim, of(SHARP) + of({4: 0.01}, multiplier=4), DIFFERS),
    "full rank: it falls before": (full_rank_claim, of(SMOOTH), DIFFERS),
    "full rank: it does not fall": (full_rank_claim, of(FLAT), DIFFERS),
    "full rank at one length of two": (full_rank_claim, of(SHARP) + of(FLAT, length=16), DIFFERS),
    "full rank: one rank": (full_rank_claim, of({8: 0.1}), UNDECIDED),
    "full rank: other layers": (full_rank_claim, of(SHARP, layers=2), UNDECIDED),
    "full rank: not measured": (full_rank_claim, of({1: 0.9, 4: 0.01}), UNDECIDED),
    "full rank, two layers": (partial(full_rank_claim, layers=2), of(SHARP, layers=2) + of(FLAT), HOLDS),
    "more heads": (more_heads_claim, of(SHARP) + of(SMOOTH, layers=3), HOLDS),
    "more heads: within a tenth": (more_heads_claim, of({1: 0.5, 4: 0.52, 8: 0.1}), HOLDS),
    "more heads help": (more_heads_claim, of(RISING), DIFFERS),
    "more heads help once": (more_heads_claim, of(SHARP) + of({1: 0.2, 4: 0.9, 8: 0.1}, layers=3), DIFFERS),
    "more heads: one rank": (more_heads_claim, of({8: 0.1}), UNDECIDED),
    "blocks": (blocks_claim, of(SHARP) + of({4: 0.5}, multiplier=8), HOLDS),
    "blocks make up for it": (blocks_claim, of(SHARP) + of({4: 0.01}, multiplier=8), DIFFERS),
    "some blocks do": (
        blocks_claim, of(SHARP) + of({4: 0.5}, multiplier=8) + of({4: 1e-3}, multiplier=64), DIFFERS,
    ),
    "blocks: one number of them": (blocks_claim, of(SHARP), UNDECIDED),
    "blocks: no half rank": (blocks_claim, of(SHARP) + of({1: 0.5, 8: 0.1}, multiplier=8), UNDECIDED),
    "blocks: deep ones only": (blocks_claim, of(SHARP, layers=3) + of(SHARP, layers=3, multiplier=8), UNDECIDED),
    "blocks: full rank not measured": (blocks_claim, of({4: 0.8}) + of({4: 0.8}, multiplier=8), UNDECIDED),
    "depth": (depth_claim, of(SHARP) + of({1: 0.3, 4: 0.2, 8: 0.9}, layers=3), HOLDS),
    "depth on the whole": (depth_claim, of(SHARP) + of({1: 0.3, 4: 0.8}, layers=3), HOLDS),
    "depth, but at one rank it hurts": (depth_claim, of(SHARP) + of({1: 0.3, 4: 0.95}, layers=3), DIFFERS),
    "depth gains nothing": (depth_claim, of(SHARP) + of(SHARP, layers=3), DIFFERS),
    "depth: the deepest counts": (depth_claim, of(SHARP) + of(SHARP, layers=3) + of({4: 0.1}, layers=5), HOLDS),
    "depth: one depth": (depth_claim, of(SHARP), UNDECIDED),
    "depth: full rank alone": (depth_claim, of(SHARP) + of({8: 0.001}, layers=3), UNDECIDED),
    "shorter": (
        shorter_claim, of(SHARP) + of(LOW, layers=2) + of(SHARP, length=64) + of(SHARP, length=64, layers=2), HOLDS,
    ),
    "longer gains as much": (
        shorter_claim, of(SHARP) + of(LOW, layers=2) + of(SHARP, length=64) + of(LOW, length=64, layers=2), DIFFERS,
    ),
    "short gains nothing": (
        shorter_claim, of(SHARP) + of(SHARP, layers=2) + of(SHARP, length=64) + of(SHARP, length=64, layers=2), DIFFERS,
    ),
    "shorter: one length": (shorter_claim, of(SHARP) + of(LOW, layers=2), UNDECIDED),
    "magnitude": (of_figure_1, published_times(9), HOLDS),
    "magnitude: too large": (of_figure_1, published_times(11), DIFFERS),
    "magnitude: other sizes": (of_figure_1, of(SHARP), UNDECIDED),
    "codes": (codes_claim, of(SHARP) + of({4: 0.5}, positions="additive"), HOLDS),
    "codes: twice the width": (codes_claim, of(SHARP) + of({4: 0.5, 8: 1e-3}, positions="concatenated"), HOLDS),
    "codes make up for it": (codes_claim, of(SHARP) + of({4: 0.01}, positions="additive"), DIFFERS),
    "codes: none": (codes_claim, of(SHARP), UNDECIDED),
    "codes: nothing beside them": (codes_claim, of(SHARP, positions="additive"), UNDECIDED),
    "codes: full rank not measured": (codes_claim, of({4: 0.8}) + of({4: 0.5}, positions="additive"), UNDECIDED),
    "longer": (longer_claim, of({1: 0.1}, layers=2) + of({1: 0.5}, layers=2, length=64), HOLDS),
    "longer errs less": (longer_claim, of({1: 0.5}, layers=2) + of({1: 0.1}, layers=2, length=64), DIFFERS),
    "longer: one length": (longer_claim, of(SHARP, layers=2), UNDECIDED),
    "longer: one layer": (longer_claim, of(SHARP) + of(SHARP, length=64), UNDECIDED),
    "longer: at the lowest rank of both": (
        longer_claim, of({1: 0.3, 4: 0.1}, layers=2) + of({4: 0.2}, layers=2, length=64), HOLDS,
    ),
    "wider": (wider_heads_claim, of(IN_CONTEXT, dim=16), HOLDS),
    "wider: lower rank does as well": (wider_heads_claim, of({1: 0.05, 4: 0.05, 16: 0.05}), DIFFERS),
    "wider: one depth of two": (wider_heads_claim, of(IN_CONTEXT) + of(RISING, layers=3), DIFFERS),
    "wider: two ranks": (wider_heads_claim, of({1: 0.5, 16: 0.05}), UNDECIDED),
}  # fmt: skip


@pytest.mark.parametrize("kind", JUDGED)
def test_a_claim_holds_differs_or_is_undecided(kind):
    claim, lines, verdict = JUDGED[kind]
    judged = claim(table(lines))
    assert judged.verdict is verdict, judged.evidence
    assert judged.statement.endswith(".")
    assert judged.evidence


@pytest.mark.parametrize("bad", [math.nan, 1e-300, 1e300])
@pytest.mark.parametrize("kind", JUDGED)
def test_the_evidence_of_extreme_errors_has_numbers(kind, bad):
    claim, lines, _ = JUDGED[kind]
    for i, (at, line) in enumerate(lines):
        for rank in line:
            changed = [*lines[:i], (at, line | {rank: bad}), *lines[i + 1 :]]
            assert "nan" not in claim(table(changed)).evidence


def test_the_evidence_is_the_numbers():
    assert "80-fold (1.12-fold)" in full_rank_claim(table(of(SHARP))).evidence
    both = table(of(SHARP) + of(FLAT, positions="additive"))
    assert "positions none 80-fold" in full_rank_claim(both).evidence
    assert "in 1 of 2 steps" in more_heads_claim(table(of({1: 0.2, 4: 0.9, 8: 0.1}))).evidence
