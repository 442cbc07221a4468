"""WHAT is to be learned."""

from .arrays import ArrayTask, load_arrays
from .assumptions import AssumptionReport, check_assumptions
from .base import AbstractTask, AnsweredAt, Dataset
from .function import FunctionTask
from .in_context import InContextRegression
from .nearest import BiasedNearestNeighbour, FarthestPoint, NearestNeighbour, require_on_sphere
from .presets import (
    PRESETS,
    average,
    biased_nearest_neighbour,
    farthest_point,
    in_context_regression,
    max_plus_min,
    nearest_neighbour,
    preset,
    preset_options,
    quadratic_basins,
    sum_of_maxima,
)
from .retrieval import Retrieval

__all__ = [
    "PRESETS",
    "AbstractTask",
    "AnsweredAt",
    "ArrayTask",
    "AssumptionReport",
    "BiasedNearestNeighbour",
    "Dataset",
    "FarthestPoint",
    "FunctionTask",
    "InContextRegression",
    "NearestNeighbour",
    "Retrieval",
    "average",
    "biased_nearest_neighbour",
    "check_assumptions",
    "farthest_point",
    "in_context_regression",
    "load_arrays",
    "max_plus_min",
    "nearest_neighbour",
    "preset",
    "preset_options",
    "quadratic_basins",
    "require_on_sphere",
    "sum_of_maxima",
]
