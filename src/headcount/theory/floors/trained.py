"""Exact errors of a trained model on an alphabet: every multiset with its probability, nothing sampled."""

import itertools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import multinomial

from ..._precision import in_double
from ...errors import require
from ...models import ClassTokenTransformer
from ...tasks import AlphabetMaxima
from ..collisions.heads import coordinates_read, fold_heads
from ..collisions.observables import check_fit
from .alphabet import Order, alphabet_floor, error_of_orders

MAX_MULTISETS = 200_000
"""Multisets of symbols that are answered at most."""


@dataclass(frozen=True, kw_only=True)
class AlphabetErrors:
    """Errors of one model as shares of the target's variance, and the floor of as many hard heads."""

    soft: float
    """As it was trained."""
    hard: float
    """Heads of the same orders made hard, with the best readout: at least `floor`."""
    floor: float
    orders: tuple[Order, ...]
    score_gap: float
    """The least difference of a head's scores for two symbols: large where its softmax is nearly hard."""


def alphabet_errors(model: ClassTokenTransformer, task: AlphabetMaxima) -> AlphabetErrors:
    """Return the exact errors of a model on an alphabet task, soft and hard.

    The model has one layer without positions, and answers in the task's units. Raises `InputError` where it has
    positions or several layers, reads otherwise than by soft attention of heads with their own keys, or the sequences
    are too many.

    Example:
        >>> import headcount as hc
        >>> from headcount.tasks import AlphabetMaxima
        >>> from headcount.theory import alphabet_errors
        >>> task = AlphabetMaxima(length=4, intrinsic_dim=2, symbols=4)
        >>> model = hc.ClassTokenSpec(heads=1, head_dim=2, hidden=8).init(0, length=4, dim=4, outputs=1)
        >>> errors = alphabet_errors(model, task)
        >>> errors.hard >= errors.floor
        True
    """
    check_fit(model, task, done="errors on an alphabet are computed")
    require(model.position_table is None, "positions must be off: a hard head then orders symbols at places.")
    heads = len(model.attention[0].query)
    count = math.comb(task.length + task.dim - 1, task.dim - 1)
    require(
        count <= MAX_MULTISETS,
        f"{count:,} multisets of {task.length} of {task.dim} symbols are more than {MAX_MULTISETS:,}; use shorter "
        "sequences.",
        what="length",
        given=task.length,
    )
    values = np.asarray(task.values, float)
    with jax.enable_x64(True):
        folded = fold_heads(model, coordinates_read([model]), task.length)[0]
        scores = np.asarray(jax.vmap(lambda token: folded.scores(token, 0))(jnp.eye(task.dim)))
        symbols = np.array(list(itertools.combinations_with_replacement(range(task.dim), task.length)))
        answers = np.asarray(jax.jit(jax.vmap(in_double(model)))(jnp.eye(task.dim)[symbols]))[:, 0]
    counts = np.stack([np.sum(symbols == symbol, axis=1) for symbol in range(task.dim)], axis=1)
    weights = multinomial.pmf(counts, task.length, np.full(task.dim, 1 / task.dim))
    targets = values[:, symbols].max(axis=2).sum(axis=0)
    variance = weights @ (targets - weights @ targets) ** 2
    orders = tuple(tuple(np.argsort(-column, kind="stable").tolist()) for column in scores.T)
    return AlphabetErrors(
        soft=float(weights @ (answers - targets) ** 2 / variance),
        hard=error_of_orders(values, orders, task.length),
        floor=alphabet_floor(values, heads, task.length).nmse,
        orders=orders,
        score_gap=float(np.diff(np.sort(scores, axis=0), axis=0).min()),
    )
