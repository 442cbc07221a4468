"""A trained model as a PyTorch module."""

from typing import TYPE_CHECKING

import numpy as np

from .._errors import InputError
from .base import AbstractModel

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
