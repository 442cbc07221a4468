"""What each head of a trained model reads: its attention on a few validation examples, and the error without it.

The error without a head is that of the trained model with the head's output set to zero and all else kept. It says what
this model relies on, not what a model trained without the head would reach: that is what the sweep measures.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .analysis import Answer
from .engine.data import PROBE_EXAMPLES, prepare
from .models import AbstractModel, ClassTokenTransformer, from_arrays, spec_from_dict
from .models.class_token import folded, textbook
from .models.encoder.attention import attention_weights
from .models.encoder.layer import apply_layer, norm
from .models.encoder.model import Encoder, _absent, _stream
from .store import Experiment, Outcome, Record, Store
from .tasks import AbstractTask

ATTACHMENT = "heads"
"""The name under which the result is kept beside an experiment."""
EXAMPLES = 4
MAX_LENGTH = 64
MAX_HEADS = 64
"""Of all layers; a page of more could not be read."""
MAX_WEIGHTS = 6000
"""Attention weights that are kept; of long sequences and many heads, fewer examples are shown."""
JUDGED = 2000
"""Validation examples on which errors are compared, at most."""
DIGITS = 3


def attach_heads_read(
    store: Store, experiment: Experiment, records: Iterable[Record], answer: Answer, task: AbstractTask
) -> bool:
    """Keep what the heads of the best model read beside an experiment; False where it cannot be said.

    Whatever goes wrong here, the answer is there already: nothing is raised but an interrupt.
    """
    try:
        record = best_shown(experiment, records, answer)
        if record is None:
            return False
        stored = store.attachments(experiment.name).get(ATTACHMENT, {})
        if stored.get("key") != record.cell.key:
            content = heads_read(store, experiment, record, task)
            if content is None:
                return False
            store.attach(experiment.name, ATTACHMENT, content)
        return True
    except Exception:
        return False


def heads_read(store: Store, experiment: Experiment, record: Record, task: AbstractTask) -> dict[str, Any] | None:
    """What each head of a trained model reads, as JSON; None for a model whose heads cannot be shown.

    Args:
        store: Holds the weights.
        experiment: Whose cell the model is.
        record: The model.
        task: What was learned.

    Returns:
        The cell's `key`; `model` in words, its `length` and validation `error`; `reader`, the token whose reading is
        shown where every token answers; `examples` with `tokens` (None for an absent one), `target` and `answer`;
        `heads` with their `name`, `weights` per example and token, the tokens that a head `reads` on average (the
        exponential of the entropy of its weights), and the error `without` it.
    """
    model = from_arrays(spec_from_dict(record.cell.model), store.weights(record.cell.key))
    model = jax.tree.map(jnp.asarray, model)
    layers = _layers(model)
    if layers is None or not 1 <= sum(layers) <= MAX_HEADS:
        return None
    task = task.at(record.cell.length)
    tokens, targets = _validation(task, record)
    if tokens.ndim != 3:
        return None  # several sequences per example
    shown, right = jnp.asarray(tokens), jnp.asarray(targets)

    @eqx.filter_jit
    def judged(one: AbstractModel) -> tuple[Array, Array]:
        answers = jax.vmap(one)(shown)
        return task.objective.grades(answers, right)[task.objective.error], answers[:EXAMPLES]

    every_weight = np.asarray(_weights_of_all(model, shown))  # examples, heads of all layers, length
    count = max(1, min(EXAMPLES, MAX_WEIGHTS // max(1, every_weight[0].size), len(tokens)))
    error, answers = map(np.asarray, judged(model))
    absent = np.all(np.isnan(tokens), axis=-1) if task.padded else np.zeros(tokens.shape[:2], bool)
    reads = _tokens_read(np.where(absent[:, None], 0.0, every_weight))
    heads = [
        {
            "name": f"layer {layer + 1}, head {head + 1}" if len(layers) > 1 else f"head {head + 1}",
            "weights": [_rounded(row, skip) for row, skip in zip(every_weight[:count, place], absent, strict=False)],
            "reads": _short(float(reads[place])),
            "without": _short(float(judged(_without(model, layer, head))[0])),
        }
        for place, (layer, head) in enumerate((i, j) for i, heads in enumerate(layers) for j in range(heads))
    ]
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
    """The best finished model at the answer's size, or of most heads where there is no answer, at the longest length
    that can be shown; None where there is none."""
    finished = [
        record
        for record in experiment.own(records)
        if record.outcome is Outcome.FINISHED and record.cell.length <= MAX_LENGTH
    ]
    if not finished:
        return None
    length = max(record.cell.length for record in finished)
    finished = [record for record in finished if record.cell.length == length]
    wanted = {"heads": answer.heads or max(record.cell.model.get("heads", 1) for record in finished)}
    if answer.at is not None:
        wanted = dict(zip(("heads", "rank"), answer.at, strict=True))
    fitting = [each for each in finished if wanted.items() <= each.cell.model.items()]
    return min(fitting or finished, key=lambda record: record.error)


def _in_words(experiment: Experiment, record: Record) -> str:
    at = {axis: value for axis, value in experiment.coordinates(record.cell.key).items() if axis != "length"}
    return ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in at.items())


def _layers(model: AbstractModel) -> tuple[int, ...] | None:
    """Heads per layer; None for a kind whose heads are not known."""
    if isinstance(model, ClassTokenTransformer):
        return tuple(len(layer.query) for layer in model.attention)
    if isinstance(model, Encoder):
        return tuple(len(layer.heads.query) for layer in model.layers)
    return None


def _validation(task: AbstractTask, record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Validation tokens in the task's units, and their targets."""
    train = record.cell.train
    if task.tokenise is None:
        drawn = task.examples(
            train.train_examples or PROBE_EXAMPLES, train.validation_examples, train.data_seed
        ).validation
        return np.asarray(drawn.content)[:JUDGED], np.asarray(drawn.targets)[:JUDGED]
    shown = prepare(task, spec_from_dict(record.cell.model), train).data.validation
    tokens = jax.vmap(shown.tokens_at)(jnp.arange(min(JUDGED, len(shown.targets))))
    return np.asarray(tokens), np.asarray(shown.targets)[:JUDGED]


@eqx.filter_jit
def _weights_of_all(
    model: AbstractModel, tokens: Float[Array, "examples length dim"]
) -> Float[Array, "examples heads length"]:
    of_one = _class_token_weights if isinstance(model, ClassTokenTransformer) else _encoder_weights
    return jax.vmap(lambda one: of_one(model, one))(tokens)  # pyright: ignore[reportArgumentType]


def _class_token_weights(
    model: ClassTokenTransformer, tokens: Float[Array, "length dim"]
) -> Float[Array, "heads length"]:
    """How much of every token each head reads for the class token, layer after layer."""
    if len(model.attention) == 1:
        return jnp.asarray(folded.attention_weights(model, tokens)).T
    tokens, absent = model.without_absent(tokens)
    embedded, class_token = textbook.embed(model, tokens), model.class_token
    weights = []
    for layer in model.attention:
        direction = jnp.einsum("hn,hne->he", layer.query @ class_token, layer.key)
        weights.append(jax.nn.softmax(textbook.masked(model.beta * (embedded @ direction.T), absent), axis=0).T)

        def attended(query, layer=layer, keys=embedded):
            return query + textbook.attend(layer, query, keys, model.beta, absent)

        class_token, embedded = attended(class_token), jax.vmap(attended)(embedded)
    return jnp.concatenate(weights)


def _encoder_weights(model: Encoder, tokens: Float[Array, "length dim"]) -> Float[Array, "heads length"]:
    """How much of every token each head reads for what answers: the class token, the query, or the first token."""
    spec, length = model.spec, len(tokens)
    absent = _absent(model, tokens) if spec.masks_padding else None
    if absent is not None and spec.masks_nan:
        tokens = jnp.where(absent[:length, None], 0, tokens)
    stream = _stream(model, tokens)
    asks_once = spec.answered_at != "tokens"
    seen = slice(None) if spec.query_is_key or not asks_once else slice(-1)
    hidden = None if absent is None else absent[seen]
    weights = []
    for layer in model.layers:
        keys, asks = stream[seen], stream[-1:] if asks_once else stream[:1]
        if spec.norm_first:
            asks, seen_keys = (norm(part, spec, layer.attention_scale) for part in (asks, keys))
        else:
            seen_keys = keys
        read = attention_weights(layer.heads, spec, asks, seen_keys, hidden)[:, 0]
        # The query token of a query task is no key; the class token is no token.
        weights.append(jnp.pad(read, ((0, 0), (0, max(0, length - read.shape[1]))))[:, :length])
        stream = apply_layer(layer, spec, stream, keys, hidden, None)
    return jnp.concatenate(weights)


def _without(model: AbstractModel, layer: int, head: int) -> AbstractModel:
    """The model with the output of one head set to zero."""
    if isinstance(model, ClassTokenTransformer):
        output = jnp.asarray(model.attention[layer].output).at[:, head].set(0)
        return eqx.tree_at(lambda one: one.attention[layer].output, model, output)
    assert isinstance(model, Encoder)
    output = jnp.asarray(model.layers[layer].heads.output).at[head].set(0)
    return eqx.tree_at(lambda one: one.layers[layer].heads.output, model, output)


def _tokens_read(weights: Float[np.ndarray, "examples heads length"]) -> Float[np.ndarray, " heads"]:
    """The exponential of the entropy of the weights, averaged over examples: 1 for one token, T for all alike."""
    shares = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
    entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-30)), axis=-1)
    return np.exp(entropy).mean(axis=0)


def _rounded(weights: np.ndarray, absent: np.ndarray) -> list[float | None]:
    return [None if skip else round(float(weight), DIGITS) for weight, skip in zip(weights, absent, strict=True)]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _token(values: np.ndarray) -> Any:
    """The numbers of a token, the first few of many; an id as it is."""
    values = np.asarray(values)
    if np.issubdtype(values.dtype, np.integer):
        return [int(value) for value in values]
    shown = [_short(float(value)) for value in values[:8]]
    return shown if len(values) <= 8 else [*shown, ".."]


def _target(target: np.ndarray, classes: Sequence[Any] | None) -> Any:
    """The first numbers of a target, or the name of its label."""
    if classes is not None and np.ndim(target) == 0:
        return str(classes[int(target)])
    return _token(np.ravel(target)[:DIGITS])


def _answer(answer: np.ndarray, target: np.ndarray, classes: Sequence[Any] | None) -> Any:
    """The answer in the form of the target: numbers, or the label of the highest score."""
    label = np.issubdtype(target.dtype, np.integer) and target.ndim == 0
    return _target(np.asarray(np.argmax(answer)) if label else answer, classes)
