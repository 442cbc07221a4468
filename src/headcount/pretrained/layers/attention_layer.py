"""One attention layer of a model in torch: its weights as arrays, read and written in place."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from ...errors import require
from .architectures import MULTIHEAD, Layout
from .weights import HeadWeights, Rotary

PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def is_projection(module: nn.Module | None) -> bool:
    """Whether the module is a matrix of plain numbers: torch's Linear, or the Conv1D of GPT-2, not quantised."""
    linear = isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
    return linear and getattr(module, "weight", torch.empty(0)).dtype in PRECISIONS


class Projection:
    """A linear module as a matrix that is applied from the left, W x + b; Conv1D stores it transposed.

    `prefix`: of the parameters' names, where a larger module has them as its own.
    """

    def __init__(self, module: nn.Module, prefix: str = ""):
        self.weight: torch.Tensor = module.get_parameter(f"{prefix}weight")
        self.stored_bias: torch.Tensor | None = dict(module.named_parameters(recurse=False)).get(f"{prefix}bias")
        self.transposed = type(module).__name__ == "Conv1D"

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


def projection_at(holder: nn.Module, path: str) -> Projection:
    """The projection at this path below the module; torch's own attention holds its packed one itself."""
    if isinstance(holder, nn.MultiheadAttention) and path == MULTIHEAD.packed:
        return Projection(holder, f"{path}_")
    return Projection(holder.get_submodule(path))


def _array(parameter: torch.Tensor) -> np.ndarray:
    require(not parameter.is_meta, "the model has no weights yet (device meta); load them first.")
    return parameter.detach().to("cpu", torch.float64).numpy().copy()


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer of a model.

    `name` is the path of the module that computes the attention, such as "model.layers.3.self_attn", `block` that of
    the block around it, such as "model.layers.3", `holder` that of the module that `layout` is relative to. `normed`:
    queries and keys are normalised after the projection. `order`: the rows of the projections, one after another, in
    the order queries, keys, values; None where that is how they are.
    """

    index: int
    name: str
    block: str
    heads: int
    key_heads: int
    head_dim: int
    order: tuple[int, ...] | None
    width: int
    rotary: Rotary | None
    normed: bool
    holder: str
    layout: Layout

    def read_weights(self, model: nn.Module) -> HeadWeights:
        """The layer's weights as they are now, exactly, in float64."""
        *inputs, output = self._projections(model)
        matrices = [projection.matrix() for projection in inputs]
        biases = [projection.bias() for projection in inputs]
        if self.layout.packed:
            order, ends = self._packed_rows(inputs[0].features)
            matrices = np.split(matrices[0][order], ends)
            biases = [None] * 3 if biases[0] is None else np.split(biases[0][order], ends)
        groups = (self.heads, self.key_heads, self.key_heads)
        arrays = {"output": output.matrix().reshape(output.features, self.heads, -1), "output_bias": output.bias()}
        for name, group, matrix, bias in zip(("query", "key", "value"), groups, matrices, biases, strict=True):
            arrays[name] = matrix.reshape(group, -1, matrix.shape[-1])
            arrays[f"{name}_bias"] = None if bias is None else bias.reshape(group, -1)
        return HeadWeights(**arrays)

    def write_weights(self, model: nn.Module, weights: HeadWeights) -> None:
        """Put these weights in their place; errors are those of `stored_values`."""
        with torch.no_grad():
            for parameter, values in self.stored_values(model, weights):
                parameter.copy_(values)

    def stored_values(self, model: nn.Module, weights: HeadWeights) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Every stored parameter, and what it is with these weights, rounded to the model's precision.

        Raises InputError where a shape is another, or a bias is not zero and the class stores none. A bias that is None
        is zero.
        """
        projections = self._projections(model)
        rows, shifts = [], []
        for name in ("query", "key", "value"):
            array, bias = getattr(weights, name), getattr(weights, f"{name}_bias")
            rows.append(array.reshape(-1, array.shape[-1]))
            shifts.append(np.zeros(len(rows[-1])) if bias is None else bias.reshape(-1))
        if self.layout.packed:
            back = np.argsort(self._packed_rows(projections[0].features)[0])
            rows, shifts = [np.concatenate(rows)[back]], [np.concatenate(shifts)[back]]
        rows.append(weights.output.reshape(len(weights.output), -1))
        shifts.append(np.zeros(len(weights.output)) if weights.output_bias is None else weights.output_bias)
        return [
            pair
            for projection, matrix, bias in zip(projections, rows, shifts, strict=True)
            for pair in projection.stored_values(matrix, bias, self.name)
        ]

    def input_module(self, model: nn.Module) -> nn.Module:
        """The first projection: its input is the attention's input, of `width` numbers per token.

        torch's own attention has such a module once it is opened, as that of every loaded model is.
        """
        return model.get_submodule(self.holder).get_submodule(self.layout.inputs[0])

    def output_module(self, model: nn.Module) -> nn.Module:
        """The output projection: its input is the concatenation of all heads' outputs."""
        return model.get_submodule(self.holder).get_submodule(self.layout.output)

    def stored_parameters(self, model: nn.Module) -> Iterator[nn.Parameter]:
        """The stored weights and biases of all projections."""
        for projection in self._projections(model):
            yield from (each for each in (projection.weight, projection.stored_bias) if isinstance(each, nn.Parameter))

    def _projections(self, model: nn.Module) -> list[Projection]:
        holder = model.get_submodule(self.holder)
        return [projection_at(holder, path) for path in self.layout.paths]

    def _packed_rows(self, features: int) -> tuple[np.ndarray, tuple[int, int]]:
        """The rows of a packed projection in the order queries, keys, values, and where the last two begin."""
        order, query = np.arange(features), self.heads * self.head_dim
        order = order if self.order is None else order[list(self.order)]
        return order, (query, query + self.key_heads * self.head_dim)
