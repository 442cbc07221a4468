"""The controls in PyTorch."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..class_token.model import Linear
from ..torch_export import read_batch
from .base import AbstractControl
from .convolution import Convolution
from .pooling import Pooling
from .recurrent import Recurrent


class ControlModule(nn.Module):
    """What the controls share: how tokens enter, and the readout net. Weights are to be loaded."""

    def __init__(self, model: AbstractControl):
        super().__init__()
        self.spec = model.spec
        self.token_in = _linear(model.token_in)
        self.readout_in, self.readout_out = _linear(model.readout_in), _linear(model.readout_out)
        self.position_table = None
        if model.position_table is not None:
            self.position_table = nn.Parameter(torch.empty(model.position_table.shape))

    @abstractmethod
    def reads(self, tokens: Tensor, absent: Tensor) -> Tensor:
        """What the readout net reads of (batch, length, dim) tokens, as the model's `reads`."""

    def forward(self, tokens: Tensor) -> Tensor:
        """The answers (outputs,) to tokens (length, dim), or (batch, outputs) to (batch, length, dim).

        Of token ids dim is 1, and one sequence may be (length,).
        """
        if self.spec.vocabulary and tokens.ndim == 1:
            tokens = tokens[:, None]
        if tokens.ndim == 2:
            return self(tokens[None])[0]
        tokens = read_batch(tokens, self.spec, None if self.position_table is None else len(self.position_table))
        absent = tokens.isnan().all(-1) & self.spec.masks_padding
        read = self.reads(tokens.masked_fill(absent[..., None], 0.0), absent)
        return self.readout_out(functional.gelu(self.readout_in(read)))

    def first_layer(self, tokens: Tensor) -> Tensor:
        content = self.token_in.weight.shape[1] - self.spec.code_dim
        first = self.product(self.token_in.weight[:, :content], tokens) + self.token_in.bias
        return (
            first if self.position_table is None else first + self.position_table @ self.token_in.weight[:, content:].T
        )

    def product(self, weight: Tensor, tokens: Tensor) -> Tensor:
        """A layer's product with tokens, whose ids are looked up."""
        return functional.embedding(tokens[..., 0].long(), weight.T) if self.spec.vocabulary else tokens @ weight.T


class PoolingModule(ControlModule):
    def __init__(self, model: Pooling):
        super().__init__(model)
        self.pool = model.spec.pool
        self.token_out = _linear(model.token_out)
        self.query_in = None if model.query_in is None else nn.Parameter(torch.empty(model.query_in.shape))

    def reads(self, tokens: Tensor, absent: Tensor) -> Tensor:
        first = self.first_layer(tokens)
        if self.query_in is not None:
            first = first + self.product(self.query_in, tokens[:, -1:])
        features = self.token_out(functional.relu(first))
        if self.spec.answered_at == "sequence":
            return pooled(features, absent, self.pool)
        return torch.cat([pooled(features[:, :-1], absent[:, :-1], self.pool), features[:, -1]], dim=-1)


class RecurrentModule(ControlModule):
    def __init__(self, model: Recurrent):
        super().__init__(model)
        self.state_in = _linear(model.state_in)

    def reads(self, tokens: Tensor, absent: Tensor) -> Tensor:
        first = self.first_layer(tokens)
        state = first.new_zeros(len(first), self.spec.width)
        for t in range(first.shape[1]):
            (reset, update, new), (of_reset, of_update, of_new) = (
                first[:, t].chunk(3, -1),
                self.state_in(state).chunk(3, -1),
            )
            update = torch.sigmoid(update + of_update)
            new = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
            state = torch.where(absent[:, t, None], state, (1 - update) * new + update * state)
        return state


class ConvolutionModule(ControlModule):
    def __init__(self, model: Convolution):
        super().__init__(model)
        self.convolutions = nn.ModuleList(map(_linear, model.convolutions))

    def reads(self, tokens: Tensor, absent: Tensor) -> Tensor:
        gone = absent[..., None]
        state = self.first_layer(tokens).masked_fill(gone, 0.0)
        length = state.shape[1]
        for layer, convolution in enumerate(self.convolutions):
            reach = 2**layer
            padded = functional.pad(functional.relu(state), (0, 0, reach, reach))
            seen = torch.cat([padded[:, start : start + length] for start in (0, reach, 2 * reach)], dim=-1)
            state = (state + convolution(seen)).masked_fill(gone, 0.0)
        read = pooled(state, absent, "both")
        return torch.cat([read, state[:, -1]], dim=-1) if self.spec.answered_at == "query" else read


def pooled(features: Tensor, absent: Tensor, pool: str) -> Tensor:
    """The maximum, the mean, or both one after the other, over the tokens that are there."""
    gone = absent[..., None]
    largest = features.masked_fill(gone, -torch.inf).amax(dim=1)
    mean = features.masked_fill(gone, 0.0).sum(dim=1) / (~gone).sum(dim=1)
    return {"max": largest, "mean": mean, "both": torch.cat([largest, mean], dim=-1)}[pool]


def _linear(linear: Linear) -> nn.Linear:
    after, before = linear.weight.shape
    return nn.Linear(before, after)
