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

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "AlphabetErrors": "floors.trained",
    "AlphabetFloor": "floors.alphabet",
    "Bound": "bounds",
    "BoundedClass": "floors.bounded",
    "Certificate": "collisions.certificates",
    "Collision": "collisions.search",
    "Domain": "collisions.domain",
    "MajorityVote": "rank.nearest",
    "OneHead": "floors.one_head",
    "Phase": "floors.phase",
    "RankOneHeads": "rank.rank_one",
    "RankSetting": "rank.rank_bounds",
    "Ridge": "constructions.relu_nets",
    "RidgeSum": "constructions.relu_nets",
    "Setting": "bounds",
    "Support": "support",
    "all_bounds": "bounds",
    "all_rank_bounds": "rank.rank_bounds",
    "alphabet_errors": "floors.trained",
    "alphabet_floor": "floors.alphabet",
    "certify": "collisions.certificates",
    "class_floor": "floors.bounded",
    "compare_representations": "collisions.uniqueness",
    "compose": "constructions.relu_nets",
    "construct": "constructions.enough_heads",
    "construct_by_content": "constructions.content_roles",
    "construct_roles": "constructions.depth_roles",
    "construct_shared": "constructions.shared_keys",
    "construct_two_layers": "constructions.two_layers",
    "construct_wide": "constructions.wide_head",
    "counting_slope": "floors.counting",
    "domain_of": "collisions.domain",
    "error_of_orders": "floors.alphabet",
    "exact_head": "rank.nearest",
    "find_collisions": "collisions.search",
    "find_pigeonhole": "collisions.pigeonhole",
    "heads_needed": "rank.harmonics",
    "largest_error": "constructions.adversary",
    "least_length": "floors.bounded",
    "linear": "constructions.relu_nets",
    "many_points_floor": "rank.many_points",
    "max_net": "constructions.relu_nets",
    "one_head_answer": "floors.one_head",
    "one_head_slope": "floors.one_head",
    "phase_diagram": "floors.phase",
    "plane_heads": "rank.rank_one",
    "promised_error": "constructions.density",
    "rank_floor": "rank.harmonics",
    "rank_one_floor": "rank.harmonics",
    "retrieval_of": "constructions.density",
    "roles": "constructions.depth_roles",
    "roles_of_maxima": "constructions.depth_roles",
    "slope_needed": "floors.bounded",
    "staircase_heads": "rank.rank_one",
    "support_dim": "support",
    "wide_size": "constructions.wide_head",
    "zonal_floor": "rank.zonal",
}
"""Where each public name lives. Names are loaded when they are first used: the plugin needs none of them."""

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
