"""The widened attention block a user would write instead: a loop over copies of `nn.MultiheadAttention`, averaged."""

import time

import torch
from torch import nn

LEARNING_RATE = 1e-3
WARMUP = 3


class CopiesOfAttention(nn.Module):
    """`multiplier` separate attention blocks of `heads` heads over `dim` numbers; their mean."""

    def __init__(self, *, dim: int, heads: int, multiplier: int):
        super().__init__()
        self.copies = nn.ModuleList(nn.MultiheadAttention(dim, heads, batch_first=True) for _ in range(multiplier))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(tokens)
        for copy in self.copies:
            total = total + copy(tokens, tokens, tokens, need_weights=False)[0]
        return total / len(self.copies)


class Trainer:
    """A block and its optimiser, warmed up; `seconds_per_step` trains it on tokens drawn for each step."""

    def __init__(self, *, dim: int, heads: int, multiplier: int, length: int, batch: int, device: str):
        self.shape, self.device = (batch, length, dim), device
        self.model = CopiesOfAttention(dim=dim, heads=heads, multiplier=multiplier).to(device)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE, weight_decay=0, fused=True)
        self._train(WARMUP)

    def seconds_per_step(self, steps: int) -> float:
        began = time.perf_counter()
        self._train(steps)
        return (time.perf_counter() - began) / steps

    def _train(self, steps: int) -> None:
        for _ in range(steps):
            points = nn.functional.normalize(torch.randn(self.shape, device=self.device), dim=2)
            farthest = torch.argmin(points @ points.transpose(1, 2), dim=2)
            targets = torch.gather(points, 1, farthest[..., None].expand(self.shape))
            loss = nn.functional.mse_loss(self.model(points), targets)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        if self.device == "cuda":
            torch.cuda.synchronize()  # a GPU works on after the call that asked it to has returned
