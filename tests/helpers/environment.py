"""The environment of the tests and of every process they start, set before JAX is imported."""

import os
import subprocess
import sys
from pathlib import Path

QUICK = "--xla_cpu_use_fusion_emitters=false"
"""Programs that run slower, and compile in half the time."""

# One process per core runs the tests; threads of small linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Most of the time of these tests is compiling. Both workers, all modules and every subprocess share what they compile.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[2] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Whether or not kernels are installed; `tests/backends` has the tests of every back end.
os.environ.setdefault("HEADCOUNT_BACKEND", "reference")
if "XLA_FLAGS" not in os.environ:
    # A jaxlib that does not know the flag ends the process, so it is tried in another one, once for all workers.
    attempt = [sys.executable, "-c", "import jax; jax.devices()"]
    tried = subprocess.run(attempt, env=os.environ | {"XLA_FLAGS": QUICK}, capture_output=True, check=False)
    os.environ["XLA_FLAGS"] = "" if tried.returncode else QUICK
