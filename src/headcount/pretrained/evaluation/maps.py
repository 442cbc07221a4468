"""Attention weights of a model, example by example. Needs torch."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from ..examples.batches import Batch
from ..losses.loss import device_of, no_cache


def attention_maps(
    model: Any, layers: int, batches: Sequence[Batch], examples: int
) -> Iterator[list[Float[np.ndarray, "heads queries keys"]]]:
    """Each layer's attention between the real tokens of an example, for the first examples.

    Nothing where the model does not hand it out. The weights are large: one example is run at a time, nothing is kept.
    """
    implementation = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if implementation is None or any(batch.given is not None for batch in batches):
        return
    rows = ((batch, row) for batch in batches for row in range(batch.examples))
    try:
        model.set_attn_implementation("eager")
        for batch, row in itertools.islice(rows, examples):
            inputs = {name: value[row : row + 1] for name, value in batch.inputs_on(device_of(model)).items()}
            with torch.no_grad():
                answer = model(**inputs, **no_cache(model), output_attentions=True)
            attentions = getattr(answer, "attentions", None) or ()
            if len(attentions) != layers or any(item is None for item in attentions):
                return
            counted = None if batch.counted is None else batch.counted[row].cpu().numpy()
            yield [_real(weights[0].double().cpu().numpy(), counted) for weights in attentions]
    except (ValueError, TypeError, AttributeError):  # The class has no such option.
        return
    finally:
        model.set_attn_implementation(implementation)


def _real(
    weights: Float[np.ndarray, "heads queries keys"], counted: np.ndarray | None
) -> Float[np.ndarray, "heads real_queries real_keys"]:
    """The real tokens' weights on the real tokens."""
    if counted is None or len(counted) != weights.shape[1]:
        return weights
    return weights[:, counted][:, :, counted]
