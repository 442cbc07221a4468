"""One projection of a model in torch, as a matrix that is applied from the left: W x + b."""

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from .._errors import require


def is_projection(module: nn.Module | None) -> bool:
    """Whether the module is a plain linear map: torch's Linear, or the Conv1D of GPT-2."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


class Projection:
    """A linear module; Conv1D stores its matrix transposed."""

    def __init__(self, module: nn.Module):
        self.module = module
        self.transposed = not isinstance(module, nn.Linear)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers out, numbers in."""
        rows, columns = self.module.weight.shape
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def features(self) -> int:
        """Numbers out."""
        return self.shape[0]

    def matrix(self) -> Float[np.ndarray, "features width"]:
        values = _array(self.module.weight)
        return np.ascontiguousarray(values.T) if self.transposed else values

    def bias(self) -> Float[np.ndarray, " features"] | None:
        return None if self.module.bias is None else _array(self.module.bias)

    def check(self, matrix: np.ndarray, bias: np.ndarray, layer: str) -> None:
        """Raise InputError where these cannot be stored here."""
        require(
            matrix.shape == self.shape,
            f"{layer} stores a projection of shape {self.shape}, got {matrix.shape}; weights written must keep it.",
        )
        require(
            self.module.bias is not None or not bias.any(),
            f"{layer} stores no bias for this projection, got one that is not zero.",
        )

    @torch.no_grad()
    def set(self, matrix: np.ndarray, bias: np.ndarray) -> None:
        """Write in place, rounded to the module's precision."""
        values = matrix.T if self.transposed else matrix
        self.module.weight.copy_(torch.from_numpy(np.ascontiguousarray(values)))
        if self.module.bias is not None:
            self.module.bias.copy_(torch.from_numpy(np.ascontiguousarray(bias)))


def _array(parameter: torch.Tensor) -> np.ndarray:
    return parameter.detach().to("cpu", torch.float64).numpy().copy()
