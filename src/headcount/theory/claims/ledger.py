"""Every claim of both papers, in the papers' order. A verdict is what the check saw when it was run."""

from collections.abc import Iterator

from . import enough_heads, rank, support, too_few_heads
from .claim import Claim, Entry, NotRun

CLAIMS: tuple[Claim, ...] = (
    enough_heads.density,
    enough_heads.gate,
    enough_heads.enough_heads,
    enough_heads.fitted_heads,
    too_few_heads.lemma_4,
    too_few_heads.too_few_heads,
    too_few_heads.collisions,
    too_few_heads.collisions_of_a_construction,
    enough_heads.lemma_8,
    enough_heads.lemma_9,
    enough_heads.wide_head,
    too_few_heads.uniqueness,
    too_few_heads.depth,
    rank.full_rank,
    rank.closed_forms,
    rank.plane,
    rank.floors,
    rank.orders,
    rank.majority_vote,
    rank.any_length,
    support.support,
)

NOT_RUN: tuple[NotRun, ...] = ()
"""Statements of the papers that no check here reaches, each with the reason."""


def prove() -> Iterator[Entry]:
    for claim in CLAIMS:
        yield claim()
