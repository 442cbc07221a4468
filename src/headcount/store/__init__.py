"""The only hand-off between training and reading. Nothing here imports JAX."""

from .cell import Cell, Outcome, Precision, Record, TrainSpec
from .experiment import Experiment, Value
from .live import LIVE_FILE, Live, read_live
from .table import FILE_NAME, Progress, Store

__all__ = [
    "FILE_NAME",
    "LIVE_FILE",
    "Cell",
    "Experiment",
    "Live",
    "Outcome",
    "Precision",
    "Progress",
    "Record",
    "Store",
    "TrainSpec",
    "Value",
    "read_live",
]
