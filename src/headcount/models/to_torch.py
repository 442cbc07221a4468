"""Trained models in PyTorch: one module for all kinds, with the parameter names of the model's arrays.

What a kind computes is a function of that module and a batch of tokens, a row of `ANSWERS`; it is written as the model
itself is, plainly. A kind of attention is a row of `WEIGHTS`, as of `attention.READINGS`.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError
from .attention import AbstractAttentionSpec, unread_keys
from .base import AbstractModel, AbstractSpec
from .layers import LAYER_NORM_FLOOR, UNIT_NORM_FLOOR


def torch_module(model: AbstractModel) -> nn.Module:
    """Return the model as a module in evaluation mode. Raises `InputError` for a kind that has none."""
    if model.spec.kind not in ANSWERS:
        raise InputError(f"models of kind {model.spec.kind} have no PyTorch module.")
    return ModelModule(model).eval()


class Group(nn.Module):
    """The parts of a JAX module under their names: parameters, groups and lists of groups; None where it has none."""

    def __init__(self, part: eqx.Module):
        super().__init__()
        for field in dataclasses.fields(part):
            setattr(self, field.name, _torch_part(getattr(part, field.name)))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def _torch_part(part: Any) -> Any:
    if isinstance(part, tuple):
        return nn.ModuleList(map(Group, part))
    if isinstance(part, eqx.Module):
        return Group(part)
    is_array = isinstance(part, np.ndarray | jax.Array)
    return nn.Parameter(torch.from_numpy(np.array(part, np.float32))) if is_array else part


class ModelModule(Group):
    """Answers as the model does; see `AbstractModel.to_torch`."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the answers to tokens (length, dim), or to a batch of them (batch, length, dim).

        Of shape (outputs,) per sequence, or (length, outputs) where the spec is answered at tokens. Of token ids dim is
        1, and one sequence may be (length,).
        """
        if self.spec.vocabulary and tokens.ndim == 1:
            tokens = tokens[:, None]
        if tokens.ndim == 2:
            return self(tokens[None])[0]
        tokens = _filled_up(tokens, self.spec, None if self.position_table is None else len(self.position_table))
        return ANSWERS[self.spec.kind](self, *_without_absent(tokens, self.spec))


def _filled_up(tokens: Tensor, spec: AbstractSpec, length: int | None) -> Tensor:
    """Add absent tokens to sequences shorter than `length`, as `AbstractModel.read_tokens` does."""
    tokens = tokens.float() if spec.vocabulary else tokens
    missing = length - tokens.shape[1] if spec.masks_nan and length is not None else 0
    sides = (missing, 0) if spec.answered_at == "query" else (0, missing)
    return functional.pad(tokens, (0, 0, *sides), value=torch.nan) if missing > 0 else tokens


def _without_absent(tokens: Tensor, spec: Any) -> tuple[Tensor, Tensor | None]:
    """Return tokens that can be computed with, and which of them are absent; None where all are there."""
    if not spec.masks_padding:
        return tokens, None
    absent = tokens.isnan().all(-1) if spec.masks_nan else (tokens == 0).all(-1)
    return tokens.masked_fill(absent[..., None], 0.0), absent


def _linear(layer: Group, x: Tensor) -> Tensor:
    return functional.linear(x, layer.weight, layer.bias)


def _looked_up(weight: Tensor, tokens: Tensor, spec: AbstractSpec) -> Tensor:
    """Return the product of a first layer with tokens, whose ids are looked up; surplus columns are for positions."""
    if spec.vocabulary:
        return functional.embedding(tokens[..., 0].long(), weight[:, : spec.vocabulary].T)
    return tokens @ weight[:, : tokens.shape[-1]].T


def _first_layer(module: ModelModule, first: Group, tokens: Tensor) -> Tensor:
    """Return the first layer of every token, with its concatenated position code."""
    content = _looked_up(first.weight, tokens, module.spec) + first.bias
    if module.spec.positions != "concatenated":
        return content
    table = module.position_table
    return content + table @ first.weight[:, -table.shape[1] :].T


# How heads read.


def _elu_features(x: Tensor) -> Tensor:
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _softmax(scores: Tensor, spec: AbstractAttentionSpec) -> Tensor:
    return functional.softmax(scores, dim=-1)


def _largest_alone(scores: Tensor, spec: AbstractAttentionSpec) -> Tensor:
    return functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


def _softmax_of_largest(scores: Tensor, spec: AbstractAttentionSpec) -> Tensor:
    rest = scores.sort(dim=-1, descending=True, stable=True).indices[..., spec.top_k :]
    return functional.softmax(scores.scatter(-1, rest, -torch.inf), dim=-1)


def _shares(scores: Tensor, spec: AbstractAttentionSpec) -> Tensor:
    return scores / scores.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


WEIGHTS: dict[str, Callable[[Tensor, AbstractAttentionSpec], Tensor]] = {
    "soft": _softmax,
    "hard": _largest_alone,
    "linear": _shares,
    "top-k": _softmax_of_largest,
}
"""How much of every key each head reads, from scores of shape (batch, heads, queries, keys)."""


def _shared(per_group: Tensor, heads: int, blocks: int = 1) -> Tensor:
    """Give every head what its group has along the second axis; see `attention.share_groups`."""
    batch, groups, *shape = per_group.shape
    shared = per_group.reshape(batch, blocks, 1, groups // blocks, *shape)
    return shared.expand(-1, -1, heads // groups, *shared.shape[3:]).reshape(batch, heads, *shape)


def _attend(
    heads: Group,
    spec: AbstractAttentionSpec,
    stream: Tensor,
    tokens: Tensor,
    hidden: Tensor | None,
    scale: float,
    blocks: int = 1,
) -> Tensor:
    """Return what all heads together write for every query of the stream, (batch, queries, stream)."""
    asked = torch.einsum("bqw,hnw->bhqn", stream, heads.query)
    keys = torch.einsum("btw,hnw->bhtn", tokens, heads.key)
    values = torch.einsum("btw,hnw->bhtn", tokens, heads.value)
    if getattr(heads, "query_bias", None) is not None:
        asked, values = asked + heads.query_bias[:, None], values + heads.value_bias[:, None]
    keys, values = (_shared(part, asked.shape[1], blocks) for part in (keys, values))
    if spec.reading.features is not None:
        asked, keys = _elu_features(asked), _elu_features(keys)
    scores = asked @ keys.transpose(-1, -2)
    scores = scores * scale if spec.reading.is_scaled else scores
    scores = scores if hidden is None else scores.masked_fill(hidden[:, None], spec.reading.unread)
    carried = WEIGHTS[spec.attention](scores, spec) @ values
    output = "".join({"heads": "h", "head_dim": "n", "stream": "w"}[axis] for axis in spec.output_axes)
    return torch.einsum(f"bhqn,{output}->bqw", carried, heads.output)


def _places_of(absent: Tensor | None, tokens: Tensor) -> Tensor:
    """Return the place of every token of (batch, places, width) among those that are there, (batch, places)."""
    if absent is None:
        return torch.arange(tokens.shape[1], device=tokens.device).expand(len(tokens), -1)
    return ((~absent).long().cumsum(-1) - 1).clamp(min=0)


# What every kind answers.


def _class_token(module: ModelModule, tokens: Tensor, absent: Tensor | None) -> Tensor:
    spec = module.spec
    embedded = _linear(module.encoder_out, functional.relu(_first_layer(module, module.encoder_in, tokens)))
    embedded = embedded + module.position_table if spec.positions == "additive" else embedded
    class_token = module.class_token.expand(len(tokens), 1, -1)
    places, keys = _places_of(absent, tokens), None if absent is None else absent[:, None]
    by_class_token = unread_keys(spec, keys, places[:, -1:] + 1, places, 1)  # the class token comes after them
    by_tokens = unread_keys(spec, keys, places, places)
    layers = module.attention
    for place, heads in enumerate(layers):
        moved = []
        for stream, hidden in ((class_token, by_class_token), (embedded, by_tokens)):
            stream = stream + _attend(heads, spec, stream, embedded, hidden, spec.beta)
            if spec.inner_hidden and place < len(layers) - 1:
                net = module.inner[place]
                stream = stream + _linear(net.second, functional.relu(_linear(net.first, stream)))
            moved.append(stream)
        class_token, embedded = moved
    seen = class_token[:, 0]
    if spec.final_norm:
        seen = functional.layer_norm(seen, seen.shape[-1:], eps=LAYER_NORM_FLOOR)
    return _read_out(module, seen)


def _read_out(module: ModelModule, seen: Tensor) -> Tensor:
    return _linear(module.readout_out, functional.gelu(_linear(module.readout_in, seen)))


def _encoder(module: ModelModule, tokens: Tensor, absent: Tensor | None) -> Tensor:
    spec = module.spec
    stream = _stream(module, tokens)
    if absent is not None:
        absent = functional.pad(absent, (0, stream.shape[1] - tokens.shape[1]), value=False)
    once = spec.answered_at != "tokens"
    last_key = -1 if once and not spec.query_is_key else None
    places, after = _places_of(absent, stream), stream.new_zeros(stream.shape[1])
    after[-1] = float(spec.answered_at == "sequence" or last_key is not None)
    seen = None if absent is None else absent[:, None, :last_key]
    hidden = unread_keys(spec, seen, places, places[:, :last_key], after[:, None])
    for layer in module.layers:
        stream = _encoder_layer(layer, spec, stream, stream[:, :last_key], hidden)
    if spec.final_norm:
        stream = _norm(spec, stream, module.final_scale)
    answers = (stream[:, -1] if once else stream)[..., : spec.width]
    return answers if module.read is None else _linear(module.read, answers)


def _stream(module: ModelModule, tokens: Tensor) -> Tensor:
    stream, table = tokens, module.position_table
    if module.embed is not None:
        stream = _looked_up(module.embed.weight, tokens, module.spec)
        stream = stream if module.embed.bias is None else stream + module.embed.bias
    if table is not None:
        table = table.expand(len(tokens), -1, -1)
        stream = stream + table if module.spec.positions == "additive" else torch.cat([stream, table], dim=-1)
    if module.class_token is not None:
        stream = torch.cat([stream, module.class_token.expand(len(tokens), 1, -1)], dim=1)
    return stream


def _encoder_layer(layer: Group, spec: Any, stream: Tensor, keys: Tensor, hidden: Tensor | None) -> Tensor:
    def attend(entering: Tensor) -> Tensor:
        seen = _norm(spec, keys, layer.attention_scale) if spec.norm_first else keys
        total = _attend(layer.heads, spec, entering, seen, hidden, spec.rank**-0.5, spec.multiplier)
        mean = total / spec.multiplier
        return mean if layer.heads.output_bias is None else mean + layer.heads.output_bias

    def feed(entering: Tensor) -> Tensor:
        hidden = _linear(layer.feed_in, entering)
        hidden = functional.relu(hidden) if spec.activation == "relu" else functional.gelu(hidden, approximate="tanh")
        return _linear(layer.feed_out, hidden)

    def sublayer(stream: Tensor, change: Callable[[Tensor], Tensor], scale: Tensor | None) -> Tensor:
        changed = change(_norm(spec, stream, scale) if spec.norm_first else stream)
        total = stream + changed if spec.residual else changed
        return total if spec.norm_first else _norm(spec, total, scale)

    stream = sublayer(stream, attend, layer.attention_scale)
    return stream if layer.feed_in is None else sublayer(stream, feed, layer.feed_scale)


def _norm(spec: Any, stream: Tensor, scale: Tensor | None) -> Tensor:
    if spec.norm == "none":
        return stream
    if scale is not None:
        return stream * torch.rsqrt((stream**2).sum(-1, keepdim=True) + UNIT_NORM_FLOOR) * scale
    return functional.layer_norm(stream, stream.shape[-1:], eps=LAYER_NORM_FLOOR)


def _control(reads: Callable[[ModelModule, Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Make the answers of a control of what its readout net reads of tokens, first layer and absent ones."""

    def control_answers(module: ModelModule, tokens: Tensor, absent: Tensor | None) -> Tensor:
        first = _first_layer(module, module.token_in, tokens)
        absent = tokens.new_zeros(tokens.shape[:2], dtype=torch.bool) if absent is None else absent
        return _read_out(module, reads(module, tokens, first, absent))

    return control_answers


def _pooling(module: ModelModule, tokens: Tensor, first: Tensor, absent: Tensor) -> Tensor:
    if module.query_in is not None:
        first = first + _looked_up(module.query_in, tokens[:, -1:], module.spec)
    features = _linear(module.token_out, functional.relu(first))
    if module.spec.answered_at == "sequence":
        return _pooled(features, absent, module.spec.pool)
    return torch.cat([_pooled(features[:, :-1], absent[:, :-1], module.spec.pool), features[:, -1]], dim=-1)


def _recurrent(module: ModelModule, tokens: Tensor, first: Tensor, absent: Tensor) -> Tensor:
    state = first.new_zeros(len(first), module.spec.width)
    for t in range(first.shape[1]):
        reset, update, new = first[:, t].chunk(3, -1)
        of_reset, of_update, of_new = _linear(module.state_in, state).chunk(3, -1)
        update = torch.sigmoid(update + of_update)
        new = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
        state = torch.where(absent[:, t, None], state, (1 - update) * new + update * state)
    return state


def _convolution(module: ModelModule, tokens: Tensor, first: Tensor, absent: Tensor) -> Tensor:
    gone, length = absent[..., None], first.shape[1]
    state = first.masked_fill(gone, 0.0)
    for layer, convolution in enumerate(module.convolutions):
        reach = 2**layer
        padded = functional.pad(functional.relu(state), (0, 0, reach, reach))
        seen = torch.cat([padded[:, start : start + length] for start in (0, reach, 2 * reach)], dim=-1)
        state = (state + _linear(convolution, seen)).masked_fill(gone, 0.0)
    read = _pooled(state, absent, "both")
    return torch.cat([read, state[:, -1]], dim=-1) if module.spec.answered_at == "query" else read


def _pooled(features: Tensor, absent: Tensor, pool: str) -> Tensor:
    """Return the maximum, the mean, or both one after the other, over the tokens that are there."""
    gone = absent[..., None]
    largest = features.masked_fill(gone, -torch.inf).amax(dim=1)
    mean = features.masked_fill(gone, 0.0).sum(dim=1) / (~gone).sum(dim=1)
    return {"max": largest, "mean": mean, "both": torch.cat([largest, mean], dim=-1)}[pool]


ANSWERS: dict[str, Callable[[ModelModule, Tensor, Tensor | None], Tensor]] = {
    "class-token": _class_token,
    "encoder": _encoder,
    "pooling": _control(_pooling),
    "recurrent": _control(_recurrent),
    "convolution": _control(_convolution),
}
"""The answers of every kind to a batch of sequences, from its tokens and which of them are absent."""
