"""What a model costs: parameters, cache per token, seconds per 1,000 tokens on this machine."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .preflight import Shaped

if TYPE_CHECKING:
    from torch import nn

REPEATS = 5
CAUSAL = ("ForCausalLM", "LMHeadModel")
"""How the names of classes that keep a cache end."""
LENGTH = 256
"""Tokens of the sequence that is timed, where the model takes as many."""


def cache_bytes_per_token(layers: Sequence[Shaped], bytes_per_number: int = 4) -> int:
    """Bytes that a decoder keeps per token it has read: keys and values of every layer's key heads.

    Example:
        >>> from headcount.pretrained.storing.preflight import LayerShape
        >>> cache_bytes_per_token([LayerShape(heads=8, key_heads=2, head_dim=16)] * 6)
        1536
    """
    return sum(2 * layer.key_heads * layer.head_dim for layer in layers) * bytes_per_number


def keeps_cache(architecture: str) -> bool:
    """Whether a class of this name generates text, and so caches keys and values."""
    return architecture.endswith(CAUSAL)


def seconds_per_thousand_tokens(
    models: Mapping[str, "nn.Module"], inputs: Mapping[str, Any], tokens: int, *, repeats: int = REPEATS
) -> dict[str, float]:
    """Seconds of a forward pass per 1,000 tokens: the median of repeats, which take turns so that the ratio is fair.

    Args:
        models: By name, run one after the other in every repeat, after one pass that is not counted.
        inputs: Keyword arguments of the forward pass, torch tensors.
        tokens: How many tokens the inputs hold.
        repeats: Passes per model that count.
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


def seconds_of(models: Mapping[str, "nn.Module"], *, repeats: int = REPEATS) -> dict[str, float]:
    """`seconds_per_thousand_tokens` on one sequence of random tokens, or one image, on this machine."""
    import torch

    first = next(iter(models.values()))
    config: Any = first.config
    generator = torch.Generator().manual_seed(0)
    if (side := getattr(config, "image_size", None)) is not None:
        side = side if isinstance(side, int) else side[0]
        inputs = {"pixel_values": torch.randn(1, getattr(config, "num_channels", 3), side, side, generator=generator)}
        tokens = (side // config.patch_size) ** 2
    else:
        tokens = min(LENGTH, (getattr(config, "max_position_embeddings", None) or LENGTH) - 4)
        inputs = {"input_ids": torch.randint(0, config.vocab_size, (1, tokens), generator=generator)}
    device = next(first.parameters()).device
    return seconds_per_thousand_tokens(
        models, {name: tensor.to(device) for name, tensor in inputs.items()}, tokens, repeats=repeats
    )
