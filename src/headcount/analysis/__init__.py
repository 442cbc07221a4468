"""Reads records only."""

from .answer import Answer, answer, answer_from_table
from .bottleneck import Bottleneck, RankTable, bottleneck, rank_table
from .comparison import Claim, PublishedTable, Verdict
from .fits import PowerLaw, Surface, power_law, surface_fit
from .summary import ErrorTable, Experiment, Summary, error_table, experiments, summaries

__all__ = [
    "Answer",
    "Bottleneck",
    "Claim",
    "ErrorTable",
    "Experiment",
    "PowerLaw",
    "PublishedTable",
    "RankTable",
    "Summary",
    "Surface",
    "Verdict",
    "answer",
    "answer_from_table",
    "bottleneck",
    "error_table",
    "experiments",
    "power_law",
    "rank_table",
    "summaries",
    "surface_fit",
]
