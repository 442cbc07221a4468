"""Adaptive search: decides which cells to train next."""

from .levels import DEFAULT_EFFORT, EFFORTS, SearchEffort, effort_of
from .question import Question
from .rounds import Round, rounds
from .run import ask

__all__ = [
    "DEFAULT_EFFORT",
    "EFFORTS",
    "Question",
    "Round",
    "SearchEffort",
    "ask",
    "effort_of",
    "rounds",
]
