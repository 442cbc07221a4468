"""One projection of a model in torch, as a matrix that is applied from the left: W x + b."""

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from ...errors import require

PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def is_projection(module: nn.Module | None) -> bool:
    """Whether the module is a matrix of plain numbers: torch's Linear, or the Conv1D of GPT-2, not quantised."""
    linear = isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
    return linear and getattr(module, "weight", torch.empty(0)).dtype in PRECISIONS


class Projection:
    """A linear module; Conv1D stores its matrix transposed."""

    def __init__(self, module: nn.Module):
        self.weight: torch.Tensor = module.get_parameter("weight")
        self.stored_bias: torch.Tensor | None = dict(module.named_parameters(recurse=False)).get("bias")
        self.transposed = not isinstance(module, nn.Linear)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers out, numbers in."""
        rows, columns = self.weight.shape
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def features(self) -> int:
        """Numbers out."""
        return self.shape[0]

    def matrix(self) -> Float[np.ndarray, "features width"]:
        values = _array(self.weight)
        return np.ascontiguousarray(values.T) if self.transposed else values

    def bias(self) -> Float[np.ndarray, " features"] | None:
        return None if self.stored_bias is None else _array(self.stored_bias)

    def stored_values(
        self, matrix: np.ndarray, bias: np.ndarray, layer: str
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What is stored, and what to store in its place: rounded to its precision, on its device.

        Raises InputError where these cannot be stored here.
        """
        require(
            matrix.shape == self.shape,
            f"{layer} stores a projection of shape {self.shape}, got {matrix.shape}; weights written must keep it.",
        )
        require(
            self.stored_bias is not None or not bias.any(),
            f"{layer} stores no bias for this projection, got one that is not zero.",
        )
        stored = [(self.weight, matrix.T if self.transposed else matrix)]
        if self.stored_bias is not None:
            stored.append((self.stored_bias, bias))
        return [
            (parameter, torch.from_numpy(np.ascontiguousarray(array)).to(parameter.device, parameter.dtype))
            for parameter, array in stored
        ]


def _array(parameter: torch.Tensor) -> np.ndarray:
    require(not parameter.is_meta, "the model has no weights yet (device meta); load them first.")
    return parameter.detach().to("cpu", torch.float64).numpy().copy()
