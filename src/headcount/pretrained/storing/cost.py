"""What a model costs: cache per token, seconds per 1,000 tokens on this machine."""

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._draws import named_generator
from ..layers.weights import Shaped

if TYPE_CHECKING:
    from torch import nn

    from ..loading.load import Loaded

REPEATS = 5
CAUSAL = ("ForCausalLM", "LMHeadModel")
"""How the names of classes end that generate text, and so cache keys and values."""
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes per number, by the names of torch."""
LENGTH = 256
"""Tokens of the sequence that is timed, where the model takes as many."""


def stored_dtype(folder: Path | None) -> str:
    """The name of the precision that a folder's weights are stored in; float32 where it does not say, or of None."""
    if folder is None:
        return "float32"
    stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    name = str(stored.get("dtype") or stored.get("torch_dtype")).removeprefix("torch.")
    return name if name in BYTES else "float32"


def cached_bytes(loaded: "Loaded", layers: Sequence[Shaped]) -> int | None:
    """`cache_bytes_per_token` of these layers in the class and precision of a loaded model."""
    return cache_bytes_per_token(type(loaded.model).__name__, loaded.folder, layers)


def cache_bytes_per_token(architecture: str, folder: Path | None, layers: Sequence[Shaped]) -> int | None:
    """Bytes that a decoder keeps per token it has read: keys and values of every layer's key heads.

    None where the class called `architecture` keeps no cache. A number has the precision of the folder's weights.

    Example:
        >>> from headcount.pretrained.storing.preflight import AttentionShape
        >>> cache_bytes_per_token("LlamaForCausalLM", None, [AttentionShape(heads=8, key_heads=2, head_dim=16)] * 6)
        1536
    """
    if not architecture.endswith(CAUSAL):
        return None
    return sum(2 * layer.key_heads * layer.head_dim for layer in layers) * BYTES[stored_dtype(folder)]


def seconds_per_thousand_tokens(
    models: Mapping[str, "nn.Module"], inputs: Mapping[str, Any], tokens: int, *, repeats: int = REPEATS
) -> dict[str, float]:
    """Seconds of a forward pass per 1,000 tokens: the median of repeats, which take turns so that the ratio is fair.

    `inputs`, keyword arguments of the pass, hold this number of `tokens`. The first pass is not counted.
    """
    import torch

    seconds: dict[str, list[float]] = {name: [] for name in models}
    with torch.inference_mode():
        for repeat in range(repeats + 1):
            for name, model in models.items():
                began = time.perf_counter()
                model(**inputs)
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                if repeat:
                    seconds[name].append(time.perf_counter() - began)
    return {name: 1000 * statistics.median(times) / tokens for name, times in seconds.items()}


def seconds_of(models: Mapping[str, "nn.Module"]) -> dict[str, float]:
    """`seconds_per_thousand_tokens` on one sequence of random tokens, or one image, on this machine."""
    import torch

    from ..examples.images import smooth_images, tokens_per_image

    first = next(iter(models.values()))
    config: Any = first.config
    if getattr(config, "image_size", None) is not None:
        inputs, tokens = {"pixel_values": smooth_images(first, 1, seed=0)}, tokens_per_image(first)
    else:
        tokens = min(LENGTH, (getattr(config, "max_position_embeddings", None) or LENGTH) - 4)
        drawn = named_generator(0, "timed tokens").integers(0, config.vocab_size, (1, tokens))
        inputs = {"input_ids": torch.from_numpy(drawn)}
    device = next(first.parameters()).device
    return seconds_per_thousand_tokens(models, {name: each.to(device) for name, each in inputs.items()}, tokens)
