"""The only hand-off between training and reading. Nothing here imports JAX."""

from .cell import Cell, Outcome, Precision, Record, TrainSpec
from .experiment import Experiment, Value
from .table import FILE_NAME, Progress, Store

__all__ = [
    "FILE_NAME",
    "Cell",
    "Experiment",
    "Outcome",
    "Precision",
    "Progress",
    "Record",
    "Store",
    "TrainSpec",
    "Value",
]
