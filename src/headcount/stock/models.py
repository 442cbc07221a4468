"""The stock models as modules: tokens to the width, the library's transformer, the answer from one token or from all.

Only modules of the libraries are used, as their documentation shows them. PyTorch is imported here at once, so this
module is imported inside functions.
"""

from typing import Any

import torch
from torch import Tensor, nn

from .config import StockConfig, StockShape


def stock_model(config: StockConfig, shape: StockShape) -> nn.Module:
    """Return an untrained model; `torch.manual_seed` decides its weights."""
    return (TorchEncoder if config.library == "torch" else CausalDecoder)(config, shape)


class TorchEncoder(nn.Module):
    """`torch.nn.TransformerEncoder` with a class token and learned positions."""

    def __init__(self, config: StockConfig, shape: StockShape):
        super().__init__()
        self.shape, width = shape, config.width
        self.embed = nn.Embedding(shape.vocabulary, width) if shape.vocabulary else nn.Linear(shape.dim, width)
        if shape.answered_at == "sequence":
            self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        if shape.uses_positions:
            self.positions = nn.Parameter(0.02 * torch.randn(shape.places, width))
        layer = nn.TransformerEncoderLayer(
            width,
            config.heads,
            dim_feedforward=config.feed_forward,
            dropout=config.dropout,
            batch_first=True,
            norm_first=config.norm_first,
        )
        norm = nn.LayerNorm(width) if config.norm_first else None
        self.encoder = nn.TransformerEncoder(layer, config.layers, norm=norm, enable_nested_tensor=False)
        self.answer = nn.Linear(width, shape.outputs)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the answers to a batch; `mask` is True where a token is there."""
        x = self.embed(tokens)
        if self.shape.answered_at == "sequence":
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)
            mask = None if mask is None else nn.functional.pad(mask, (1, 0), value=True)
        if self.shape.uses_positions:
            x = x + (self.positions if mask is None else self.positions[_places(mask)])
        x = self.encoder(x, src_key_padding_mask=None if mask is None else ~mask)
        at = self.shape.answered_at
        return self.answer(x if at == "tokens" else x[:, 0] if at == "sequence" else x[:, -1])


class CausalDecoder(nn.Module):
    """transformers' `MistralModel` fed with embeddings; a class token at the end answers for the sequence.

    The class token is the last row of the model's own embedding, which embeds the token ids where there are any.
    """

    def __init__(self, config: StockConfig, shape: StockShape):
        from transformers import MistralConfig, MistralModel

        super().__init__()
        self.shape = shape
        options: dict[str, Any] = {
            "vocab_size": max(1, shape.vocabulary + (shape.answered_at == "sequence")),
            "hidden_size": config.width,
            "intermediate_size": config.feed_forward,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.key_heads,
            "head_dim": config.head_dim,
            "max_position_embeddings": max(8, shape.places),
            "sliding_window": None,
            "attention_dropout": config.dropout,
            "use_cache": False,
            "bos_token_id": None,
            "eos_token_id": None,
        }
        if not shape.vocabulary:
            self.embed = nn.Linear(shape.dim, config.width)
        self.decoder = MistralModel(MistralConfig(**options))
        self.answer = nn.Linear(config.width, shape.outputs)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the answers to a batch; `mask` is True where a token is there."""
        table = self.decoder.embed_tokens
        x = table(tokens) if self.shape.vocabulary else self.embed(tokens)
        count = len(x)
        if self.shape.answered_at == "sequence":
            x = torch.cat([x, table.weight[-1].expand(count, 1, -1)], dim=1)
            mask = None if mask is None else nn.functional.pad(mask, (0, 1), value=True)
        places = _places(mask) if mask is not None else torch.arange(x.shape[1]).expand(count, -1)
        hidden = self.decoder(
            inputs_embeds=x,
            attention_mask=_visible(mask, x.shape[1], causal=self.shape.answered_at != "tokens"),
            position_ids=places if self.shape.uses_positions else torch.zeros_like(places),
        ).last_hidden_state
        return self.answer(hidden if self.shape.answered_at == "tokens" else hidden[:, -1])


def _places(mask: Tensor) -> Tensor:
    """Return the places of the tokens that are there, counted from 0, and 0 of padding."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def _visible(mask: Tensor | None, length: int, *, causal: bool) -> Tensor:
    """Return which keys (last axis) a query reads, the same for all heads; padding reads itself."""
    order = torch.ones(length, length, dtype=torch.bool)
    order = (order.tril() if causal else order)[None, None]
    if mask is None:
        return order
    return (order & mask[:, None, None]) | torch.eye(length, dtype=torch.bool)
