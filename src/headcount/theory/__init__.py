"""Theorems as programs. Knows tasks and models, and nothing of measurement."""

from .bounds import Bound, Condition, Setting, all_bounds
from .certificates import Certificate, certify
from .collisions import Collision, Domain, domain_of, find_collisions
from .density import promised_error, retrieval_of
from .enough_heads import Construction, construct, largest_error
from .fitted import Fitted
from .pigeonhole import Pigeonhole, find_pigeonhole
from .relu_nets import ReluNet, beside, compose, interpolation_net, max_net, min_net
from .ridges import Ridge, RidgeSum, linear
from .uniqueness import Comparison, compare_representations
from .wide_head import WideConstruction, WideHead, construct_wide, wide_size

__all__ = [
    "Bound",
    "Certificate",
    "Collision",
    "Comparison",
    "Condition",
    "Construction",
    "Domain",
    "Fitted",
    "Pigeonhole",
    "ReluNet",
    "Ridge",
    "RidgeSum",
    "Setting",
    "WideConstruction",
    "WideHead",
    "all_bounds",
    "beside",
    "certify",
    "compare_representations",
    "compose",
    "construct",
    "construct_wide",
    "domain_of",
    "find_collisions",
    "find_pigeonhole",
    "interpolation_net",
    "largest_error",
    "linear",
    "max_net",
    "min_net",
    "promised_error",
    "retrieval_of",
    "wide_size",
]
