"""The first paper's formulas as functions: each returns a value, the claim it makes, its source and its conditions."""

from .bound import Bound, Condition, Setting
from .lower import depth_conjecture, exponent, steep_net_size, unique_dim
from .table import all_bounds
from .upper import component_accuracy, head_error, max_net_widths, selector_error, sharpness_needed

__all__ = [
    "Bound",
    "Condition",
    "Setting",
    "all_bounds",
    "component_accuracy",
    "depth_conjecture",
    "exponent",
    "head_error",
    "max_net_widths",
    "selector_error",
    "sharpness_needed",
    "steep_net_size",
    "unique_dim",
]
