"""The only hand-off between training and reading. Nothing here imports JAX."""

from .cell import Cell, Content, Outcome, Precision, Record, TrainSpec, json_text
from .database import FILE_NAME
from .experiment import Experiment, Value
from .live import LIVE_FILE, Live, read_live
from .rows import backend_of, backend_words
from .store import Progress, Store

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
    "Store",
    "TrainSpec",
    "Value",
    "backend_of",
    "backend_words",
    "json_text",
    "read_live",
]
