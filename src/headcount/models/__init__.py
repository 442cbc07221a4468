"""WHO learns it."""

from . import folded, textbook
from .arrays import from_arrays, to_arrays
from .size import feed_forward_parameters, forward_flops, textbook_flops, total_parameters
from .spec import POSITIONS, ModelSpec
from .transformer import ClassTokenTransformer, in_raw_units, init, resize_heads

__all__ = [
    "POSITIONS",
    "ClassTokenTransformer",
    "ModelSpec",
    "feed_forward_parameters",
    "folded",
    "forward_flops",
    "from_arrays",
    "in_raw_units",
    "init",
    "resize_heads",
    "textbook",
    "textbook_flops",
    "to_arrays",
    "total_parameters",
]
