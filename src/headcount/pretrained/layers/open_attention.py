"""torch's own attention, `nn.MultiheadAttention`, with its heads in reach of hooks. Needs torch.

Its class multiplies with the output projection inside one function, and an encoder layer in eval mode skips the module
altogether (the fast path). An opened copy has the same parameters under the same names and gives the same output, but
calls its output projection as a module, on the concatenation of all heads' outputs.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ...errors import require


def has_closed_attention(model: nn.Module) -> bool:
    """Whether the model has torch's own attention, which `open_attention` has to open before it is measured."""
    return any(isinstance(module, nn.MultiheadAttention) for module in model.modules()) and not any(
        isinstance(module, _Opened) for module in model.modules()
    )


def open_attention(model: nn.Module) -> None:
    """Open every attention of torch in the model, in place, and turn the fast paths around it off."""
    for module in list(model.modules()):
        if isinstance(module, nn.MultiheadAttention) and not isinstance(module, _Opened):
            module.__class__ = type("OpenAttention", (_Opened, type(module)), {})
            module.in_proj = nn.Identity()
        elif isinstance(module, nn.TransformerEncoderLayer):
            module.activation_relu_or_gelu = 0  # read by the fast path alone
        elif isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False


class _Opened(nn.MultiheadAttention):
    """`in_proj` sees the input and `out_proj` the heads, both with the batch first."""

    in_proj: nn.Identity

    def forward(self, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
        require(
            all(other is query or torch.equal(other, query) for other in (key, value)),
            "an attention of this model reads keys or values from another input than queries (cross-attention); "
            "give a model whose attention layers read one input.",
        )
        turned = query.ndim == 3 and not self.batch_first
        self.in_proj(query.transpose(0, 1) if turned else query)
        output = self._modules["out_proj"]
        self._modules["out_proj"] = _Unchanged(query)
        try:
            heads, weights = super().forward(query, key, value, *rest, **options)
        finally:
            self._modules["out_proj"] = output
        assert output is not None
        written = output(heads.transpose(0, 1) if turned else heads)
        return written.transpose(0, 1) if turned else written, weights


class _Unchanged(nn.Module):
    """A projection that changes nothing; attention reads its weight and bias."""

    def __init__(self, like: Tensor):
        super().__init__()
        self.weight = torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)
        self.bias = like.new_zeros(like.shape[-1])
