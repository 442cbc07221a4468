"""Which heads read the same tokens. Needs torch."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from ..losses.loss import device_of, no_cache
from ..sharing.redundancy import same_reading

if TYPE_CHECKING:
    from .evaluate import Evaluation


def heads_reading_alike(evaluation: "Evaluation", examples: int) -> tuple[Float[np.ndarray, "heads heads"], ...] | None:
    """`same_reading` of each layer of the original, over the queries of the first calibration examples.

    None where the model does not hand out its attention weights. They are large, so one example is run at a time and
    nothing of it is kept.
    """
    model: Any = evaluation.model
    layers = evaluation.layers
    implementation = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if implementation is None or any(batch.given is not None for batch in evaluation.examples.calibration):
        return None
    sums = [np.zeros((layer.heads, layer.heads)) for layer in layers]
    queries = 0
    rows = ((batch, row) for batch in evaluation.examples.calibration for row in range(batch.examples))
    try:
        model.set_attn_implementation("eager")
        for (batch, row), _ in zip(rows, range(examples), strict=False):
            inputs = {name: value[row : row + 1] for name, value in batch.inputs_on(device_of(model)).items()}
            with torch.no_grad():
                answer = model(**inputs, **no_cache(model), output_attentions=True)
            attentions = getattr(answer, "attentions", None)
            if attentions is None or len(attentions) != len(layers) or any(item is None for item in attentions):
                return None
            counted = None if batch.counted is None else batch.counted[row].cpu().numpy()
            for total, weights in zip(sums, attentions, strict=True):
                read = _real(weights[0].double().cpu().numpy(), counted)
                total += read.shape[1] * same_reading(read)
            queries += read.shape[1]
    except (ValueError, TypeError, AttributeError):  # The class has no such option.
        return None
    finally:
        model.set_attn_implementation(implementation)
    return tuple(total / queries for total in sums)


def _real(
    weights: Float[np.ndarray, "heads queries keys"], counted: np.ndarray | None
) -> Float[np.ndarray, "heads real_queries real_keys"]:
    """The real tokens' weights on the real tokens."""
    if counted is None or len(counted) != weights.shape[1]:
        return weights
    return weights[:, counted][:, :, counted]
