"""How many attention heads does a task need?

import headcount as hc

measurement = hc.measure("sum-of-maxima", heads=range(1, 7), out="results/maxima")
print(measurement)                   # needs 4 heads [4, 4]
measurement.plot("maxima.svg")
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import HeadcountError

if TYPE_CHECKING:
    from .answer import Answer, ErrorTable
    from .api import measure
    from .engine import run_sweep, sweep
    from .measurement import Measurement, load
    from .models import ClassTokenSpec, EncoderSpec
    from .papers.tasks.ranking import Ranking
    from .pretrained.inspection.inspecting import inspect
    from .store import TrainSpec
    from .tasks import ArrayTask, FunctionTask, ImageTask, Retrieval
    from .tasks.find import find_task
    from .theory.assumptions import check_assumptions

_HOMES = {
    "Answer": "answer",
    "ArrayTask": "tasks",
    "ClassTokenSpec": "models",
    "EncoderSpec": "models",
    "ErrorTable": "answer",
    "FunctionTask": "tasks",
    "ImageTask": "tasks",
    "Measurement": "measurement",
    "Ranking": "papers.tasks.ranking",
    "Retrieval": "tasks",
    "TrainSpec": "store",
    "check_assumptions": "theory.assumptions",
    "find_task": "tasks.find",
    "inspect": "pretrained.inspection.inspecting",
    "load": "measurement",
    "measure": "api",
    "run_sweep": "engine",
    "sweep": "engine",
}
"""Where each public name lives. Names are loaded when they are first used, so that reading results imports no JAX."""

__all__ = [
    "Answer",
    "ArrayTask",
    "ClassTokenSpec",
    "EncoderSpec",
    "ErrorTable",
    "FunctionTask",
    "HeadcountError",
    "ImageTask",
    "Measurement",
    "Ranking",
    "Retrieval",
    "TrainSpec",
    "__version__",
    "check_assumptions",
    "find_task",
    "inspect",
    "load",
    "measure",
    "run_sweep",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
