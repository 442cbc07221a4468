"""A trained model as a PyTorch module."""

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .base import AbstractModel, AbstractSpec

if TYPE_CHECKING:
    import torch


def to_torch(model: AbstractModel) -> "torch.nn.Module":
    """The model as a plain module in evaluation mode, with the parameter names of `model.to_arrays()`.

    It takes float32 tokens of shape (length, dim) or (batch, length, dim) and answers as `model` does, to rounding.
    Nothing is dropped. Raises `InputError` where PyTorch is not installed, or the kind of model has no module.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError("to_torch needs PyTorch: pip install 'headcount[torch]' installs it.") from error
    module = model.torch_module()
    arrays = {name: torch.from_numpy(np.array(array, np.float32)) for name, array in model.to_arrays().items()}
    module.load_state_dict(arrays, strict=True)
    return module.eval()


def read_batch(tokens: "torch.Tensor", spec: AbstractSpec, length: int | None) -> "torch.Tensor":
    """Sequences as a module of that spec computes with them, as `read_tokens` has one: ids as numbers, and shorter
    sequences than `length` filled up with absent tokens where the spec masks them."""
    import torch

    tokens = tokens.float() if spec.token_ids else tokens
    missing = length - tokens.shape[1] if spec.masks_nan and length is not None else 0
    sides = (missing, 0) if spec.answered_at == "query" else (0, missing)
    return torch.nn.functional.pad(tokens, (0, 0, *sides), value=torch.nan) if missing > 0 else tokens
