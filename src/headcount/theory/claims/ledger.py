"""Every theorem of both papers that we could run, in the papers' order.

A verdict is what the check saw when it was run.
"""

from ...answer.claim import Claim
from . import depth, enough_heads, floors, norm, rank, shared_keys, support, too_few_heads, zonal

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
    depth.depth,
    rank.full_rank,
    rank.closed_forms,
    rank.plane,
    rank.floors,
    rank.orders,
    rank.majority_vote,
    zonal.biased_floor,
    zonal.many_points,
    norm.norm_collisions,
    norm.norm_bound,
    depth.depth_roles,
    depth.two_layers,
    depth.content_roles,
    floors.hard_heads,
    floors.bounded_heads,
    floors.steep_head,
    shared_keys.shared_keys,
    support.support,
)
