"""The second paper: heads of low rank on the nearest of several points."""

from .floors import heads_needed, rank_floor, rank_one_floor
from .harmonics import first_degree_error
from .nearest import AttentionHead, MajorityVote, exact_head, expected_error, farthest_head, soft_error
from .rank_bounds import RankSetting, all_rank_bounds
from .rank_one import RankOneHeads, plane_heads, random_heads, staircase_heads

__all__ = [
    "AttentionHead",
    "MajorityVote",
    "RankOneHeads",
    "RankSetting",
    "all_rank_bounds",
    "exact_head",
    "expected_error",
    "farthest_head",
    "first_degree_error",
    "heads_needed",
    "plane_heads",
    "random_heads",
    "rank_floor",
    "rank_one_floor",
    "soft_error",
    "staircase_heads",
]
