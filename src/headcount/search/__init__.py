"""WHAT to train next: effort where the answer depends on it, and none where it is settled."""

from .levels import DEFAULT_EFFORT, EFFORTS, Effort, effort_of
from .question import Question
from .rounds import Round, rounds
from .run import Asked, ask

__all__ = [
    "DEFAULT_EFFORT",
    "EFFORTS",
    "Asked",
    "Effort",
    "Question",
    "Round",
    "ask",
    "effort_of",
    "rounds",
]
