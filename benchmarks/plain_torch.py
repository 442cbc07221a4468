"""The program a user would write instead: the same model in eager PyTorch, out of `nn` parts, one model at a time.

Symbols: h heads, E = 8h total_dim, N hidden, T tokens. It has the sizes that headcount trains, and two habits of its
own, both what the parts offer: the class token is one of T + 1 tokens that all query each other, and attention has
biases. It neither clips gradients nor changes its learning rate, which headcount does.
"""

from dataclasses import dataclass

import numpy as np
import torch
from machine import clock
from torch import nn

HEAD_DIM = 8
CLASS_TOKEN_SCALE = 0.1
LEARNING_RATE = 1e-3


class PlainTransformer(nn.Module):
    """Encoder, class token, one attention layer, readout at the class token."""

    def __init__(self, *, dim: int, heads: int, hidden: int, outputs: int):
        super().__init__()
        total_dim = HEAD_DIM * heads
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, total_dim))
        self.class_token = nn.Parameter(CLASS_TOKEN_SCALE * torch.randn(1, 1, total_dim))
        self.attention = nn.MultiheadAttention(total_dim, heads, batch_first=True)
        self.readout = nn.Sequential(nn.Linear(total_dim, hidden), nn.GELU(), nn.Linear(hidden, outputs))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The answers for a batch of sequences."""
        embedded = self.encoder(tokens)
        embedded = torch.cat([embedded, self.class_token.expand(len(tokens), -1, -1)], dim=1)
        attended, _ = self.attention(embedded, embedded, embedded, need_weights=False)
        return self.readout(embedded[:, -1] + attended[:, -1])


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The sizes of a model and of its batches, and the steps before the clock starts."""

    heads: int
    hidden: int
    batch: int
    warmup: int = 5


def seconds_per_step(
    settings: Settings, train_tokens: np.ndarray, train_targets: np.ndarray, steps: int, device: str
) -> float:
    """Train a fresh model; the mean time of `steps` steps after the warm-up."""
    tokens = torch.tensor(train_tokens, device=device)
    targets = torch.tensor(train_targets, device=device)
    dim, outputs = tokens.shape[2], targets.shape[1]
    model = PlainTransformer(dim=dim, heads=settings.heads, hidden=settings.hidden, outputs=outputs).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

    def train(steps: int) -> None:
        for _ in range(steps):
            chosen = torch.randint(0, len(tokens), (settings.batch,), device=device)
            loss = nn.functional.mse_loss(model(tokens[chosen]), targets[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if device == "cuda":
            torch.cuda.synchronize()  # a GPU works on after the call that asked it to has returned

    train(settings.warmup)
    began = clock()
    train(steps)
    return (clock() - began) / steps
