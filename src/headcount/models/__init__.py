"""The models that learn a task: what every kind promises, and the kinds there are.

A new kind is a spec class and a model class, made known by `register`; see `tests/models/mean_pool.py` for a small one.
"""

from .base import KINDS, AbstractModel, AbstractSpec, from_arrays, register, spec_from_dict
from .class_token import ClassTokenSpec, ClassTokenTransformer, folded
from .controls import CONTROLS
from .encoder import Encoder, EncoderSpec

for spec_class in (ClassTokenSpec, EncoderSpec, *CONTROLS):
    register(spec_class)

__all__ = [
    "KINDS",
    "AbstractModel",
    "AbstractSpec",
    "ClassTokenSpec",
    "ClassTokenTransformer",
    "Encoder",
    "EncoderSpec",
    "folded",
    "from_arrays",
    "register",
    "spec_from_dict",
]
