"""WHAT is to be learned."""

from .arrays import ArrayTask, load_arrays
from .assumptions import AssumptionReport, check_assumptions
from .base import AbstractTask, AnsweredAt, Dataset
from .function import FunctionTask
from .image import ImageTask
from .in_context import InContextRegression
from .kept import CANDIDATES, IMAGES, PAIRS, AnyTask, Form, GradedBy, LabelledTask, Tokenise, graded_by, taken
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
from .ranking import LAYOUTS, Layout, Ranking, ranking
from .retrieval import Retrieval

__all__ = [
    "CANDIDATES",
    "IMAGES",
    "LAYOUTS",
    "PAIRS",
    "PRESETS",
    "AbstractTask",
    "AnsweredAt",
    "AnyTask",
    "ArrayTask",
    "AssumptionReport",
    "BiasedNearestNeighbour",
    "Dataset",
    "FarthestPoint",
    "Form",
    "FunctionTask",
    "GradedBy",
    "ImageTask",
    "InContextRegression",
    "LabelledTask",
    "Layout",
    "NearestNeighbour",
    "Ranking",
    "Retrieval",
    "Tokenise",
    "average",
    "biased_nearest_neighbour",
    "check_assumptions",
    "farthest_point",
    "graded_by",
    "in_context_regression",
    "load_arrays",
    "max_plus_min",
    "nearest_neighbour",
    "preset",
    "preset_options",
    "quadratic_basins",
    "ranking",
    "require_on_sphere",
    "sum_of_maxima",
    "taken",
]
