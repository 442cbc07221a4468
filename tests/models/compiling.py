"""How the tests of models compile."""

import functools

import jax

compiled = functools.partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": False})
"""`jax.jit` for programs that run a few times on a few numbers: compiled in a third of the time, and slower."""
