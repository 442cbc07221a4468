"""What each head of a trained model reads: its attention on a few validation examples, and the error without it.

The error without a head is that of the trained model with the head's output set to zero and all else kept. It says what
this model relies on, not what a model trained without the head would reach: that is what the sweep measures.
"""

import functools
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._compile import on_device
from .answer import Answer
from .engine.data import prepare, validation_of
from .errors import InputError, require
from .models import AbstractModel, AbstractSpec, from_arrays, spec_from_dict
from .registry import plugins
from .store import Experiment, Outcome, Record, Store, TrainSpec
from .tasks import AbstractTask

ATTACHMENT = "heads"
"""The name under which the result is stored with an experiment."""
EXAMPLES = 4
MAX_LENGTH = 64
MAX_HEADS = 64
"""Of all layers; a page of more could not be read."""
MAX_WEIGHTS = 6000
"""Attention weights that are kept; of long sequences and many heads, fewer examples are shown."""
JUDGED = 2000
"""Validation examples on which errors are compared, at most."""
DIGITS = 3


def attach_model_facts(
    store: Store,
    experiment: Experiment,
    records: Iterable[Record],
    answer: Answer,
    task: AbstractTask,
    stop: threading.Event | None = None,
) -> None:
    """Store what the best model shows: what its heads read, and what satellites find out; or why not, as `skipped`.

    What is kept of the same model is not computed again. The answer is there already, so neither a `stop` nor weights
    that are missing, a task that cannot be drawn or too little memory raise anything.
    """
    record = best_shown(experiment, records, answer)
    looks = {name: look for each in plugins() for name, look in each.model_facts(task).items()}
    for name, look in {ATTACHMENT: functools.partial(heads_read, stop=stop), **looks}.items():
        stored = store.get(experiment.name, name, {})
        if record is not None and stored.get("key") == record.cell.key and "skipped" not in stored:
            continue
        try:
            require(record is not None, f"no model of at most {MAX_LENGTH} tokens has finished.")
            require(stop is None or not stop.is_set(), "it was interrupted.")
            assert record is not None
            content = look(store, experiment, record, task)
        except Exception as error:  # the answer, which is stored by now, must not be lost with this
            content = {"skipped": f"{type(error).__name__}: {error}"}
        store.put(experiment.name, name, content)


def heads_read(
    store: Store, experiment: Experiment, record: Record, task: AbstractTask, stop: threading.Event | None = None
) -> dict[str, Any]:
    """Return what each head of a trained model reads, as JSON.

    A `stop` ends it between two heads.

    Returns:
        The cell's `key`; `model` in words, its `length` and validation `error` at the end of training; `reader`, the
        token whose reading is shown where every token answers; `examples` with `tokens` (None for an absent one),
        `target` and `answer`; `heads` with their `name`, `weights` per example and token, the tokens that a head
        `reads` on average (the exponential of the entropy of its weights), and the error `without` it.

    Raises:
        InputError: If the heads of this model cannot be shown, or `stop` was set.
        StoreError: If its weights are missing.
    """
    spec = spec_from_dict(record.cell.model)
    stored = from_arrays(spec, store.weights(record.cell.key))
    model = jax.device_put(stored)
    task = task.at(record.cell.length)
    tokens, targets, scale = _validation_of(task, spec, record.cell.train)
    require(tokens.ndim == 3, "an example of this task is several sequences.")
    layers = [len(layer) for layer in eqx.filter_eval_shape(model.attention_weights, tokens[0])]
    require(sum(layers) <= MAX_HEADS, f"{sum(layers)} heads are more than the {MAX_HEADS} that can be shown.")
    shown, right = on_device(tokens), on_device(targets if scale is None else targets / scale)

    @eqx.filter_jit
    def judged(one: AbstractModel) -> tuple[Array, Array]:
        answers = jax.vmap(one)(shown)
        graded = answers if scale is None else answers / scale
        return task.objective.grades(graded, right)[task.objective.error], answers[:EXAMPLES]

    def error_without(layer: int, head: int) -> float:
        if stop is not None and stop.is_set():
            raise InputError("it was interrupted.")
        return _short(float(judged(jax.device_put(stored.without_head(layer, head)))[0]))

    every_weight = np.asarray(_weights_of_all(model, shown))  # examples, heads of all layers, length
    count = max(1, min(EXAMPLES, MAX_WEIGHTS // max(1, every_weight[0].size), len(tokens)))
    absent = np.all(np.isnan(tokens), axis=-1) if task.padded else np.zeros(tokens.shape[:2], bool)
    reads = _tokens_read(np.where(absent[:, None], 0.0, every_weight))
    heads = [
        {
            "name": f"layer {layer + 1}, head {head + 1}" if len(layers) > 1 else f"head {head + 1}",
            "weights": [_rounded(row, skip) for row, skip in zip(every_weight[:count, place], absent, strict=False)],
            "reads": _short(float(reads[place])),
            "without": error_without(layer, head),
        }
        for place, (layer, head) in enumerate((i, j) for i, heads in enumerate(layers) for j in range(heads))
    ]
    error, answers = map(np.asarray, judged(model))
    classes = getattr(task, "classes", None)
    return {
        "key": record.cell.key,
        "model": _in_words(experiment, record),
        "length": record.cell.length,
        "reader": "token 1" if task.answered_at == "tokens" else "",
        "error": _short(float(error)),
        "examples": [
            {
                "tokens": [
                    None if skip else int(token[0]) if task.vocabulary else _token(token)
                    for token, skip in zip(tokens[i], absent[i], strict=True)
                ],
                "target": _target(np.asarray(targets[i]), classes),
                "answer": _answer(answers[i], np.asarray(targets[i]), classes),
            }
            for i in range(count)
        ],
        "heads": heads,
    }


def best_shown(experiment: Experiment, records: Iterable[Record], answer: Answer) -> Record | None:
    """Return the model that ended best at the answer's size, or of most heads without an answer; None without any.

    It is at the longest length that can be shown."""
    finished = [record for record in experiment.own(records) if record.outcome is Outcome.FINISHED]
    length = max((each.cell.length for each in finished if each.cell.length <= MAX_LENGTH), default=None)
    finished = [record for record in finished if record.cell.length == length]
    if not finished:
        return None
    wanted = {"heads": answer.heads or max(record.cell.model.get("heads", 1) for record in finished)}
    if answer.at is not None:
        wanted = dict(zip(("heads", "rank"), answer.at, strict=True))
    fitting = [each for each in finished if wanted.items() <= each.cell.model.items()]
    return min(fitting or finished, key=lambda record: record.final_error)


def _in_words(experiment: Experiment, record: Record) -> str:
    at = {axis: value for axis, value in experiment.coordinates(record.cell.key).items() if axis != "length"}
    return ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in at.items())


def _validation_of(task: AbstractTask, spec: AbstractSpec, train: TrainSpec) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return validation tokens and targets in the task's units, and the scale by which errors are divided, or None."""
    if task.tokenise is not None:
        shown = prepare(task, spec, train).data.validation
        tokens = jax.vmap(shown.tokens_at)(jnp.arange(min(JUDGED, len(shown.targets))))
        return np.asarray(tokens), np.asarray(shown.targets)[:JUDGED], None
    tokens, targets, scale = validation_of(task, spec, train)
    return tokens[:JUDGED], targets[:JUDGED], scale


@eqx.filter_jit
def _weights_of_all(
    model: AbstractModel, tokens: Float[Array, "examples length dim"]
) -> Float[Array, "examples heads length"]:
    return jax.vmap(lambda one: jnp.concatenate(model.attention_weights(one)))(tokens)


def _tokens_read(weights: Float[np.ndarray, "examples heads length"]) -> Float[np.ndarray, " heads"]:
    """Average the exponential of the entropy of the weights over examples: 1 for one token, T for all alike."""
    shares = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
    entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-30)), axis=-1)
    return np.exp(entropy).mean(axis=0)


def _rounded(weights: np.ndarray, absent: np.ndarray) -> list[float | None]:
    return [None if skip else round(float(weight), DIGITS) for weight, skip in zip(weights, absent, strict=True)]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _token(values: np.ndarray) -> Any:
    """Return the numbers of a token, the first few of many; an id as it is."""
    if np.issubdtype(values.dtype, np.integer):
        return values.tolist()
    shown = [_short(float(value)) for value in values[:8]]
    return shown if len(values) <= 8 else [*shown, ".."]


def _target(target: np.ndarray, classes: Sequence[Any] | None) -> Any:
    """Return the first numbers of a target, or the names of its first labels."""
    if classes is not None and np.issubdtype(target.dtype, np.integer):
        names = [str(classes[label]) if label >= 0 else "-" for label in np.ravel(target)[:DIGITS].tolist()]
        return names[0] if target.ndim == 0 else names
    return _token(np.ravel(target)[:DIGITS])


def _answer(answer: np.ndarray, target: np.ndarray, classes: Sequence[Any] | None) -> Any:
    """Return the answer in the form of the target: numbers, or the label of the highest score."""
    if np.issubdtype(target.dtype, np.integer):
        answer = np.asarray(np.argmax(answer, axis=-1 if target.ndim else None))
    return _target(answer, classes)
