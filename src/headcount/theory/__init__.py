"""The theorems of the two papers as programs. README.md in this folder lists its rooms."""

# ruff: noqa: F401 - the imports are for type checkers

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
    from .constructions.density import promised_error, retrieval_of
    from .constructions.depth import construct_by_content, construct_roles, construct_two_layers, roles, roles_of_maxima
    from .constructions.enough_heads import construct, construct_shared
    from .constructions.parts import Ridge, RidgeSum, linear
    from .constructions.relu_nets import compose, max_net
    from .constructions.wide_head import construct_wide, wide_size
    from .floors.alphabet import AlphabetFloor, alphabet_floor, error_of_orders
    from .floors.bounded import BoundedClass, class_floor, least_length, slope_needed
    from .floors.one_head import OneHead, Phase, counting_slope, one_head_answer, one_head_slope, phase_diagram
    from .floors.thermometer import ThermometerHead, construct_thermometer
    from .floors.trained import AlphabetErrors, alphabet_errors
    from .rank.harmonics import heads_needed, rank_floor, rank_one_floor
    from .rank.more_floors import many_points_floor, zonal_floor
    from .rank.nearest import MajorityVote, exact_head
    from .rank.rank_bounds import RankSetting, all_rank_bounds
    from .rank.rank_one import RankOneHeads, plane_heads, staircase_heads
    from .support import Support, support_dim

_NAMES = {
    "bounds": "Bound Setting all_bounds",
    "collisions.certificates": "Certificate certify",
    "collisions.domain": "Domain domain_of",
    "collisions.pigeonhole": "find_pigeonhole",
    "collisions.search": "Collision find_collisions",
    "collisions.uniqueness": "compare_representations",
    "constructions.adversary": "largest_error",
    "constructions.density": "promised_error retrieval_of",
    "constructions.depth": "construct_by_content construct_roles construct_two_layers roles roles_of_maxima",
    "constructions.enough_heads": "construct construct_shared",
    "constructions.parts": "Ridge RidgeSum linear",
    "constructions.relu_nets": "compose max_net",
    "constructions.wide_head": "construct_wide wide_size",
    "floors.alphabet": "AlphabetFloor alphabet_floor error_of_orders",
    "floors.bounded": "BoundedClass class_floor least_length slope_needed",
    "floors.one_head": "OneHead Phase counting_slope one_head_answer one_head_slope phase_diagram",
    "floors.thermometer": "ThermometerHead construct_thermometer",
    "floors.trained": "AlphabetErrors alphabet_errors",
    "rank.harmonics": "heads_needed rank_floor rank_one_floor",
    "rank.more_floors": "many_points_floor zonal_floor",
    "rank.nearest": "MajorityVote exact_head",
    "rank.rank_bounds": "RankSetting all_rank_bounds",
    "rank.rank_one": "RankOneHeads plane_heads staircase_heads",
    "support": "Support support_dim",
}
"""The public names by the module that holds them. They are loaded on first use: the plugin needs none of them."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
