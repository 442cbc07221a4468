"""The numbers a bucket trains on: stored tokens, raw examples tokenised on the device, or fresh draws.

Tokens and targets are standardised where the model is trained so; labels stay as they are.
"""

import json
import threading
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from .._compile import on_device
from .._precision import wide
from .._shapes import AnyArray, Key
from ..keys import named_key
from ..models import AbstractSpec
from ..store import TrainSpec
from ..tasks import AbstractObjective, AbstractTask, Examples, GeneratedTask, Split, Tokenise, examples_at
from ..tasks.base import has_user_code
from ..tasks.objective import AbstractLabelObjective

PROBE_EXAMPLES = 1024
"""Examples from which a stream's means and scales are taken."""
REMOVAL_EXAMPLES = 512
"""Training examples on which heads are compared before one is removed."""


class Units(NamedTuple):
    """Mean and scale of tokens and targets: what standardising removed, and `model.in_raw_units` restores."""

    token_mean: Float[AnyArray, " dim"]
    token_scale: Float[AnyArray, " dim"]
    target_mean: Float[AnyArray, "*places outputs"]
    target_scale: Float[AnyArray, "*places outputs"]

    def inverse(self) -> "Units":
        """The units in which what was standardised is in its own again: a model in raw units goes back to standard."""
        return Units(
            -self.token_mean / self.token_scale,
            1 / self.token_scale,
            -self.target_mean / self.target_scale,
            1 / self.target_scale,
        )

    def standardised(self, tokens: Any, targets: Any, objective: AbstractObjective) -> tuple[Any, Any]:
        """Tokens and targets in the units a model is trained in; labels, which are places in a list, as they are."""
        tokens = (tokens - self.token_mean) / self.token_scale
        if isinstance(objective, AbstractLabelObjective):
            return tokens, targets
        return tokens, (targets - self.target_mean) / self.target_scale


def chosen_examples(key: Key, count: int, examples: int | Int[Array, ""]) -> Int[Array, " count"]:
    """The examples of a batch of stored tokens."""
    return jr.randint(key, (count,), 0, examples)


class StoredTokens(eqx.Module):
    """Examples as tokens; a batch is drawn with replacement."""

    tokens: Float[Array, "examples length dim"]
    targets: Float[Array, "examples *places outputs"] | Int[Array, "examples *places"]

    def batch(self, key: Key, count: int) -> tuple[Array, Array]:
        chosen = chosen_examples(key, count, len(self.tokens))
        return self.tokens[chosen], self.targets[chosen]

    def tokens_at(self, index: Int[Array, ""]) -> Array:
        return self.tokens[index]


class RawExamples(eqx.Module):
    """Examples as they are stored, tokenised whenever they are shown; a batch is drawn with replacement.

    Outside of training `key` draws what tokenising draws, always the same.
    """

    content: PyTree[Array]
    targets: Int[Array, " examples"]
    tokenise: Tokenise
    key: Key

    def batch(self, key: Key, count: int) -> tuple[Array, Array]:
        which, shown = jr.split(key)
        chosen = jr.randint(which, (count,), 0, len(self.targets))
        return jax.vmap(self.tokenise)(examples_at(self.content, chosen), jr.split(shown, count)), self.targets[chosen]

    def tokens_at(self, index: Int[Array, ""]) -> Array:
        return self.tokenise(examples_at(self.content, index), jr.fold_in(self.key, index))


class FreshExamples(eqx.Module):
    """Every batch is drawn from the task; nothing is stored.

    `unshared` keeps a program with a user's code from serving other examples: the same function is another one when a
    variable that it reads has changed.
    """

    task_arrays: GeneratedTask
    task_rest: GeneratedTask = eqx.field(static=True)
    unshared: object = eqx.field(static=True)
    units: Units | None

    def __init__(self, task: GeneratedTask, units: Units | None):
        self.task_arrays, self.task_rest = eqx.partition(task, eqx.is_array)
        self.unshared = object() if has_user_code(task) else None
        self.units = units

    def batch(self, key: Key, count: int) -> tuple[Array, Array]:
        task = eqx.combine(self.task_arrays, self.task_rest)
        tokens = jax.vmap(task.sample)(jr.split(key, count))
        targets = jax.vmap(task.target)(tokens)
        if self.units is None:
            return tokens, targets
        return self.units.standardised(tokens, targets, task.objective)


class BucketData(eqx.Module):
    """Training and validation examples of a bucket.

    `target_variance` turns a mean squared error into a share of the target's variance: 1 for standardised targets, and
    for labels, whose errors are shares already; with a label per token, of all places: then it is the share of places
    that have one. `probe` are some training tokens, where a model is calibrated by them.
    """

    train: StoredTokens | FreshExamples | RawExamples
    target_variance: Float[Array, ""]
    probe: Float[Array, "examples length dim"] | None
    validation: StoredTokens | RawExamples


class PreparedData(NamedTuple):
    """The data on the device, the units they were standardised from (None: the task's own), and the error of the best
    constant answer to the validation examples with its standard error."""

    data: BucketData
    units: Units | None
    baseline: tuple[float, float]

    def removal_tokens(self) -> Any:
        """Training tokens on which heads are compared before one is removed."""
        assert self.data.probe is not None
        return np.asarray(self.data.probe)[:REMOVAL_EXAMPLES]


class PreparedExamples:
    """Prepared data by task, length and draw, each prepared once; several threads may ask."""

    def __init__(self):
        self._known: dict[tuple, PreparedData] = {}
        self._locks: dict[tuple, threading.Lock] = {}

    def prepared(self, task: AbstractTask, length: int, spec: AbstractSpec, train: TrainSpec) -> PreparedData:
        """The data of a task at a length, for the models of a spec."""
        drawn = (train.train_examples, train.validation_examples, train.data_seed)
        key = (json.dumps(task.spec(), sort_keys=True), length, *drawn, spec.standardises)
        with self._locks.setdefault(key, threading.Lock()):  # several lengths at once
            if key not in self._known:
                self._known[key] = prepare(task.at(length), spec, train)
            return self._known[key]


def prepare(task: AbstractTask, spec: AbstractSpec, train: TrainSpec) -> PreparedData:
    """A task's examples for a model, standardised over the training part where the model wants it."""
    count = train.train_examples or PROBE_EXAMPLES
    split = task.examples(count, train.validation_examples, train.data_seed)
    baseline = task.objective.baseline(np.asarray(split.validation.targets))
    if task.tokenise is not None:
        return PreparedData(_raw(split, task.tokenise, train.data_seed), None, baseline)
    # In NumPy: done once, these few operations would cost more to compile than to do.
    (tokens, targets), validation = (
        (np.asarray(part.content), np.asarray(part.targets)) for part in (split.train, split.validation)
    )
    labels = isinstance(task.objective, AbstractLabelObjective)
    units, variance = None, 1.0 if spec.standardises else np.mean(np.var(targets, axis=0))
    if labels:
        variance = np.mean(targets >= 0)
    if spec.standardises:
        # The scores of classes have no units.
        answers = np.zeros((1,) * targets.ndim + (task.outputs,), np.float32) if labels else targets
        units = Units(*_token_units(task, tokens), *target_units(task, answers))
        tokens, targets = units.standardised(tokens, targets, task.objective)
        variance = np.mean(np.var(targets, axis=0)) if task.answered_at == "tokens" and not labels else variance
        validation = units.standardised(*validation, task.objective)
    if train.train_examples == 0:
        assert isinstance(task, GeneratedTask)
        source: StoredTokens | FreshExamples = FreshExamples(task, units)
    else:
        source = StoredTokens(on_device(tokens), on_device(targets))
    data = BucketData(
        train=source,
        target_variance=on_device(np.float32(variance)),
        probe=on_device(tokens[:PROBE_EXAMPLES]),
        validation=StoredTokens(*map(on_device, validation)),
    )
    return PreparedData(data, units, baseline)


def _raw(split: Split, tokenise: Tokenise, seed: int) -> BucketData:
    shared = jax.tree.map(on_device, tokenise)

    def raw(name: str, part: Examples) -> RawExamples:
        content = jax.tree.map(on_device, part.content)
        return RawExamples(content, on_device(part.targets), shared, named_key(seed, "shown", name))

    train, validation = raw("train", split.train), raw("validation", split.validation)
    return BucketData(train=train, target_variance=on_device(np.float32(1)), probe=None, validation=validation)


def target_units(task: AbstractTask, targets: Any) -> tuple[Any, Any]:
    """Mean and scale per output; a model answers every token alike, so one unit serves all of them."""
    return mean_and_scale(targets, (0, 1) if task.answered_at == "tokens" else (0,))


def _token_units(task: AbstractTask, tokens: Any) -> tuple[Any, Any]:
    """Mean and scale of the tokens that are there; ids have none."""
    if task.vocabulary:
        return np.zeros(1, np.float32), np.ones(1, np.float32)
    if not task.padded:
        return mean_and_scale(tokens, (0, 1))
    return mean_and_scale(tokens[~np.all(np.isnan(tokens), axis=-1)])


def mean_and_scale(values: Any, axes: tuple[int, ...] = (0,)) -> tuple[Any, Any]:
    """Mean and standard deviation; a number that never varies is only centred."""
    known = wide(values)
    mean, deviation = np.mean(known, axis=axes), np.std(known, axis=axes)
    if known is not values:
        mean, deviation = mean.astype(values.dtype), deviation.astype(values.dtype)
    return mean, np.where(deviation > 0, deviation, 1.0).astype(deviation.dtype)


def validation_of(task: AbstractTask, spec: AbstractSpec, train: TrainSpec) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return validation tokens and targets in the task's units, and the scale by which errors are divided, or None."""
    split = task.examples(train.train_examples or PROBE_EXAMPLES, train.validation_examples, train.data_seed)
    content, targets = (np.asarray(part) for part in split.validation)
    has_units = spec.standardises and not isinstance(task.objective, AbstractLabelObjective)
    return content, targets, target_units(task, np.asarray(split.train.targets))[1] if has_units else None
