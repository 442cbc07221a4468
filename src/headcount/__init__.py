"""How many attention heads does a task need?

import headcount as hc

task = hc.sum_of_maxima(intrinsic_dim=3, dim=4)
print(hc.measure(task, heads=range(1, 6), lengths=[8, 16, 32], out="results/three"))
"""

from ._errors import HeadcountError
from ._version import __version__
from .analysis import Answer, Bottleneck, answer
from .engine import grid, run_sweep
from .measure import Measurement, measure
from .models import ClassTokenSpec, EncoderSpec
from .store import Store, TrainSpec
from .tasks import (
    ArrayTask,
    FarthestPoint,
    FunctionTask,
    ImageTask,
    InContextRegression,
    NearestNeighbour,
    Ranking,
    Retrieval,
    average,
    check_assumptions,
    load_arrays,
    max_plus_min,
    quadratic_basins,
    sum_of_maxima,
)
from .tasks.find import find_task

__all__ = [
    "Answer",
    "ArrayTask",
    "Bottleneck",
    "ClassTokenSpec",
    "EncoderSpec",
    "FarthestPoint",
    "FunctionTask",
    "HeadcountError",
    "ImageTask",
    "InContextRegression",
    "Measurement",
    "NearestNeighbour",
    "Ranking",
    "Retrieval",
    "Store",
    "TrainSpec",
    "__version__",
    "answer",
    "average",
    "check_assumptions",
    "find_task",
    "grid",
    "load_arrays",
    "max_plus_min",
    "measure",
    "quadratic_basins",
    "run_sweep",
    "sum_of_maxima",
]
