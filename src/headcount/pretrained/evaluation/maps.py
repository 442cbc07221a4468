"""Attention weights of the original, and which heads read the same tokens. Needs torch."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from ..losses.loss import device_of, no_cache
from ..sharing.redundancy import same_reading

if TYPE_CHECKING:
    from .evaluate import Evaluation


def attention_maps(evaluation: "Evaluation", examples: int) -> Iterator[list[Float[np.ndarray, "heads queries keys"]]]:
    """Each layer's attention between the real tokens of a calibration example, for the first examples.

    Nothing where the model does not hand it out. The weights are large: one example is run at a time, nothing is kept.
    """
    model: Any = evaluation.model
    implementation = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if implementation is None or any(batch.given is not None for batch in evaluation.examples.calibration):
        return
    rows = ((batch, row) for batch in evaluation.examples.calibration for row in range(batch.examples))
    try:
        model.set_attn_implementation("eager")
        for batch, row in itertools.islice(rows, examples):
            inputs = {name: value[row : row + 1] for name, value in batch.inputs_on(device_of(model)).items()}
            with torch.no_grad():
                answer = model(**inputs, **no_cache(model), output_attentions=True)
            attentions = getattr(answer, "attentions", None) or ()
            if len(attentions) != len(evaluation.layers) or any(item is None for item in attentions):
                return
            counted = None if batch.counted is None else batch.counted[row].cpu().numpy()
            yield [_real(weights[0].double().cpu().numpy(), counted) for weights in attentions]
    except (ValueError, TypeError, AttributeError):  # The class has no such option.
        return
    finally:
        model.set_attn_implementation(implementation)


def heads_reading_alike(evaluation: "Evaluation", examples: int) -> tuple[Float[np.ndarray, "heads heads"], ...] | None:
    """`same_reading` of each layer of the original, over the queries of the first calibration examples.

    None where the model does not hand out its attention weights.
    """
    sums, queries = [np.zeros((layer.heads, layer.heads)) for layer in evaluation.layers], 0
    for maps in attention_maps(evaluation, examples):
        for total, weights in zip(sums, maps, strict=True):
            total += weights.shape[1] * same_reading(weights)
        queries += maps[-1].shape[1]
    return tuple(total / queries for total in sums) if queries else None


def _real(
    weights: Float[np.ndarray, "heads queries keys"], counted: np.ndarray | None
) -> Float[np.ndarray, "heads real_queries real_keys"]:
    """The real tokens' weights on the real tokens."""
    if counted is None or len(counted) != weights.shape[1]:
        return weights
    return weights[:, counted][:, :, counted]
