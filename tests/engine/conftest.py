"""Workers share what they compile: most of the time of these tests is compiling."""

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory, worker_id):
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "cache" / "headcount" / "compiled"
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in zip(names, (str(shared), 0.1), strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
