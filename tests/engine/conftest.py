"""Tests of the engine compile quickly."""

from ..models.compiling import jit_quickly  # noqa: F401
