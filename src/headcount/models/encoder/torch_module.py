"""The wide encoder in PyTorch. Dropout is left out: the module is for inference."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..attention.torch_weights import of_heads, places_of, unread, weights_of
from ..norms import LAYER_NORM_FLOOR, UNIT_NORM_FLOOR
from ..torch_export import read_batch
from .layer import Affine, EncoderLayer
from .model import Encoder
from .spec import EncoderSpec


class MultiHeadAttention(nn.Module):
    """All heads of all blocks of a layer; blocks are averaged."""

    def __init__(self, spec: EncoderSpec):
        super().__init__()
        self.spec = spec
        stream, heads, groups = spec.stream_dim, spec.total_heads, spec.total_groups
        self.query = nn.Parameter(torch.empty(heads, spec.rank, stream))
        self.key = nn.Parameter(torch.empty(groups, spec.rank, stream))
        self.value = nn.Parameter(torch.empty(groups, spec.head_dim, stream))
        self.output = nn.Parameter(torch.empty(heads, spec.head_dim, stream))
        if spec.bias:
            self.query_bias = nn.Parameter(torch.empty(heads, spec.rank))
            self.value_bias = nn.Parameter(torch.empty(groups, spec.head_dim))
            self.output_bias = nn.Parameter(torch.empty(stream))

    def forward(self, queries: Tensor, tokens: Tensor, hidden: Tensor | None) -> Tensor:
        asked = torch.einsum("bqw,hnw->bhqn", queries, self.query)
        keys = torch.einsum("btw,hnw->bhtn", tokens, self.key)
        values = torch.einsum("btw,hnw->bhtn", tokens, self.value)
        if self.spec.bias:
            asked, values = asked + self.query_bias[:, None], values + self.value_bias[:, None]
        keys, values = (of_heads(part, self.spec.total_heads, blocks=self.spec.multiplier) for part in (keys, values))
        weights = weights_of(self.spec, asked, keys, hidden, self.spec.rank**-0.5)
        mixed = torch.einsum("bhqn,hnw->bqw", weights @ values, self.output) / self.spec.multiplier
        return mixed + self.output_bias if self.spec.bias else mixed


class EncoderLayerModule(nn.Module):
    """Attention and a feed-forward net, with norms before them or after their sums."""

    def __init__(self, spec: EncoderSpec, layer: EncoderLayer):
        super().__init__()
        self.spec = spec
        self.heads = MultiHeadAttention(spec)
        self.attention_scale = _parameter(layer.attention_scale)
        self.feed_in, self.feed_out = _linear(layer.feed_in), _linear(layer.feed_out)
        self.feed_scale = _parameter(layer.feed_scale)

    def forward(self, stream: Tensor, keys: Tensor, hidden: Tensor | None) -> Tensor:
        spec = self.spec
        entering = _norm(spec, stream, self.attention_scale) if spec.norm_first else stream
        seen = _norm(spec, keys, self.attention_scale) if spec.norm_first else keys
        stream = self.add(stream, self.heads(entering, seen, hidden), self.attention_scale)
        if self.feed_in is None or self.feed_out is None:
            return stream
        entering = _norm(spec, stream, self.feed_scale) if spec.norm_first else stream
        return self.add(stream, self.feed_out(self.activate(self.feed_in(entering))), self.feed_scale)

    def add(self, stream: Tensor, change: Tensor, scale: Tensor | None) -> Tensor:
        total = stream + change if self.spec.residual else change
        return total if self.spec.norm_first else _norm(self.spec, total, scale)

    def activate(self, hidden: Tensor) -> Tensor:
        if self.spec.activation == "relu":
            return functional.relu(hidden)
        return functional.gelu(hidden, approximate="tanh")


class EncoderModule(nn.Module):
    """The same function as an `Encoder`; weights are to be loaded."""

    def __init__(self, model: Encoder):
        super().__init__()
        self.spec = model.spec
        self.layers = nn.ModuleList(EncoderLayerModule(model.spec, layer) for layer in model.layers)
        self.embed, self.read = _linear(model.embed), _linear(model.read)
        self.class_token = _parameter(model.class_token)
        self.position_table = _parameter(model.position_table)
        self.final_scale = _parameter(model.final_scale)

    def forward(self, tokens: Tensor) -> Tensor:
        """The answers to tokens (length, dim), or to a batch of them (batch, length, dim).

        Of shape (outputs,) per sequence, or (length, outputs) where the spec is answered at tokens. Of token ids dim
        is 1, and one sequence may be (length,).
        """
        if self.spec.vocabulary and tokens.ndim == 1:
            tokens = tokens[:, None]
        if tokens.ndim == 2:
            return self(tokens[None])[0]
        spec = self.spec
        tokens = read_batch(tokens, spec, None if self.position_table is None else len(self.position_table))
        absent = None
        if spec.masks_padding:
            absent = tokens.isnan().all(-1) if spec.masks_nan else (tokens == 0).all(-1)
            tokens = tokens.masked_fill(absent[..., None], 0.0)
        stream = self.stream(tokens)
        if absent is not None:
            absent = functional.pad(absent, (0, stream.shape[1] - tokens.shape[1]), value=False)
        once = spec.answered_at != "tokens"
        last_key = -1 if once and not spec.query_is_key else None
        places, after = places_of(absent, stream), stream.new_zeros(stream.shape[1])
        after[-1] = float(spec.answered_at == "sequence" or last_key is not None)
        seen = None if absent is None else absent[:, :last_key]
        hidden = unread(spec, seen, places, places[:, :last_key], after)
        for layer in self.layers:
            stream = layer(stream, stream[:, :last_key], hidden)
        if spec.final_norm:
            stream = _norm(spec, stream, self.final_scale)
        answers = (stream[:, -1] if once else stream)[..., : spec.width]
        return answers if self.read is None else self.read(answers)

    def stream(self, tokens: Tensor) -> Tensor:
        if self.spec.vocabulary and self.embed is not None:
            stream = functional.embedding(tokens[..., 0].long(), self.embed.weight.T)
            stream = stream if self.embed.bias is None else stream + self.embed.bias
        else:
            stream = tokens if self.embed is None else self.embed(tokens)
        if self.position_table is not None:
            table = self.position_table.expand(len(tokens), -1, -1)
            stream = stream + table if self.spec.positions == "additive" else torch.cat([stream, table], dim=-1)
        if self.class_token is not None:
            stream = torch.cat([stream, self.class_token.expand(len(tokens), 1, -1)], dim=1)
        return stream


def _norm(spec: EncoderSpec, stream: Tensor, scale: Tensor | None) -> Tensor:
    if spec.norm == "none":
        return stream
    if scale is not None:
        return stream * torch.rsqrt((stream**2).sum(-1, keepdim=True) + UNIT_NORM_FLOOR) * scale
    return functional.layer_norm(stream, stream.shape[-1:], eps=LAYER_NORM_FLOOR)


def _linear(affine: Affine | None) -> nn.Linear | None:
    if affine is None:
        return None
    after, before = affine.weight.shape
    return nn.Linear(before, after, bias=affine.bias is not None)


def _parameter(array) -> nn.Parameter | None:
    return None if array is None else nn.Parameter(torch.empty(array.shape))
