"""Models and tasks with explicit weights, each with a bound on its error."""

from .adversary import largest_error
from .density import promised_error, retrieval_of
from .enough_heads import Construction, construct
from .fitted import Fitted
from .relu_nets import ReluNet, beside, compose, interpolation_net, max_net, min_net
from .ridges import Ridge, RidgeSum, linear
from .wide_head import WideConstruction, WideHead, construct_wide, wide_size

__all__ = [
    "Construction",
    "Fitted",
    "ReluNet",
    "Ridge",
    "RidgeSum",
    "WideConstruction",
    "WideHead",
    "beside",
    "compose",
    "construct",
    "construct_wide",
    "interpolation_net",
    "largest_error",
    "linear",
    "max_net",
    "min_net",
    "promised_error",
    "retrieval_of",
    "wide_size",
]
