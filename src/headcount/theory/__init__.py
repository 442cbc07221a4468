"""Theorems as programs. Knows tasks and models, and nothing of measurement."""

from .bounds import Bound, Condition, Setting, all_bounds
from .density import promised_error, retrieval_of
from .relu_nets import ReluNet, beside, compose, interpolation_net, max_net, min_net, ridge_net

__all__ = [
    "Bound",
    "Condition",
    "ReluNet",
    "Setting",
    "all_bounds",
    "beside",
    "compose",
    "interpolation_net",
    "max_net",
    "min_net",
    "promised_error",
    "retrieval_of",
    "ridge_net",
]
