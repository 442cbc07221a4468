"""Theorems as programs. Knows tasks and models, and nothing of measurement."""

from .bounds import Bound, Condition, Setting, all_bounds

__all__ = ["Bound", "Condition", "Setting", "all_bounds"]
