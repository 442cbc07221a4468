"""The second paper: heads of low rank on the nearest of several points."""

from .harmonics import first_degree_error, rank_one_floor
from .many_points import many_points_floor
from .nearest import MajorityVote, exact_head, expected_error, farthest_head, soft_error
from .rank_one import random_heads
from .zonal import zonal_floor

__all__ = [
    "MajorityVote",
    "exact_head",
    "expected_error",
    "farthest_head",
    "first_degree_error",
    "many_points_floor",
    "random_heads",
    "rank_one_floor",
    "soft_error",
    "zonal_floor",
]
