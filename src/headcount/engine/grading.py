"""How answers are graded: what training lowers, and what is reported.

distance   squared distance to the target; reported as nmse, over the variance of the targets
class      cross-entropy of the right class; reported as error (the share of wrong answers) and cross_entropy
choice     the same over the candidates of each example; mrr too, the mean over examples of 1 / rank of the right one
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from .._shapes import Key
from ..models import AbstractModel
from ..tasks import GradedBy

Grades = dict[str, Float[Array, ""]]
ERROR = {"distance": "nmse", "class": "error", "choice": "error"}
"""The grade that head counts are compared by: less is better."""


def respond(model: AbstractModel, tokens: Float[Array, "*sequences length dim"], key: Key | None = None) -> Array:
    """The answer to one example; several sequences are answered one by one."""
    if tokens.ndim == 2:
        return model(tokens, key=key)
    if key is None:
        return jax.vmap(model)(tokens)
    return jax.vmap(lambda sequence, own: model(sequence, key=own))(tokens, jax.random.split(key, len(tokens)))


def scores(graded_by: GradedBy, answers: Array, candidates: int) -> Float[Array, "examples choices"]:
    """What is compared, in single precision: a number for each class, or for each of the candidates.

    Where candidates are tokens of one sequence, the query's own token comes after them and is not to be chosen.
    """
    chosen = answers if graded_by == "class" else answers[:, :candidates, 0]
    return chosen.astype(jnp.float32)


def ranks(found: Float[Array, "examples choices"], labels: Int[Array, " examples"]) -> Int[Array, " examples"]:
    """The place of the right answer in the order of scores, from 1.

    Ties count against the answer: a model that scores all alike has found nothing. NaN ranks last.
    """
    right = jnp.take_along_axis(found, labels[:, None], axis=1)
    return jnp.sum(~(found < right), axis=1)


def loss_of(
    graded_by: GradedBy, candidates: int
) -> Callable[[Array, Array], tuple[Float[Array, ""], Float[Array, ""]]]:
    """`loss(answers, targets)` of a batch: what is lowered, and the error that is reported while training."""

    def distance(answers: Array, targets: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
        mean = jnp.mean((answers - targets) ** 2)
        return mean, mean

    def entropy(answers: Array, labels: Int[Array, " batch"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        found = scores(graded_by, answers, candidates)
        mean = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(found, labels))
        return mean, jnp.mean(ranks(found, labels) > 1)

    return distance if graded_by == "distance" else entropy


def grades_of(graded_by: GradedBy, candidates: int) -> Callable[[Array, Array], Grades]:
    """`grades(answers, targets)` of all examples."""

    def distance(answers: Array, targets: Array) -> Grades:
        variance = jnp.mean((targets - jnp.mean(targets, axis=0)) ** 2)
        return {"nmse": jnp.mean((answers - targets) ** 2) / variance}

    def entropy(answers: Array, labels: Int[Array, " examples"]) -> Grades:
        found = scores(graded_by, answers, candidates)
        rank = ranks(found, labels)
        made = {
            "error": jnp.mean(rank > 1),
            "cross_entropy": jnp.mean(optax.softmax_cross_entropy_with_integer_labels(found, labels)),
        }
        return made | ({"mrr": jnp.mean(1 / rank)} if graded_by == "choice" else {})

    return distance if graded_by == "distance" else entropy
