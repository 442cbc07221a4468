"""WHAT is to be learned."""

from .arrays import ArrayTask, load_arrays
from .assumptions import AssumptionReport, check_assumptions
from .base import AbstractTask, Dataset
from .function import FunctionTask
from .presets import PRESETS, average, max_plus_min, preset, preset_options, quadratic_basins, sum_of_maxima
from .retrieval import Retrieval

__all__ = [
    "PRESETS",
    "AbstractTask",
    "ArrayTask",
    "AssumptionReport",
    "Dataset",
    "FunctionTask",
    "Retrieval",
    "average",
    "check_assumptions",
    "load_arrays",
    "max_plus_min",
    "preset",
    "preset_options",
    "quadratic_basins",
    "sum_of_maxima",
]
