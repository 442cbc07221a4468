"""One operation, several back ends: plain JAX (`reference`), and kernels for CPUs and GPUs (`fused`)."""

from .choose import VARIABLE, backend_name, choose_backend, kernels_here, requested_backend, say_once
from .library import Kernels, kernels_for

__all__ = [
    "VARIABLE",
    "Kernels",
    "backend_name",
    "choose_backend",
    "kernels_for",
    "kernels_here",
    "requested_backend",
    "say_once",
]
