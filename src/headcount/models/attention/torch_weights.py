"""How heads read, in PyTorch: the same as the rest of this package, for a batch of sequences."""

import torch
from torch import Tensor
from torch.nn import functional

from .causal import later
from .options import Attends
from .window import beyond


def of_heads(per_group: Tensor, heads: int, *, blocks: int = 1) -> Tensor:
    """What every head reads, from what every group has along the second axis, behind the batch."""
    groups = per_group.shape[1]
    if groups == heads:
        return per_group
    batch, *shape = per_group.shape[0], *per_group.shape[2:]
    shared = per_group.reshape(batch, blocks, 1, groups // blocks, *shape)
    return shared.expand(-1, -1, heads // groups, *shared.shape[3:]).reshape(batch, heads, *shape)


def places_of(absent: Tensor | None, tokens: Tensor) -> Tensor:
    """The place of every token of (batch, places, width) among those that are there, (batch, places)."""
    if absent is None:
        return torch.arange(tokens.shape[1], device=tokens.device).expand(len(tokens), -1)
    return ((~absent).long().cumsum(-1) - 1).clamp(min=0)


def unread(spec: Attends, absent: Tensor | None, queries: Tensor, keys: Tensor, after: Tensor) -> Tensor | None:
    """The keys that queries at these places do not read, (batch, queries or 1, keys)."""
    hidden = None if absent is None else absent[:, None]
    masks = [] if spec.window is None else [beyond(queries, keys, spec.window, after[..., None])]
    for mask in masks + ([later(queries, keys)] if spec.causal else []):
        hidden = mask if hidden is None else hidden | mask
    return hidden


def weights_of(spec: Attends, asked: Tensor, keys: Tensor, hidden: Tensor | None, scale: float) -> Tensor:
    """How much of every key each head reads: queries and keys are (batch, heads, places, rank)."""
    hidden = None if hidden is None else hidden[:, None]
    if spec.attention == "linear":
        kernel = _features(asked) @ _features(keys).transpose(-1, -2)
        kernel = kernel if hidden is None else kernel.masked_fill(hidden, 0.0)
        return kernel / kernel.sum(-1, keepdim=True).clamp(min=torch.finfo(kernel.dtype).tiny)
    scores = asked @ keys.transpose(-1, -2)
    scores = scores if hidden is None else scores.masked_fill(hidden, -torch.inf)
    if spec.attention == "hard":
        return functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)
    scores = scores * scale
    if spec.attention == "top-k":
        order = scores.sort(dim=-1, descending=True, stable=True).indices
        rest = order[..., spec.top_k :]
        scores = scores.scatter(-1, rest, -torch.inf)
    return functional.softmax(scores, dim=-1)


def _features(x: Tensor) -> Tensor:
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())
