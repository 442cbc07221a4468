"""Tests of tasks share the operations that run outside of programs."""

from ..models.conftest import forget_programs  # noqa: F401
