"""The arithmetic floor: how long a training step would take if the machine did nothing but its multiplications.

The numerator is `spec.flops` of the folded forward pass, three times (a backward pass is two of them), for a batch. The
denominator is what this machine reaches in a large float32 matrix product, measured here and now: on a CPU in one
thread, on a GPU without TF32. Softmax, Adam, reading and writing are not counted. A yardstick,
not a bound: a kernel may be faster than the matrix product.
"""

import torch
from machine import clock

SIZES = {"cpu": 1536, "cuda": 8192}
"""Rows of the square matrices: large enough that the product is bound by arithmetic."""
REPEATS = 5


def peak_flops(device: str) -> float:
    """Float32 operations per second in a large matrix product, the best of some."""
    torch.set_float32_matmul_precision("highest")
    size = SIZES[device]
    left, right = (torch.randn(size, size, device=device) for _ in range(2))
    torch.mm(left, right)
    best = min(_seconds(left, right, device) for _ in range(REPEATS))
    return 2 * size**3 / best


def _seconds(left: torch.Tensor, right: torch.Tensor, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    began = clock()
    torch.mm(left, right)
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - began
