"""HOW MANY are trained at once."""

from .buckets import spec_of
from .executors import Executor, Threads, check_where, executor_of
from .hardware import Hardware, hardware
from .plan import TrainingPlan, plan_sweep
from .records import versions
from .run import RunSummary, run_sweep
from .sweep import HEADS_QUESTION, MAP_QUESTION, RANK_QUESTION, Sweep, joined, sweep

__all__ = [
    "HEADS_QUESTION",
    "MAP_QUESTION",
    "RANK_QUESTION",
    "Executor",
    "Hardware",
    "RunSummary",
    "Sweep",
    "Threads",
    "TrainingPlan",
    "check_where",
    "executor_of",
    "hardware",
    "joined",
    "plan_sweep",
    "run_sweep",
    "spec_of",
    "sweep",
    "versions",
]
