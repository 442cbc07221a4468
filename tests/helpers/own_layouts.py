"""Transformers as people write them outside transformers: every layout that headcount reads. Needs torch."""

from typing import Any

import torch
from torch import Tensor, nn

WIDTH, HEADS, TOKENS = 24, 3, 20


class TorchEncoder(nn.Module):
    """torch's own encoder, with padding and a causal mask where asked for."""

    def __init__(self, batch_first: bool = True, causal: bool = False, **options: Any):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS - 1, 16, batch_first=batch_first, **options)
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=batch_first and not options)
        self.out = nn.Linear(WIDTH, 2)
        self.batch_first, self.causal = batch_first, causal

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1]) if self.causal else None
        x = x if self.batch_first else x.transpose(0, 1)
        y = self.encoder(x, mask=mask, src_key_padding_mask=None if self.causal else tokens == 0)
        y = y if self.batch_first else y.transpose(0, 1)
        return self.out(y[:, 0] if not self.causal else y.mean(1))


class TorchAttention(nn.Module):
    """nn.MultiheadAttention alone, whose weights are used too."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.attentions = nn.ModuleList(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(2))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for attention in self.attentions:
            y, weights = attention(x, x, x, average_attn_weights=False)
            x = x + y + weights.mean((1, 2))[..., None]
        return self.out(x.mean(1))


TORCH = {
    "nn.TransformerEncoder": TorchEncoder,
    "nn.TransformerEncoder, batch second": lambda: TorchEncoder(batch_first=False),
    "nn.TransformerEncoder, causal": lambda: TorchEncoder(causal=True, norm_first=True),
    "nn.TransformerEncoder, no biases": lambda: TorchEncoder(bias=False),
    "nn.MultiheadAttention": TorchAttention,
}


def own_model(layout: str, seed: int = 0) -> nn.Module:
    """A model of this layout with random weights, in eval mode and without gradients."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TORCH[layout]()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.randn(parameter.shape) * (0.4 if parameter.dim() > 1 else 0.2))
                if "norm" in name and name.endswith("weight"):
                    parameter.add_(1.0)
    return model.eval().requires_grad_(False)


def own_tokens(batch: int = 4, length: int = 6, seed: int = 0) -> Tensor:
    """Tokens of which the last are 0, padding, in every second sequence."""
    tokens = torch.randint(1, TOKENS, (batch, length), generator=torch.Generator().manual_seed(seed))
    tokens[::2, -2:] = 0
    return tokens


def own_loss(model: nn.Module, batch: Tensor) -> Tensor:
    """Cross-entropy of whether a 3 is there."""
    return nn.functional.cross_entropy(model(batch), (batch == 3).any(1).long(), reduction="none")
