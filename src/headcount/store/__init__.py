"""The only hand-off between training and reading. Nothing here imports JAX."""

from .backends import backend_of, backend_words
from .cell import Cell, Content, Outcome, Precision, Record, TrainSpec
from .experiment import Experiment, Value
from .live import LIVE_FILE, Live, read_live
from .records import Records
from .table import FILE_NAME, Progress, Store

__all__ = [
    "FILE_NAME",
    "LIVE_FILE",
    "Cell",
    "Content",
    "Experiment",
    "Live",
    "Outcome",
    "Precision",
    "Progress",
    "Record",
    "Records",
    "Store",
    "TrainSpec",
    "Value",
    "backend_of",
    "backend_words",
    "read_live",
]
