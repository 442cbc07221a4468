"""One operation, several back ends: plain JAX (`reference`), and kernels for CPUs and GPUs (`fused`)."""

from .choose import chosen, described
from .library import Kernels, Library, kernels

__all__ = ["Kernels", "Library", "chosen", "described", "kernels"]
