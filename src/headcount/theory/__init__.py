"""What the two papers prove, as programs. Depends on tasks and models, not on training or measurement.

bounds          the first paper's formulas: value, claim, source, conditions
constructions   models with explicit weights and a bound on their error (Theorems 1, 2(1), 2(3))
collisions      pairs of sequences that a model cannot tell apart, searched and certified (Theorem 2(2))
intervals       interval arithmetic and enclosures of JAX functions, which certificates rest on
rank            the second paper: heads of low rank on the nearest point
support         how many tokens a target depends on at once: D without training
claims          every claim of both papers with a check that runs it
"""

from .bounds import Bound, Setting, all_bounds
from .collisions.certificates import Certificate, certify
from .collisions.domain import Domain, domain_of
from .collisions.pigeonhole import find_pigeonhole
from .collisions.search import Collision, find_collisions
from .collisions.uniqueness import compare_representations
from .constructions.adversary import largest_error
from .constructions.density import promised_error, retrieval_of
from .constructions.enough_heads import construct
from .constructions.relu_nets import Ridge, RidgeSum, compose, linear, max_net
from .constructions.wide_head import construct_wide, wide_size
from .rank.harmonics import heads_needed, rank_floor, rank_one_floor
from .rank.nearest import MajorityVote, exact_head
from .rank.rank_bounds import RankSetting, all_rank_bounds
from .rank.rank_one import RankOneHeads, plane_heads, staircase_heads
from .support import Support, support_dim

__all__ = [
    "Bound",
    "Certificate",
    "Collision",
    "Domain",
    "MajorityVote",
    "RankOneHeads",
    "RankSetting",
    "Ridge",
    "RidgeSum",
    "Setting",
    "Support",
    "all_bounds",
    "all_rank_bounds",
    "certify",
    "compare_representations",
    "compose",
    "construct",
    "construct_wide",
    "domain_of",
    "exact_head",
    "find_collisions",
    "find_pigeonhole",
    "heads_needed",
    "largest_error",
    "linear",
    "max_net",
    "plane_heads",
    "promised_error",
    "rank_floor",
    "rank_one_floor",
    "retrieval_of",
    "staircase_heads",
    "support_dim",
    "wide_size",
]
