"""The only hand-off between training and reading."""

from .cell import Cell, Outcome, Record, TrainSpec
from .table import Store

__all__ = ["Cell", "Outcome", "Record", "Store", "TrainSpec"]
