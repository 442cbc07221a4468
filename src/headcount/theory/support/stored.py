"""The support dimension next to an answer: that of a task, or an estimate from data.

Stored examples have no gradient; a model trained on them has. With g_t the gradient of its answer with respect to token
t, the participation number (sum_t g_t^2)^2 / sum_t g_t^4 is k where k gradients are equally large and the others zero.
The estimate is its 0.9 quantile over validation examples: the support dimension is about the most tokens, but a few
examples lie where the model is wrong. docs/support.md has how often it was right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...answer.estimates import SUPPORT
from ...engine.data import PROBE_EXAMPLES
from ...errors import HeadcountError, InputError, require
from ...models import from_arrays, spec_from_dict
from ...registry import TaskFact
from ...store import Experiment, Record, Store
from ...tasks import AbstractTask, ArrayTask, GeneratedTask
from ...tasks.objective import AbstractLabelObjective
from .dimension import support_dim

QUANTILE = 0.9
EXAMPLES = 400
"""Validation examples whose gradients are computed, at most."""
MAX_OUTPUTS = 16
"""Outputs whose gradients are computed, at most."""
BLOCK = 16
"""Examples at a time: bounds the memory."""

LONGEST = 64
"""The support dimension of a task is searched at the longest length measured up to this: a search takes seconds."""
RECORD = (34, 35)
"""On how many tasks of known D the rounded estimate was D, and of how many, after 1,000 steps of 6 heads:
`benchmarks/support_record.py`."""


@dataclass(frozen=True, kw_only=True)
class SupportEstimate:
    """The tokens that a model reads from at once: `value`, and the number of `examples` it was estimated on."""

    value: float
    examples: int
    length: int


def estimate_support(model: Callable[[Array], Array], tokens: Any, *, labels: bool = False) -> SupportEstimate:
    """Estimate the number of tokens that a trained model reads from at once, from its gradients.

    `model` is a trained model, also early in its training, or any JAX function of one sequence; `tokens` are examples
    of shape (examples, length, dim), like those it was trained on, where tokens that are all NaN are absent; `labels`
    says that its outputs are scores of classes, of which only differences matter. Round the estimate for a number of
    heads. Raises `InputError` where tokens are ids or of another shape, or no gradient is finite.

    Example:
        >>> import numpy as np
        >>> from headcount.models import ClassTokenSpec
        >>> from headcount.theory.support.stored import estimate_support
        >>> model = ClassTokenSpec(heads=2, head_dim=2, hidden=4).init(0, length=6, dim=3, outputs=1)
        >>> 1 <= estimate_support(model, np.random.default_rng(0).normal(size=(20, 6, 3))).value <= 6
        True
    """
    tokens = np.asarray(tokens)
    require(tokens.ndim == 3, f"tokens must have shape (examples, length, dim), got shape {tokens.shape}.")
    require(np.issubdtype(tokens.dtype, np.floating), "token ids have no gradient; tokens must be real numbers.")
    shown = jnp.asarray(tokens[:EXAMPLES], jnp.float32)
    spread = jnp.nanstd(shown, axis=(0, 1))  # gradients per standard deviation of each number of a token

    def compared(one: Float[Array, "length dim"]) -> Array:
        given = jnp.atleast_1d(model(one))
        given = given[0] if given.ndim == 2 else given  # of answers at every token, the first
        given = given - jnp.mean(given) if labels else given
        return given[:MAX_OUTPUTS]

    @jax.jit
    def squares(sequences: Float[Array, "examples length dim"]) -> Float[Array, "examples length"]:
        def of_one(one: Float[Array, "length dim"]) -> Float[Array, " length"]:
            return jnp.sum((jax.jacrev(compared)(one) * spread) ** 2, axis=(0, 2))

        return jax.lax.map(of_one, sequences, batch_size=BLOCK)

    sizes = np.asarray(squares(shown), np.float64)
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    sizes = sizes[sizes.max(axis=1) > 0]
    require(len(sizes) > 0, "the gradient of the model is zero at every example.")
    participation = sizes.sum(axis=1) ** 2 / np.sum(sizes**2, axis=1)
    return SupportEstimate(
        value=float(np.quantile(participation, QUANTILE)), examples=len(sizes), length=tokens.shape[1]
    )


def task_support(task: GeneratedTask, length: int) -> dict[str, Any] | None:
    """Return the support dimension of a task as it is kept with an experiment; None of a target without a gradient.

    It is not the question, so nothing is raised: `skipped` says why it could not be computed.
    """
    try:
        content = support_dim(task.at(length)).as_dict()
    except HeadcountError:
        return None
    except Exception as error:  # a user's function, in a precision and at sequences that it was not written for
        return {"skipped": ": ".join([type(error).__name__, *str(error).splitlines()[:1]])}
    return {name: value for name, value in content.items() if name not in ("witness", "gradients")}


def task_support_facts(task: AbstractTask, lengths: Sequence[int], stored: Mapping[str, Any]) -> Iterator[TaskFact]:
    """Yield the support dimension of a task at one of these lengths, unless it is stored or the task is data."""
    length = max((length for length in lengths if length <= LONGEST), default=min(lengths))
    known = stored.get(SUPPORT, {}).get("length") == length
    if known or not isinstance(task, GeneratedTask):
        return
    content = task_support(task, length)
    if content is not None:
        words = content.get("sentence") or f"support dimension not known ({content['skipped']})"
        yield TaskFact(SUPPORT, content, words)


def model_facts(task: AbstractTask) -> dict[str, Callable[..., dict[str, Any]]]:
    """Estimate the support dimension of stored examples from the model whose heads are shown."""
    return {SUPPORT: _estimated} if isinstance(task, ArrayTask) else {}


def _estimated(store: Store, experiment: Experiment, record: Record, task: AbstractTask) -> dict[str, Any]:
    if task.vocabulary:
        raise InputError("token ids have no gradient.")
    model = jax.tree.map(jnp.asarray, from_arrays(spec_from_dict(record.cell.model), store.weights(record.cell.key)))
    train = record.cell.train
    split = task.at(record.cell.length).examples(
        train.train_examples or PROBE_EXAMPLES, train.validation_examples, train.data_seed
    )
    labels = isinstance(task.objective, AbstractLabelObjective)
    estimate = estimate_support(model, np.asarray(split.validation.content), labels=labels)
    right, tried = RECORD
    record_words = f"right on {right} of {tried} tasks of known D (16 tokens, D up to 5, 1,000 steps)"
    words = f"the best model reads from about {estimate.value:.1f} of {estimate.length} tokens at once"
    return {
        "key": record.cell.key,
        "estimate": estimate.value,
        "length": estimate.length,
        "examples": estimate.examples,
        "words": f"{words} (this estimate was {record_words})",
    }
