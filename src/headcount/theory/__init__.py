"""What the two papers prove, as programs. Depends on tasks and models, not on training or measurement.

bounds          the first paper's formulas: value, claim, source, conditions
constructions   models with explicit weights and a bound on their error (Theorems 1, 2(1), 2(3))
collisions      pairs of sequences that a model cannot tell apart, searched and certified (Theorem 2(2))
intervals       interval arithmetic and enclosures of JAX functions, which certificates rest on
floors          what every model of a class misses, and one head that misses little
rank            the second paper: heads of low rank on the nearest point
claims          every theorem of both papers that we could run, with a check and a control of the check
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
from .constructions.content_roles import construct_by_content
from .constructions.density import promised_error, retrieval_of
from .constructions.depth_roles import construct_roles, roles, roles_of_maxima
from .constructions.enough_heads import construct
from .constructions.relu_nets import Ridge, RidgeSum, compose, linear, max_net
from .constructions.shared_keys import construct_shared
from .constructions.two_layers import construct_two_layers
from .constructions.wide_head import construct_wide, wide_size
from .floors.alphabet import AlphabetFloor, alphabet_floor, error_of_orders
from .floors.bounded import BoundedClass, class_floor, least_length, slope_needed
from .floors.counting import counting_slope
from .floors.one_head import OneHead, one_head_answer, one_head_slope
from .floors.phase import Phase, phase_diagram
from .floors.trained import AlphabetErrors, alphabet_errors
from .rank.harmonics import heads_needed, rank_floor, rank_one_floor
from .rank.many_points import many_points_floor
from .rank.nearest import MajorityVote, exact_head
from .rank.rank_bounds import RankSetting, all_rank_bounds
from .rank.rank_one import RankOneHeads, plane_heads, staircase_heads
from .rank.zonal import zonal_floor
from .support import Support, support_dim

__all__ = [
    "AlphabetErrors",
    "AlphabetFloor",
    "Bound",
    "BoundedClass",
    "Certificate",
    "Collision",
    "Domain",
    "MajorityVote",
    "OneHead",
    "Phase",
    "RankOneHeads",
    "RankSetting",
    "Ridge",
    "RidgeSum",
    "Setting",
    "Support",
    "all_bounds",
    "all_rank_bounds",
    "alphabet_errors",
    "alphabet_floor",
    "certify",
    "class_floor",
    "compare_representations",
    "compose",
    "construct",
    "construct_by_content",
    "construct_roles",
    "construct_shared",
    "construct_two_layers",
    "construct_wide",
    "counting_slope",
    "domain_of",
    "error_of_orders",
    "exact_head",
    "find_collisions",
    "find_pigeonhole",
    "heads_needed",
    "largest_error",
    "least_length",
    "linear",
    "many_points_floor",
    "max_net",
    "one_head_answer",
    "one_head_slope",
    "phase_diagram",
    "plane_heads",
    "promised_error",
    "rank_floor",
    "rank_one_floor",
    "retrieval_of",
    "roles",
    "roles_of_maxima",
    "slope_needed",
    "staircase_heads",
    "support_dim",
    "wide_size",
    "zonal_floor",
]
