"""The class-token transformer: one answer per sequence, read at a learned query."""

from . import folded, textbook
from .model import Attention, ClassTokenTransformer, Linear
from .spec import ClassTokenSpec

__all__ = ["Attention", "ClassTokenSpec", "ClassTokenTransformer", "Linear", "folded", "textbook"]
