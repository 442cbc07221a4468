"""The only hand-off between training and reading."""

from .cell import Cell, Outcome, Precision, Record, TrainSpec
from .table import FILE_NAME, Store

__all__ = ["FILE_NAME", "Cell", "Outcome", "Precision", "Record", "Store", "TrainSpec"]
