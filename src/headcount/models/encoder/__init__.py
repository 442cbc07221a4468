"""The wide encoder: layers of many narrow heads, answered at every token, at a query or per sequence."""

from .model import Encoder
from .spec import EncoderSpec

__all__ = ["Encoder", "EncoderSpec"]
