"""The class-token transformer: one answer per sequence, read at a learned query."""

from ..layers import Linear
from . import folded
from .model import Attention, ClassTokenTransformer
from .spec import ClassTokenSpec

__all__ = ["Attention", "ClassTokenSpec", "ClassTokenTransformer", "Linear", "folded"]
