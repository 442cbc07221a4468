"""HOW MANY are trained at once."""

from .hardware import Hardware, hardware
from .plan import Plan, plan_sweep
from .run import RunSummary, run_sweep, versions
from .sweep import Sweep, default_model, default_train, grid, joined

__all__ = [
    "Hardware",
    "Plan",
    "RunSummary",
    "Sweep",
    "default_model",
    "default_train",
    "grid",
    "hardware",
    "joined",
    "plan_sweep",
    "run_sweep",
    "versions",
]
