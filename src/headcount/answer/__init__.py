"""Reads experiments and their records; trains nothing."""

from .answer import Answer, Interval, answer
from .claim import ClaimResult, Verdict
from .fits import LearningCurve, PowerLaw, Surface, learning_curve, power_law, surface_fit
from .metric import ERROR_RATE, METRICS, NMSE, Metric, metric_of
from .table import ErrorTable, error_table
from .words import count_of_heads, size_of

__all__ = [
    "ERROR_RATE",
    "METRICS",
    "NMSE",
    "Answer",
    "ClaimResult",
    "ErrorTable",
    "Interval",
    "LearningCurve",
    "Metric",
    "PowerLaw",
    "Surface",
    "Verdict",
    "answer",
    "count_of_heads",
    "error_table",
    "learning_curve",
    "metric_of",
    "power_law",
    "size_of",
    "surface_fit",
]
