"""Interval arithmetic with outward rounding, and enclosures of JAX functions."""

from .arithmetic import EnclosureError, Interval, add, ball, point, product, subtract
from .enclosure import enclose

__all__ = ["EnclosureError", "Interval", "add", "ball", "enclose", "point", "product", "subtract"]
