"""Who is told how a run goes: a progress bar, a live page, a test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..store import Cell


@dataclass(frozen=True)
class Early:
    """What a model of many heads looked like, part-way through its training."""

    heads: int
    length: int
    step: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Functions that are called while a run goes, most of them from worker threads; by default nobody listens.

    Args:
        on_plan: Before training, and before each further round: why, and how many model-steps it adds.
        on_programs: Once data is prepared, and when a program is ready: how many are, and how many this round needs.
        on_steps: After every checkpoint: how many model-steps more are done.
        on_checkpoint: After every checkpoint: cells, the step they are at, and their validation errors.
        on_early: When the early estimate is known.
    """

    on_plan: Callable[[str, int], None] = lambda why, model_steps: None
    on_programs: Callable[[int, int], None] = lambda ready, needed: None
    on_steps: Callable[[int], None] = lambda model_steps: None
    on_checkpoint: Callable[[Sequence[Cell], int, Float[np.ndarray, " cells"]], None] = lambda cells, step, errors: None
    on_early: Callable[[Early], None] = lambda early: None
