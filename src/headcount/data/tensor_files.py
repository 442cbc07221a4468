"""Tensors in files: PyTorch's .pt, of which only plain tensors are loaded, and .safetensors."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import HeadcountError, InputError
from .conversions import with_lines
from .examples import Arrays, Wanted, no_options
from .memory import read_limited, require_fits, require_unpacked_fits

TENSOR_FACTOR = 2
"""Bytes of memory per byte of a file of tensors: it is read whole, and its arrays are copies."""
TORCH_LINES = (
    "import torch",
    "x, y = torch.load({path}, weights_only=False)[:]  # a TensorDataset; runs code in it: only if you trust the file",
    "torch.save({'x': x, 'y': y}, {pt})",
)


def read_pt(path: Path, wanted: Wanted) -> Arrays:
    """A dictionary with x and y, or a pair (x, y), that `torch.save` wrote."""
    no_options(path, wanted)
    try:
        import torch
    except ImportError as error:
        raise HeadcountError(f"{path}: .pt files need the package torch: pip install 'headcount[torch]'.") from error
    require_pt = "neither a dictionary with x and y nor a pair (x, y)"
    try:
        require_unpacked_fits(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # damaged zips and pickles raise many types
        if "GLOBAL" in str(error) or "Unsupported class" in str(error):  # a class that only a pickle can make
            raise with_lines(f"{path} holds Python objects, {require_pt}.", path, *TORCH_LINES) from error
        fix = "write it with torch.save({'x': x, 'y': y}, path), or copy it again"
        raise InputError(f"{path} cannot be read as a .pt file ({type(error).__name__}); {fix}.") from error
    if isinstance(content, tuple | list) and len(content) == 2:
        content = dict(zip(("x", "y"), content, strict=True))
    if isinstance(content, torch.Tensor):
        lines = ("import torch", "x, y = torch.load({path}), ...  # y: one target per example", TORCH_LINES[-1])
        raise with_lines(f"{path} holds one tensor, {require_pt}.", path, *lines)
    if not isinstance(content, Mapping):
        raise with_lines(f"{path} holds {type(content).__name__}, {require_pt}.", path, *TORCH_LINES)
    return Arrays({str(name): _plain(path, str(name), value, torch) for name, value in content.items()})


def _plain(path: Path, name: str, value: Any, torch: Any) -> Any:
    """A tensor as an array, and a list of tensors as a list of arrays."""
    if isinstance(value, torch.Tensor):
        require_fits(path, value.numel() * value.element_size())  # one number may stand for all of them
        try:
            return (value.float() if value.dtype == torch.bfloat16 else value).detach().numpy()
        except Exception as error:  # sparse, quantised and nested tensors raise different types
            kind = f"{value.layout} of {value.dtype}"
            raise InputError(
                f"{path}: {name} is a tensor that NumPy does not have ({kind}); save {name}.to_dense()."
            ) from error
    return [_plain(path, name, part, torch) for part in value] if isinstance(value, list | tuple) else value


def read_safetensors(path: Path, wanted: Wanted) -> Arrays:
    """The tensors of a .safetensors file."""
    no_options(path, wanted)
    from safetensors.numpy import load

    try:
        return Arrays(load(read_limited(path, TENSOR_FACTOR)))
    except (InputError, MemoryError):
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); copy it again.") from error
    except Exception as error:  # its own error for damage, KeyError and TypeError for dtypes that NumPy does not have
        fault = f"{path} cannot be read as .safetensors ({type(error).__name__}: {_line(error)})"
        raise InputError(f"{fault}; write it with save_file({{'x': x, 'y': y}}, path), or copy it again.") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:120]
