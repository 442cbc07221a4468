"""The second paper: heads of low rank on the nearest of several points."""

# ruff: noqa: F401 - names for use outside

from .harmonics import first_degree_error, rank_one_floor
from .more_floors import many_points_floor, zonal_floor
from .nearest import MajorityVote, exact_head, expected_error, farthest_head, soft_error
from .rank_one import random_heads
