"""The numbers a bucket trains on: a task's dataset, standardised by its training part."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..store import TrainSpec
from ..tasks import AbstractTask, Dataset


class Units(NamedTuple):
    """Mean and scale of tokens and targets: what standardising took out, and `models.in_raw_units` puts back."""

    token_mean: Float[Array, " dim"]
    token_scale: Float[Array, " dim"]
    target_mean: Float[Array, " outputs"]
    target_scale: Float[Array, " outputs"]


def standardised(task: AbstractTask, train: TrainSpec) -> tuple[Dataset, Units]:
    """The task's examples with every token number and every output at mean 0 and variance 1 over the training part."""
    data = task.dataset(train.train_examples, train.validation_examples, train.data_seed)
    tokens, targets = data.train_tokens, data.train_targets
    units = Units(
        jnp.mean(tokens, axis=(0, 1)),
        _scale(jnp.std(tokens, axis=(0, 1))),
        jnp.mean(targets, axis=0),
        _scale(jnp.std(targets, axis=0)),
    )
    return Dataset(
        (tokens - units.token_mean) / units.token_scale,
        (targets - units.target_mean) / units.target_scale,
        (data.validation_tokens - units.token_mean) / units.token_scale,
        (data.validation_targets - units.target_mean) / units.target_scale,
    ), units


def _scale(deviation: Float[Array, " n"]) -> Float[Array, " n"]:
    """A number that never varies is only centred."""
    return jnp.where(deviation > 0, deviation, 1.0)
