"""Which tokens the heads read. Needs torch."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from ..losses.loss import device_of, no_cache

if TYPE_CHECKING:
    from .evaluate import Evaluation


def attention_maps(
    evaluation: "Evaluation", examples: int
) -> tuple[Float[np.ndarray, "heads queries keys"], ...] | None:
    """Attention weights of each layer of the original on the first calibration examples.

    The queries of all examples stand one after another, padding left out; keys are counted from each example's first.
    None where the model does not hand out its attention weights.
    """
    model: Any = evaluation.model
    layers = evaluation.layers
    implementation = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if implementation is None or any(batch.given is not None for batch in evaluation.examples.calibration):
        return None
    maps: list[list[np.ndarray]] = [[] for _ in layers]
    left = examples
    try:
        model.set_attn_implementation("eager")
        for batch in evaluation.examples.calibration:
            if left <= 0:
                break
            with torch.no_grad():
                answer = model(**batch.inputs_on(device_of(model)), **no_cache(model), output_attentions=True)
            attentions = getattr(answer, "attentions", None)
            if attentions is None or len(attentions) != len(layers) or any(item is None for item in attentions):
                return None
            for place, weights in enumerate(attentions):
                maps[place] += [_queries(weights, batch.counted, row) for row in range(min(left, len(weights)))]
            left -= len(attentions[0])
    except (ValueError, TypeError, AttributeError):  # The class has no such option.
        return None
    finally:
        model.set_attn_implementation(implementation)
    keys = max(item.shape[2] for item in maps[0])
    return tuple(
        np.concatenate([np.pad(item, ((0, 0), (0, 0), (0, keys - item.shape[2]))) for item in items], axis=1)
        for items in maps
    )


def _queries(weights: torch.Tensor, counted: torch.Tensor | None, row: int) -> np.ndarray:
    """Of one row of the batch, the real tokens' weights on the real tokens."""
    values = weights[row].double().cpu().numpy()
    if counted is None or counted.shape[1] != values.shape[1]:
        return values
    real = counted[row].cpu().numpy()
    return values[:, real][:, :, real]
