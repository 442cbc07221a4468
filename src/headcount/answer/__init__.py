"""Reads experiments and their records; trains nothing."""

from .answer import Answer, Interval, answer
from .claim import ClaimResult, Verdict
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
    "Metric",
    "Verdict",
    "answer",
    "count_of_heads",
    "error_table",
    "metric_of",
    "size_of",
]
