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


class OwnAttention(nn.Module):
    """One attention layer with projections of these names.

    `packed` says how queries, keys and values lie in one projection, of (part, head, dim): "phd" is all queries, then
    all keys, then all values.
    """

    def __init__(
        self,
        names: str,
        packed: str = "",
        key_heads: int = HEADS,
        sequential: bool = False,
        turns: str = "",
        normed: bool = False,
        causal: bool = False,
        scale: float | None = None,
        low: bool = False,
    ):
        super().__init__()
        *self.reads, self.writes = names.split()
        self.packed, self.key_heads, self.turns, self.normed = packed, key_heads, turns, normed
        self.causal, self.scale, self.low = causal, scale, low
        self.size = WIDTH // HEADS
        rows = [HEADS * self.size, key_heads * self.size, key_heads * self.size]
        for name, count in zip(self.reads, [sum(rows)] if packed else rows, strict=True):
            self.add_module(name, nn.Linear(WIDTH, count, bias=not turns))
        output = nn.Linear(WIDTH, WIDTH)
        self.add_module(self.writes, nn.Sequential(output, nn.Dropout(0.1)) if sequential else output)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(x)
        if self.normed:
            q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        if self.turns:
            q, k = turned(q, self.turns), turned(k, self.turns)
        k, v = (part.repeat_interleave(HEADS // self.key_heads, 1) for part in (k, v))
        if self.low:
            shares = (q @ k.transpose(-1, -2) * self.size**-0.5).float().softmax(-1).to(v)
            y = shares @ v
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=self.scale)
        return x + self.get_submodule(self.writes)(y.transpose(1, 2).reshape(x.shape))

    def split(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values of shape (batch, heads, tokens, head_dim)."""
        written = [self.get_submodule(name)(x) for name in self.reads]
        if self.packed == "grouped":
            rest = self.key_heads * self.size
            written = list(written[0].split([WIDTH, rest, rest], -1))
        elif self.packed:
            sizes = {"p": 3, "h": HEADS, "d": self.size}
            parts = written[0].unflatten(-1, [sizes[each] for each in self.packed])
            written = list(parts.permute(2 + self.packed.index("p"), 0, 1, *_places(self.packed)).flatten(-2))
        return [part.unflatten(-1, (-1, self.size)).transpose(1, 2) for part in written]


def _places(packed: str) -> tuple[int, int]:
    return 2 + packed.index("h"), 2 + packed.index("d")


def turned(x: Tensor, turns: str) -> Tensor:
    """Pairs turned by an angle per token, as `rotated` of the textbook does."""
    cos, sin = angles(x)
    if turns == "interleaved":
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def angles(x: Tensor) -> tuple[Tensor, Tensor]:
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 100.0 ** -(torch.arange(half) / half)
    return angle.cos().to(x), angle.sin().to(x)


class OwnModel(nn.Module):
    """Two such layers."""

    def __init__(self, *names: Any, **options: Any):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(OwnAttention(*names, **options) for _ in range(2))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean(1))


OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "q_proj to o_proj": ("q_proj k_proj v_proj o_proj", {}),
    "to_q to to_out": ("to_q to_k to_v to_out", {}),
    "to_out in a Sequential": ("to_q to_k to_v to_out", {"sequential": True}),
    "wq to wo, shared keys": ("wq wk wv wo", {"key_heads": 1}),
    "W_Q to W_O, scores times 1": ("W_Q W_K W_V W_O", {"scale": 1.0}),
    "query to out": ("query key value out", {"causal": True}),
    "qkv and proj": ("qkv proj", {"packed": "phd"}),
    "qkv by head": ("qkv proj", {"packed": "hpd"}),
    "qkv by number": ("to_qkv to_out", {"packed": "hdp", "sequential": True}),
    "qkv by number and head": ("to_qkv to_out", {"packed": "dhp"}),
    "qkv with shared keys": ("Wqkv out_proj", {"packed": "grouped", "key_heads": 1}),
    "c_attn": ("c_attn c_proj", {"packed": "phd", "causal": True}),
    "qkv with halves rotated": ("qkv proj", {"packed": "hpd", "turns": "halves"}),
    "qkv with pairs rotated": ("qkv proj", {"packed": "phd", "turns": "interleaved", "causal": True}),
    "wq to wo, pairs rotated": ("wq wk wv wo", {"turns": "interleaved"}),
    "qkv with a softmax in float32": ("qkv proj", {"packed": "hpd", "turns": "interleaved", "low": True}),
    "qkv with norms": ("qkv proj", {"packed": "phd", "normed": True}),
}
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
        model = TORCH[layout]() if layout in TORCH else OwnModel(OWN[layout][0], **OWN[layout][1])
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
