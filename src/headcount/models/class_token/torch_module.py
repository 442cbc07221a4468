"""The class-token transformer in PyTorch, as the paper writes it."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..attention.torch_weights import of_heads, places_of, unread, weights_of
from ..norms import LAYER_NORM_FLOOR
from ..torch_export import read_batch
from .model import Attention, ClassTokenTransformer, InnerNet, Linear
from .spec import ClassTokenSpec


class MultiHeadAttention(nn.Module):
    """W_Q of every head, W_K and W_V of every head or group, and W_O over the concatenated heads."""

    def __init__(self, layer: Attention, spec: ClassTokenSpec):
        super().__init__()
        self.spec = spec
        self.query = nn.Parameter(torch.empty(layer.query.shape))  # heads, rank, total
        self.key = nn.Parameter(torch.empty(layer.key.shape))
        self.value = nn.Parameter(torch.empty(layer.value.shape))  # heads, head_dim, total
        self.output = nn.Parameter(torch.empty(layer.output.shape))  # total, heads, head_dim

    def forward(self, queries: Tensor, tokens: Tensor, unread: Tensor | None) -> Tensor:
        asked = torch.einsum("bqe,hne->bhqn", queries, self.query)
        keys = of_heads(torch.einsum("bte,hne->bhtn", tokens, self.key), self.spec.heads)
        values = of_heads(torch.einsum("bte,hne->bhtn", tokens, self.value), self.spec.heads)
        weights = weights_of(self.spec, asked, keys, unread, self.spec.beta)
        return torch.einsum("bhqn,ehn->bqe", weights @ values, self.output)


class InnerModule(nn.Module):
    """A ReLU net with a residual."""

    def __init__(self, net: InnerNet):
        super().__init__()
        self.first, self.second = _linear(net.first), _linear(net.second)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(functional.relu(self.first(x)))


class ClassTokenModule(nn.Module):
    """The same function as a `ClassTokenTransformer`; weights are to be loaded."""

    def __init__(self, model: ClassTokenTransformer):
        super().__init__()
        self.spec = model.spec
        self.encoder_in, self.encoder_out = _linear(model.encoder_in), _linear(model.encoder_out)
        self.readout_in, self.readout_out = _linear(model.readout_in), _linear(model.readout_out)
        self.class_token = nn.Parameter(torch.empty(model.class_token.shape))
        if model.position_table is not None:
            self.position_table = nn.Parameter(torch.empty(model.position_table.shape))
        self.attention = nn.ModuleList(MultiHeadAttention(layer, model.spec) for layer in model.attention)
        self.inner = nn.ModuleList(InnerModule(net) for net in model.inner)

    def forward(self, tokens: Tensor) -> Tensor:
        """The answers (outputs,) to tokens (length, dim), or (batch, outputs) to (batch, length, dim).

        Of token ids dim is 1, and one sequence may be (length,).
        """
        if self.spec.vocabulary and tokens.ndim == 1:
            tokens = tokens[:, None]
        if tokens.ndim == 2:
            return self(tokens[None])[0]
        tokens = read_batch(tokens, self.spec, None if self.spec.positions == "none" else len(self.position_table))
        absent = None
        if self.spec.masks_padding:
            absent = tokens.isnan().all(-1)
            tokens = tokens.masked_fill(absent[..., None], 0.0)
        embedded = self.embed(tokens)
        class_token = self.class_token.expand(len(tokens), 1, -1)
        places = places_of(absent, tokens)
        after = places[:, -1:] + 1  # where the class token is
        by_class_token = unread(self.spec, absent, after, places, places.new_ones(1))
        by_tokens = unread(self.spec, absent, places, places, places.new_zeros(1))
        for place, attend in enumerate(self.attention):
            read, moved = attend(class_token, embedded, by_class_token), attend(embedded, embedded, by_tokens)
            class_token, embedded = class_token + read, embedded + moved
            if place < len(self.inner):
                class_token, embedded = self.inner[place](class_token), self.inner[place](embedded)
        seen = class_token[:, 0]
        if self.spec.final_norm:
            seen = functional.layer_norm(seen, seen.shape[-1:], eps=LAYER_NORM_FLOOR)
        return self.readout_out(functional.gelu(self.readout_in(seen)))

    def embed(self, tokens: Tensor) -> Tensor:
        positions, ids = self.spec.positions, self.spec.vocabulary
        code = self.position_table.expand(len(tokens), -1, -1) if positions == "concatenated" else None
        if ids:
            first = (
                functional.embedding(tokens[..., 0].long(), self.encoder_in.weight[:, :ids].T) + self.encoder_in.bias
            )
            first = first if code is None else first + code @ self.encoder_in.weight[:, ids:].T
        else:
            first = self.encoder_in(tokens if code is None else torch.cat([tokens, code], dim=-1))
        embedded = self.encoder_out(functional.relu(first))
        return embedded + self.position_table if positions == "additive" else embedded


def _linear(linear: Linear) -> nn.Linear:
    after, before = linear.weight.shape
    return nn.Linear(before, after)
