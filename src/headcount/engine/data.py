"""The numbers a bucket trains on: a task's examples, stored, kept raw or drawn afresh, standardised where the model
wants it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from .._keys import named_key
from .._shapes import AnyArray, Key
from ..models import AbstractSpec
from ..store import TrainSpec
from ..tasks import AbstractTask, AnyTask, Dataset, LabelledTask, Tokenise, taken

PROBE_EXAMPLES = 1024
"""Examples from which a stream's means and scales are taken."""


class Units(NamedTuple):
    """Mean and scale of tokens and targets: what standardising took out, and `AbstractModel.in_raw_units` puts back."""

    token_mean: Float[AnyArray, " dim"]
    token_scale: Float[AnyArray, " dim"]
    target_mean: Float[AnyArray, "*places outputs"]
    target_scale: Float[AnyArray, "*places outputs"]


class Stored(eqx.Module):
    """Examples that are all there; a batch is drawn from them with replacement."""

    tokens: Float[Array, "examples length dim"]
    targets: Float[Array, "examples *places outputs"]

    def batch(self, key: Key, count: int) -> tuple[Array, Array]:
        chosen = jr.randint(key, (count,), 0, len(self.tokens))
        return self.tokens[chosen], self.targets[chosen]

    def tokens_at(self, place: Int[Array, ""]) -> Array:
        return self.tokens[place]


class Kept(eqx.Module):
    """Examples as they came, made into tokens whenever they are shown; a batch is drawn with replacement.

    `key` draws what is drawn in showing an example outside of training, always the same.
    """

    content: PyTree[Array]
    targets: Int[Array, " examples"]
    tokenise: Tokenise
    key: Key

    def batch(self, key: Key, count: int) -> tuple[Array, Array]:
        which, shown = jr.split(key)
        chosen = jr.randint(which, (count,), 0, len(self.targets))
        return jax.vmap(self.tokenise)(taken(self.content, chosen), jr.split(shown, count)), self.targets[chosen]

    def tokens_at(self, place: Int[Array, ""]) -> Array:
        return self.tokenise(taken(self.content, place), jr.fold_in(self.key, place))


class Fresh(eqx.Module):
    """Examples that no one has seen before: every batch is drawn from the task. Nothing is stored."""

    task_arrays: AbstractTask
    task_rest: AbstractTask = eqx.field(static=True)
    units: Units | None

    def __init__(self, task: AbstractTask, units: Units | None):
        self.task_arrays, self.task_rest = eqx.partition(task, eqx.is_array)
        self.units = units

    def batch(self, key: Key, count: int) -> tuple[Array, Array]:
        task = eqx.combine(self.task_arrays, self.task_rest)
        tokens = jax.vmap(task.sample)(jr.split(key, count))
        targets = jax.vmap(task.target)(tokens)
        if self.units is None:
            return tokens, targets
        return _standard(tokens, targets, self.units)


class Examples(eqx.Module):
    """What a bucket learns from and what it is judged on.

    `target_variance` turns a mean squared error into a share of the target's variance: 1 for standardised targets, and
    for labels, whose errors are shares already. `probe` are some training tokens, to set scales by, where a model does.
    """

    train: Stored | Fresh | Kept
    target_variance: Float[Array, ""]
    probe: Float[Array, "examples length dim"] | None
    validation: Stored | Kept


def examples(task: AnyTask, model: AbstractSpec, train: TrainSpec) -> tuple[Examples, Units | None]:
    """The task's examples, for a model that standardises with mean 0 and variance 1 over the training part.

    Units are None where the model reads the task's own.
    """
    if isinstance(task, LabelledTask):
        return _kept_examples(task, train), None
    fresh = train.train_examples == 0
    data = task.dataset(train.train_examples or PROBE_EXAMPLES, train.validation_examples, train.data_seed)
    # In NumPy: done once, these few operations would cost more to compile than to do.
    parts: Any = [np.asarray(part) for part in data]
    data = Dataset(*parts)
    units, variance = None, np.mean(np.var(data.train_targets, axis=0))
    if model.standardises:
        variance = 1.0
        units = Units(*_mean_and_scale(data.train_tokens, (0, 1)), *_mean_and_scale(data.train_targets, (0,)))
        data = Dataset(
            *_standard(data.train_tokens, data.train_targets, units),
            *_standard(data.validation_tokens, data.validation_targets, units),
        )
    tokens, targets, validation_tokens, validation_targets = map(jnp.asarray, data)
    source = Fresh(task, units) if fresh else Stored(tokens, targets)
    scale = jnp.asarray(variance, jnp.float32)
    return Examples(source, scale, tokens[:PROBE_EXAMPLES], Stored(validation_tokens, validation_targets)), units


def _kept_examples(task: LabelledTask, train: TrainSpec) -> Examples:
    parts = task.examples(train.train_examples, train.validation_examples, train.data_seed)
    tokenise = jax.tree.map(jnp.asarray, task.tokenise)
    learned, judged = (
        Kept(
            jax.tree.map(jnp.asarray, part.content),
            jnp.asarray(part.labels),
            tokenise,
            named_key(train.data_seed, "shown", name),
        )
        for name, part in zip(("train", "validation"), parts, strict=True)
    )
    return Examples(learned, jnp.ones(()), None, judged)


def _standard(tokens: Any, targets: Any, units: Units) -> tuple[Any, Any]:
    return (tokens - units.token_mean) / units.token_scale, (targets - units.target_mean) / units.target_scale


def _mean_and_scale(values: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Mean and standard deviation; a number that never varies is only centred."""
    deviation = np.std(values, axis=axes)
    return np.mean(values, axis=axes), np.where(deviation > 0, deviation, 1.0).astype(deviation.dtype)
