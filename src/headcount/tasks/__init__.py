"""WHAT is to be learned."""

from .alphabet import AlphabetMaxima, alphabet_values
from .arrays import ArrayTask
from .base import AbstractTask, Examples, GeneratedTask, Split, Tokenise
from .function import FunctionTask
from .image import ImageTask
from .in_context import InContextRegression
from .labelled import examples_at
from .nearest import BiasedNearestNeighbour, FarthestPoint, NearestNeighbour, require_on_sphere
from .objective import AbstractObjective, Balanced, Choice, Classification, Regression
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
    value_at_maximum,
)
from .retrieval import Retrieval

__all__ = [
    "PRESETS",
    "AbstractObjective",
    "AbstractTask",
    "AlphabetMaxima",
    "ArrayTask",
    "Balanced",
    "BiasedNearestNeighbour",
    "Choice",
    "Classification",
    "Examples",
    "FarthestPoint",
    "FunctionTask",
    "GeneratedTask",
    "ImageTask",
    "InContextRegression",
    "NearestNeighbour",
    "Regression",
    "Retrieval",
    "Split",
    "Tokenise",
    "alphabet_values",
    "average",
    "biased_nearest_neighbour",
    "examples_at",
    "farthest_point",
    "in_context_regression",
    "max_plus_min",
    "nearest_neighbour",
    "preset",
    "preset_options",
    "quadratic_basins",
    "require_on_sphere",
    "sum_of_maxima",
    "value_at_maximum",
]
