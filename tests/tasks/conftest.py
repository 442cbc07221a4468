"""Tests of tasks compile quickly, and share the operations that run outside of programs."""

from ..models.compiling import jit_quickly  # noqa: F401
from ..models.conftest import forget_programs  # noqa: F401
