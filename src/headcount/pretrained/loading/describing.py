"""A loaded model and its examples in numbers: the facts "model" and "data". No torch is imported here."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..inspection.effort import ModelSize
from ..storing.cost import cached_bytes

if TYPE_CHECKING:
    from ..examples.batches import Examples
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


def about_data(examples: "Examples") -> dict[str, Any]:
    """The fact "data", but for the scale."""
    return {
        "kind": examples.kind,
        "words": examples.words,
        "cannot": examples.cannot,
        "loss": examples.loss.name,
        **examples.counts(),
    }


def size_of(loaded: "Loaded", layers: "Sequence[AttentionLayer]") -> ModelSize:
    """What the cost of an inspection depends on."""
    from ..examples.sizes import block_and_head_parameters

    return ModelSize(
        layers=len(layers),
        heads=sum(layer.heads for layer in layers),
        used_parameters=max(1, sum(block_and_head_parameters(loaded.model))),
    )


def short_name(source: str) -> str:
    """The last part of a folder's or a hub's name."""
    return Path(source.rstrip("/")).name or "model"


def _one(values: list[int]) -> int | list[int]:
    return values[0] if len(set(values)) == 1 else values
