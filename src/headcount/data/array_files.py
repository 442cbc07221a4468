"""Files of arrays called x and y: NumPy's .npz and .npy, PyTorch's .pt, .safetensors, .json and JSON lines.

What is too large is refused by a header, before memory goes. Pickled objects are never loaded.
"""

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import require_fits
from ..errors import HeadcountError, InputError, require
from .examples import LoadedExamples, Wanted, examples_of_arrays, with_lines
from .lines import numbered_records, type_name
from .memory import read_limited, require_arrays_fit, require_unpacked_fits

TENSOR_FACTOR = 2
"""Bytes of memory per byte of a file of tensors: it is read whole, and its arrays are copies."""
TORCH_LINES = (
    "import torch",
    "content = torch.load({path}, weights_only=False)  # runs code in it: only if you trust the file",
    "x, y = content[:]  # of a TensorDataset; y: one target per example",
    "torch.save({'x': x, 'y': y}, {pt})",
)


def read_npz(path: Path, wanted: Wanted) -> LoadedExamples:
    """Return the arrays of an .npz."""
    content = _load_numpy(path)
    fault = f"{path} is an .npy file by its content; rename it, and pass y with targets=y.npy."
    require(not isinstance(content, np.ndarray), fault, what="targets")
    with content:
        return examples_of_arrays(path, {name: content[name] for name in content.files}, wanted)


def read_npy(path: Path, wanted: Wanted) -> LoadedExamples:
    """Return x from one .npy and y from another."""
    if wanted.targets is None:
        raise InputError(f"{path} holds x alone; pass y in another, as in targets=y.npy.", what="targets")
    missing = f"no file {wanted.targets}, the targets of {path}; give the .npy that holds y."
    require(os.path.isfile(wanted.targets), missing, what="targets")
    arrays = {"x": _load_numpy(path), "y": _load_numpy(Path(wanted.targets))}
    for name, content in arrays.items():
        both = f"{path} must hold x alone and its targets {wanted.targets} y alone, but the file of {name} is an .npz."
        require(isinstance(content, np.ndarray), both, what="targets" if name == "y" else "")
    return examples_of_arrays(path, arrays, wanted)


def _load_numpy(path: Path) -> Any:
    require_arrays_fit(path)
    return np.load(path, allow_pickle=False)


def read_pt(path: Path, wanted: Wanted) -> LoadedExamples:
    """Read a dictionary with x and y, or a pair (x, y), that `torch.save` wrote; only plain tensors are loaded."""
    try:
        import torch
    except ImportError as error:
        raise HeadcountError(f"{path}: .pt files need the package torch: pip install 'headcount[torch]'.") from error
    require_unpacked_fits(path)
    fault = "neither a dictionary with x and y nor a pair (x, y)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if "GLOBAL" in str(error) or "Unsupported class" in str(error):  # a class that only a pickle can make
            raise with_lines(f"{path} holds Python objects, {fault}.", path, *TORCH_LINES) from error
        raise
    if isinstance(content, tuple | list) and len(content) == 2:
        content = dict(zip(("x", "y"), content, strict=True))
    if not isinstance(content, Mapping):
        raise with_lines(f"{path} holds {type(content).__name__}, {fault}.", path, *TORCH_LINES)
    return examples_of_arrays(
        path, {str(name): _numpy_of(path, value, torch) for name, value in content.items()}, wanted
    )


def _numpy_of(path: Path, value: Any, torch: Any) -> Any:
    """Return a tensor as an array, and a list of tensors as a list of arrays."""
    if not isinstance(value, torch.Tensor):
        return [_numpy_of(path, part, torch) for part in value] if isinstance(value, list | tuple) else value
    require_fits(path, value.numel() * value.element_size())  # one number may stand for all of them
    return (value.float() if value.dtype == torch.bfloat16 else value).detach().numpy()


def read_safetensors(path: Path, wanted: Wanted) -> LoadedExamples:
    """Return the tensors of a .safetensors file."""
    from safetensors.numpy import load

    return examples_of_arrays(path, load(read_limited(path, TENSOR_FACTOR)), wanted)


def read_json(path: Path, wanted: Wanted) -> LoadedExamples:
    """Read a list of examples, or one object with all of x and y."""
    content: Any = json.loads(read_limited(path).decode("utf-8-sig"))
    if isinstance(content, dict):
        return examples_of_arrays(path, content, wanted)
    require(isinstance(content, list), f"{path} must hold a list of examples or an object, got {type_name(content)}.")
    return _joined_records(path, [(f"example {place}", record) for place, record in enumerate(content)], wanted)


def read_json_lines(path: Path, wanted: Wanted) -> LoadedExamples:
    """Read one example per line, an object with x and y."""
    return _joined_records(
        path, [(f"line {line}", record) for line, record in numbered_records(path, kept=True)], wanted
    )


def _joined_records(path: Path, examples: list[tuple[str, Any]], wanted: Wanted) -> LoadedExamples:
    require(len(examples) > 0, f"{path} has no examples; it needs at least 40.")
    for where, record in examples:
        require(isinstance(record, dict), f"{path}, {where}: must be an object, got {type_name(record)}.")
        fault = f"an example must have the keys x and y and no others, found {_listed_keys(record)}"
        require(record.keys() == {"x", "y"}, f"{path}, {where}: {fault}.")
    return examples_of_arrays(path, {name: [record[name] for _, record in examples] for name in ("x", "y")}, wanted)


def holds_examples(path: Path) -> bool:
    """Return whether a file of JSON lines holds examples rather than passages, by the keys of its first line."""
    for line, record in numbered_records(path):
        is_passages = "query" in record or any(key.startswith("positive") for key in record)
        if not is_passages and record.keys().isdisjoint("xy"):
            keys = f"examples must have the keys x and y, passages query and positive; found {_listed_keys(record)}"
            raise InputError(f"{path}, line {line}: {keys}.")
        return not is_passages
    raise InputError(f"{path} is empty; write one example per line.")


def _listed_keys(record: dict[str, Any]) -> str:
    return ", ".join(map(str, list(record)[:8])) or "none"
