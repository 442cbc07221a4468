"""One attention layer of a model in torch: its weights as arrays, read and written in place."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from .architectures import Layout
from .projections import Projection
from .weights import HeadWeights, Rotary


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer of a model.

    Attributes:
        index: Its place among the model's attention layers, from 0.
        name: Path of the module that computes the attention, such as "model.layers.3.self_attn".
        block: Path of the block around it, such as "model.layers.3".
        rotary: The rotation of queries and keys by position; None where there is none.
        normed: Queries and keys are normalised after the projection.
        output_biased: The class stores a bias of the output projection.
        holder: Path of the module that `layout` is relative to.
    """

    index: int
    name: str
    block: str
    heads: int
    key_heads: int
    head_dim: int
    width: int
    rotary: Rotary | None
    normed: bool
    output_biased: bool
    holder: str
    layout: Layout

    def read(self, model: nn.Module) -> HeadWeights:
        """The layer's weights as they are now, exactly, in float64."""
        weights, biases = self._inputs(model)
        output = Projection(self.output_module(model))
        groups = (self.heads, self.key_heads, self.key_heads)
        query, key, value = (
            rows.reshape(group, -1, rows.shape[-1]) for rows, group in zip(weights, groups, strict=True)
        )
        query_bias, key_bias, value_bias = (
            None if rows is None else rows.reshape(group, -1) for rows, group in zip(biases, groups, strict=True)
        )
        matrix = output.matrix()
        return HeadWeights(
            query=query,
            key=key,
            value=value,
            output=matrix.reshape(len(matrix), self.heads, -1),
            query_bias=query_bias,
            key_bias=key_bias,
            value_bias=value_bias,
            output_bias=output.bias(),
        )

    def write(self, model: nn.Module, weights: HeadWeights) -> None:
        """Put these weights in their place; errors are those of `values`."""
        with torch.no_grad():
            for parameter, values in self.values(model, weights):
                parameter.copy_(values)

    def values(self, model: nn.Module, weights: HeadWeights) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Every stored parameter, and what it is with these weights, rounded to the model's precision.

        Raises InputError where a shape is another, or a bias is not zero and the class stores none. A bias that is None
        is zero.
        """
        modules = [Projection(module) for module in self._modules(model)]
        sizes = self._rows(modules)
        arrays = (weights.query, weights.key, weights.value)
        biases = (weights.query_bias, weights.key_bias, weights.value_bias)
        rows = [array.reshape(-1, array.shape[-1]) for array in arrays]
        shifts = [
            np.zeros(size) if bias is None else bias.reshape(-1) for bias, size in zip(biases, sizes, strict=True)
        ]
        if self.layout.packed:
            back = np.argsort(self._order(modules))
            rows, shifts = [np.concatenate(rows)[back]], [np.concatenate(shifts)[back]]
        rows.append(weights.output.reshape(len(weights.output), -1))
        shifts.append(np.zeros(len(weights.output)) if weights.output_bias is None else weights.output_bias)
        for module, matrix, bias in zip(modules, rows, shifts, strict=True):
            module.check(matrix, bias, self.name)
        return [
            pair
            for module, matrix, bias in zip(modules, rows, shifts, strict=True)
            for pair in module.values(matrix, bias)
        ]

    def input_module(self, model: nn.Module) -> nn.Module:
        """The first projection: its input is the attention's input, of `width` numbers per token."""
        return self._module(model, self.layout.inputs[0])

    def output_module(self, model: nn.Module) -> nn.Module:
        """The output projection: its input is the concatenation of all heads' outputs."""
        return self._module(model, self.layout.output)

    def parameters(self, model: nn.Module) -> Iterator[nn.Parameter]:
        """The stored weights and biases of all projections."""
        for module in self._modules(model):
            yield from module.parameters(recurse=False)

    def _module(self, model: nn.Module, path: str) -> nn.Module:
        return model.get_submodule(f"{self.holder}.{path}" if self.holder else path)

    def _modules(self, model: nn.Module) -> list[nn.Module]:
        return [self._module(model, path) for path in self.layout.paths]

    def _rows(self, modules: list[Projection]) -> tuple[int, int, int]:
        """How many rows queries, keys and values have."""
        query = self.heads * self.head_dim
        key = self.key_heads * self.head_dim
        if self.layout.packed:
            return query, key, modules[0].features - query - key
        return query, key, modules[2].features

    def _order(self, modules: list[Projection]) -> np.ndarray:
        """The rows of a packed projection in the order all queries, all keys, all values."""
        rows = np.arange(modules[0].features)
        return rows.reshape(self.heads, 3, -1).swapaxes(0, 1).reshape(-1) if self.layout.by_head else rows

    def _inputs(self, model: nn.Module) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        modules = [Projection(module) for module in self._modules(model)[:-1]]
        matrices = [module.matrix() for module in modules]
        biases = [module.bias() for module in modules]
        if not self.layout.packed:
            return matrices, biases
        places, order = np.cumsum(self._rows(modules))[:2], self._order(modules)
        bias = biases[0]
        shifts: list[np.ndarray | None] = [None] * 3 if bias is None else [*np.split(bias[order], places)]
        return np.split(matrices[0][order], places), shifts
