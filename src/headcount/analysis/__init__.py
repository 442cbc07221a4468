"""Reads records only."""

from .answer import Answer, answer, answer_from_table
from .summary import ErrorTable, Experiment, Summary, error_table, experiments, summaries

__all__ = [
    "Answer",
    "ErrorTable",
    "Experiment",
    "Summary",
    "answer",
    "answer_from_table",
    "error_table",
    "experiments",
    "summaries",
]
