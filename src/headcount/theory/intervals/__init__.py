"""Interval arithmetic with outward rounding, and enclosures of JAX functions."""

from .arithmetic import Box, EnclosureError, add, ball, point, product, subtract
from .enclosure import enclose

__all__ = ["Box", "EnclosureError", "add", "ball", "enclose", "point", "product", "subtract"]
