"""One embedding per text, as the model's folder says. Needs torch."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ...errors import InputError
from ..examples.batches import Batch
from .loss import device_of, no_cache

POOLINGS = ("mean", "cls", "max", "lasttoken", "mean_sqrt_len")


def read_pooling(folder: Path | None) -> str:
    """The pooling of a sentence-transformers folder, its `1_Pooling/config.json`; "mean" where there is none."""
    path = None if folder is None else folder / "1_Pooling" / "config.json"
    if path is None or not path.is_file():
        return "mean"
    try:
        config = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON; copy the folder again, or remove it for mean pooling.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} is not a JSON object; copy the folder again, or remove it for mean pooling.")
    chosen = [config["pooling_mode"]] if "pooling_mode" in config else []
    for name in POOLINGS:
        chosen += [name] * any(config.get(f"pooling_mode_{name}{end}") for end in ("", "_token", "_tokens"))
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        raise InputError(
            f"{path} asks for the pooling {' and '.join(chosen) or 'of no kind'}; "
            f"headcount knows one of {', '.join(POOLINGS)}. Give your own loss instead: --data mine.py:loss."
        )
    return chosen[0]


def text_embedding(pooling: str) -> Callable[[nn.Module, Batch], Float[Tensor, "rows dim"]]:
    """A function that embeds the rows of a batch, as vectors of length 1; padding does not count."""

    def embed(model: nn.Module, batch: Batch) -> Float[Tensor, "rows dim"]:
        inputs = batch.inputs_on(device_of(model))
        hidden = model(**inputs, **no_cache(model))[0]
        mask = inputs["attention_mask"][..., None].to(hidden)
        return functional.normalize(pooled(hidden, mask, pooling), dim=-1)

    return embed


def pooled(hidden: Float[Tensor, "rows tokens dim"], mask: Float[Tensor, "rows tokens 1"], pooling: str) -> Tensor:
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "max":
        return hidden.masked_fill(mask == 0, -torch.inf).amax(1)
    if pooling == "lasttoken":
        last = mask[..., 0].sum(1).long() - 1
        return hidden[torch.arange(len(hidden), device=hidden.device), last]
    total, count = (hidden * mask).sum(1), mask.sum(1)
    return total / (count if pooling == "mean" else count.sqrt())
