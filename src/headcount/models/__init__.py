"""WHO learns it."""

from . import folded, textbook
from .arrays import from_arrays, to_arrays
from .encoder import Encoder, init_encoder
from .encoder_spec import EncoderSpec, Norm
from .family import (
    AnyModel,
    AnySpec,
    activations,
    flops,
    init_model,
    parameters,
    predict,
    reads_raw_units,
    spec_from_dict,
    with_heads,
)
from .size import feed_forward_parameters, forward_flops, textbook_flops, total_parameters
from .spec import POSITIONS, ClassTokenSpec, Positions
from .transformer import ClassTokenTransformer, in_raw_units, init, resize_heads

__all__ = [
    "POSITIONS",
    "AnyModel",
    "AnySpec",
    "ClassTokenSpec",
    "ClassTokenTransformer",
    "Encoder",
    "EncoderSpec",
    "Norm",
    "Positions",
    "activations",
    "feed_forward_parameters",
    "flops",
    "folded",
    "forward_flops",
    "from_arrays",
    "in_raw_units",
    "init",
    "init_encoder",
    "init_model",
    "parameters",
    "predict",
    "reads_raw_units",
    "resize_heads",
    "spec_from_dict",
    "textbook",
    "textbook_flops",
    "to_arrays",
    "total_parameters",
    "with_heads",
]
