"""One operation, several back ends: plain JAX (`reference`), and kernels for CPUs and GPUs (`fused`)."""

from .choose import VARIABLE, chosen, described, kernels_here, say_once, wanted
from .library import Kernels, kernels

__all__ = [
    "VARIABLE",
    "Kernels",
    "chosen",
    "described",
    "kernels",
    "kernels_here",
    "say_once",
    "wanted",
]
