"""Theorems as programs. Knows tasks and models, and nothing of measurement."""

from .bounds import Bound, Condition, Setting, all_bounds
from .certificates import Certificate, certify
from .collisions import Collision, Domain, domain_of, find_collisions
from .density import promised_error, retrieval_of
from .enough_heads import Construction, construct, largest_error
from .fitted import Fitted
from .nearest import AttentionHead, MajorityVote, exact_head, farthest_head
from .pigeonhole import Pigeonhole, find_pigeonhole
from .rank_bounds import RankSetting, all_rank_bounds, heads_needed, rank_floor, rank_one_floor
from .rank_one import RankOneHeads, plane_heads, random_heads, staircase_heads
from .relu_nets import ReluNet, beside, compose, interpolation_net, max_net, min_net
from .ridges import Ridge, RidgeSum, linear
from .uniqueness import Comparison, compare_representations
from .wide_head import WideConstruction, WideHead, construct_wide, wide_size

__all__ = [
    "AttentionHead",
    "Bound",
    "Certificate",
    "Collision",
    "Comparison",
    "Condition",
    "Construction",
    "Domain",
    "Fitted",
    "MajorityVote",
    "Pigeonhole",
    "RankOneHeads",
    "RankSetting",
    "ReluNet",
    "Ridge",
    "RidgeSum",
    "Setting",
    "WideConstruction",
    "WideHead",
    "all_bounds",
    "all_rank_bounds",
    "beside",
    "certify",
    "compare_representations",
    "compose",
    "construct",
    "construct_wide",
    "domain_of",
    "exact_head",
    "farthest_head",
    "find_collisions",
    "find_pigeonhole",
    "heads_needed",
    "interpolation_net",
    "largest_error",
    "linear",
    "max_net",
    "min_net",
    "plane_heads",
    "promised_error",
    "random_heads",
    "rank_floor",
    "rank_one_floor",
    "retrieval_of",
    "staircase_heads",
    "wide_size",
]
