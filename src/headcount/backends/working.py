"""Do the kernels run on this device? A tiny pooling, compared with the reference."""

from .._draws import named_generator
from ..errors import HeadcountError


def require_working() -> None:
    """Raise `HeadcountError`, or what JAX raises, where the fused kernels fail or give other numbers."""
    import jax
    import numpy as np

    from .pool import pool, reference

    generator = named_generator(0, "trial of the kernels")
    shapes = ((2, 3, 2), (5, 2), (1, 5), (2, 5), (0, 2))
    arguments = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    got, wanted = (jax.jit(lambda *args, by=by: by(*args, masks=False)[0])(*arguments) for by in (pool, reference))
    if not np.allclose(got, wanted, atol=1e-4):
        raise HeadcountError(f"the fused kernels give {np.ravel(got)[0]}, plain JAX {np.ravel(wanted)[0]}.")
