"""Reads records only."""

from .answer import Answer, answer, answer_from_table
from .comparison import Claim, PublishedTable, Verdict
from .fits import PowerLaw, Surface, power_law, surface_fit
from .summary import ErrorTable, Experiment, Summary, error_table, experiments, summaries

__all__ = [
    "Answer",
    "Claim",
    "ErrorTable",
    "Experiment",
    "PowerLaw",
    "PublishedTable",
    "Summary",
    "Surface",
    "Verdict",
    "answer",
    "answer_from_table",
    "error_table",
    "experiments",
    "power_law",
    "summaries",
    "surface_fit",
]
