"""A loaded model and its examples in numbers: the facts "model" and "data". No torch is imported here."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..storing.cost import cached_bytes

if TYPE_CHECKING:
    from ..examples.batches import SplitExamples
    from ..layers.find import AttentionLayer
    from ..layers.weights import HeadWeights
    from .load import Loaded


def about_model(
    loaded: "Loaded", layers: "Sequence[AttentionLayer]", original: "Sequence[HeadWeights]", device: str
) -> dict[str, Any]:
    """The fact "model". Numbers that differ between layers are lists."""
    model: Any = loaded.model
    return {
        "name": loaded.source,
        "family": loaded.family,
        "architecture": type(model).__name__,
        "layers": len(layers),
        **{
            name: _one([getattr(layer, name) for layer in layers])
            for name in ("heads", "key_heads", "head_dim", "width")
        },
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "attention_parameters": sum(  # without biases, as the check of a changed model counts them
            array.size
            for weights in original
            for array in vars(weights).values()
            if array is not None and array.ndim == 3
        ),
        "cache_bytes_per_token": cached_bytes(loaded, layers),
        "rotary": any(layer.rotary is not None for layer in layers),
        "fingerprint": loaded.fingerprint,
        "torch": importlib.metadata.version("torch"),
        "transformers": importlib.metadata.version("transformers"),
        "device": device,
    }


def about_data(examples: "SplitExamples") -> dict[str, Any]:
    """The fact "data", but for the scale."""
    return {
        "kind": examples.kind,
        "words": examples.words,
        "cannot": examples.cannot,
        "loss": examples.loss.name,
        **examples.counts(),
    }


def short_name(source: str) -> str:
    """The last part of a folder's or a hub's name."""
    return Path(source.rstrip("/")).name or "model"


def _one(values: list[int]) -> int | list[int]:
    return values[0] if len(set(values)) == 1 else values


def digest_of(value: Any) -> str:
    """20 hex digits of the SHA-256 over everything in a value: arrays, tensors, texts, numbers, and containers of them.

    A function counts by its source, or by its compiled code where that cannot be read; an object with an `identity` by
    that; any other object by its class's name.

    Example:
        >>> digest_of({"x": np.arange(3)}) == digest_of({"x": np.arange(3)})
        True
        >>> digest_of(["a", "b"]) == digest_of(["ab"])
        False
    """
    digest = hashlib.sha256()
    _add_to_digest(digest, value)
    return digest.hexdigest()[:20]


def _add_to_digest(digest: Any, value: Any) -> None:
    if hasattr(value, "detach"):  # a tensor of torch, which is not imported for it
        value = value.detach().cpu().contiguous().numpy()
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)}\n".encode())
        for name, each in value.items():
            _add_to_digest(digest, str(name))
            _add_to_digest(digest, each)
    elif isinstance(value, list | tuple):
        digest.update(f"list {len(value)}\n".encode())
        for each in value:
            _add_to_digest(digest, each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        digest.update(f"{type(value).__name__}\n".encode())
        _add_to_digest(digest, {each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    elif isinstance(value, str | bytes | int | float | bool | None):
        digest.update(f"{type(value).__name__} {value!r}\n".encode())
    elif isinstance(value, functools.partial):
        _add_to_digest(digest, ["partial", value.func, value.args, value.keywords])
    else:
        digest.update(f"{_source(value)}\n".encode())
        identity = getattr(value, "identity", None)
        if identity is not None:
            _add_to_digest(digest, identity)


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (TypeError, OSError):
        code = getattr(value, "__code__", None)
        if code is not None:
            constants = [each for each in code.co_consts if not inspect.iscode(each)]  # the repr of code has an address
            return f"{code.co_code.hex()} {constants} {code.co_names}"
        return f"{type(value).__module__}.{type(value).__qualname__}"


Task = Literal["next token", "masked token", "text classes", "image classes", "text embedding", "image embedding"]
ENDINGS: dict[str, Task] = {
    "ForCausalLM": "next token",
    "LMHeadModel": "next token",
    "ForMaskedLM": "masked token",
    "ForPreTraining": "masked token",
    "ForSequenceClassification": "text classes",
    "ForImageClassification": "image classes",
    "ForImageClassificationWithTeacher": "image classes",
}


def task_of(model: Any) -> Task | None:
    """The task of a transformers model, by its class's name; None of a module that is not one."""
    if getattr(model, "config", None) is None or not hasattr(model, "main_input_name"):
        return None
    name = type(model).__name__
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending is not None:
        return ENDINGS[ending]
    return "image embedding" if model.main_input_name == "pixel_values" else "text embedding"


def reads_images(task: Task) -> bool:
    return task.startswith("image")
