"""The numbers a bucket trains on: a task's dataset, standardised by its training part."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._shapes import AnyArray
from ..store import TrainSpec
from ..tasks import AbstractTask, Dataset


class Units(NamedTuple):
    """Mean and scale of tokens and targets: what standardising took out, and `models.in_raw_units` puts back."""

    token_mean: Float[AnyArray, " dim"]
    token_scale: Float[AnyArray, " dim"]
    target_mean: Float[AnyArray, " outputs"]
    target_scale: Float[AnyArray, " outputs"]


def standardised(task: AbstractTask, train: TrainSpec) -> tuple[Dataset, Units]:
    """The task's examples with every token number and every output at mean 0 and variance 1 over the training part."""
    data = task.dataset(train.train_examples, train.validation_examples, train.data_seed)
    # In NumPy: done once, these few operations would cost more to compile than to do.
    parts: Any = [np.asarray(part) for part in data]
    data = Dataset(*parts)
    units = Units(
        *_mean_and_scale(data.train_tokens, axes=(0, 1)),
        *_mean_and_scale(data.train_targets, axes=(0,)),
    )
    return Dataset(
        jnp.asarray((data.train_tokens - units.token_mean) / units.token_scale),
        jnp.asarray((data.train_targets - units.target_mean) / units.target_scale),
        jnp.asarray((data.validation_tokens - units.token_mean) / units.token_scale),
        jnp.asarray((data.validation_targets - units.target_mean) / units.target_scale),
    ), units


def _mean_and_scale(values: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Mean and standard deviation; a number that never varies is only centred."""
    deviation = np.std(values, axis=axes)
    return np.mean(values, axis=axes), np.where(deviation > 0, deviation, 1.0).astype(deviation.dtype)
