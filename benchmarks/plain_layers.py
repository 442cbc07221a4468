"""Table 5's model in PyTorch, twice: plain, one model of `nn` parts, and batched, many members in one set of tensors.

Symbols: h heads, E total_dim, N hidden, T tokens. Two attention layers with residuals, a class token, no net between.

`PlainLayers` is what most would write: `nn.MultiheadAttention` over T + 1 tokens, the class token among them, trained
with `torch.optim.Adam`. `BatchedLayers` is what an expert would: a leading axis of members, one product for queries,
keys and values, `scaled_dot_product_attention`, the last layer asked at the class token alone, one fused Adam, and all
of it through `torch.compile`, with CUDA graphs on a GPU. Neither clips gradients nor schedules its rate.
"""

import math
import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

CLASS_TOKEN_SCALE, LEARNING_RATE, WARMUP = 0.1, 1e-3, 5


class PlainLayers(nn.Module):
    def __init__(self, *, dim: int, heads: int, head_dim: int, hidden: int, layers: int = 2):
        super().__init__()
        total = heads * head_dim
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, total))
        self.class_token = nn.Parameter(CLASS_TOKEN_SCALE * torch.randn(1, 1, total))
        self.attention = nn.ModuleList(nn.MultiheadAttention(total, heads, batch_first=True) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(total, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = torch.cat([self.encoder(tokens), self.class_token.expand(len(tokens), -1, -1)], dim=1)
        for layer in self.attention:
            embedded = embedded + layer(embedded, embedded, embedded, need_weights=False)[0]
        return self.readout(embedded[:, -1])


class BatchedLayers(nn.Module):
    """`members` models; tokens are (members, batch, length, dim)."""

    def __init__(self, *, members: int, dim: int, heads: int, head_dim: int, hidden: int, layers: int = 2):
        super().__init__()
        total, self.heads, self.members = heads * head_dim, heads, members

        def weight(before: int, after: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(members, before, after).uniform_(-1, 1) / math.sqrt(before))

        def bias(after: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(members, 1, after))

        self.encoder_in, self.encoder_bias = weight(dim, hidden), bias(hidden)
        self.encoder_out, self.encoder_out_bias = weight(hidden, total), bias(total)
        self.class_token = nn.Parameter(CLASS_TOKEN_SCALE * torch.randn(members, 1, total))
        self.projections = nn.ParameterList(weight(total, 3 * total) for _ in range(layers))
        self.outputs = nn.ParameterList(weight(total, total) for _ in range(layers))
        self.readout_in, self.readout_bias = weight(total, hidden), bias(hidden)
        self.readout_out, self.readout_out_bias = weight(hidden, 1), bias(1)

    def forward(self, tokens: Tensor) -> Tensor:
        members, batch, length, dim = tokens.shape
        hidden = torch.relu(torch.baddbmm(self.encoder_bias, tokens.reshape(members, -1, dim), self.encoder_in))
        embedded = torch.baddbmm(self.encoder_out_bias, hidden, self.encoder_out).view(members, batch, length, -1)
        class_token = self.class_token[:, None].expand(members, batch, 1, -1)
        stream = torch.cat([embedded, class_token], dim=2)
        last = len(self.projections) - 1
        for place, (projection, output) in enumerate(zip(self.projections, self.outputs, strict=True)):
            asked = stream[:, :, -1:] if place == last else stream
            stream = asked + self._attend(stream, projection, output, asked.shape[2])
        seen = stream[:, :, -1]
        inner = functional.gelu(torch.baddbmm(self.readout_bias, seen, self.readout_in))
        return torch.baddbmm(self.readout_out_bias, inner, self.readout_out)

    def _attend(self, stream: Tensor, projection: Tensor, output: Tensor, asked: int) -> Tensor:
        members, batch, places, total = stream.shape
        projected = torch.bmm(stream.reshape(members, -1, total), projection)
        split = projected.view(members * batch, places, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        queries, keys, values = split[0][:, :, -asked:], split[1][:, :, :-1], split[2][:, :, :-1]
        read = functional.scaled_dot_product_attention(queries, keys, values)
        read = read.transpose(1, 2).reshape(members, batch * asked, total)
        return torch.bmm(read, output).view(members, batch, asked, total)


class Trainer:
    """A model and its optimiser, warmed up; `seconds_per_step` trains it on stored examples.

    `members` 0: the plain program. `mode`: that of `torch.compile`, None runs it eager.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        targets: np.ndarray,
        *,
        sizes: dict[str, int],
        members: int,
        batch: int,
        device: str,
        mode: str | None = None,
    ):
        self.tokens, self.targets = (torch.tensor(part, device=device) for part in (tokens, targets))
        self.batch, self.members, self.device = batch, members, device
        model = BatchedLayers(members=members, **sizes) if members else PlainLayers(**sizes)
        self.model = model.to(device)
        self.call = torch.compile(self.model, mode=mode) if mode else self.model
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE, fused=bool(members) or None)
        self._train(WARMUP)

    def seconds_per_step(self, steps: int) -> float:
        """The mean wall time of a step of all members."""
        began = time.perf_counter()
        self._train(steps)
        return (time.perf_counter() - began) / steps

    def _train(self, steps: int) -> None:
        shape = (self.members, self.batch) if self.members else (self.batch,)
        for _ in range(steps):
            chosen = torch.randint(0, len(self.tokens), shape, device=self.device)
            errors = (self.call(self.tokens[chosen]) - self.targets[chosen]).square()
            # A sum over members: each gets the gradient of its own mean.
            loss = errors.mean(dim=tuple(range(1, errors.ndim))).sum() if self.members else errors.mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        if self.device == "cuda":
            torch.cuda.synchronize()  # a GPU works on after the call that asked it to has returned
