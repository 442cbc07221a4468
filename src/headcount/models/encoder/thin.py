"""Thousands of heads of a few numbers each, on a GPU: sums of products with heads side by side.

A product of matrices with one to four inner numbers keeps a GPU waiting, and the weights a_h(t, s) of all heads are the
largest arrays of a layer by far. Here heads are the last axis, so that neighbouring threads have neighbouring heads,
and no weights are kept for the gradient: they are computed again from queries, keys and the logarithm of the softmax's
sum. While a step runs, the compiler may still write some: 2.8 GB at 4,096 heads, 16 tokens and a batch of 256.

Written for one sequence: queries (queries, rank, heads), keys (keys, rank, heads), values (keys, head_dim, heads).
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray

WIDEST = 4
"""Largest rank and head_dim that are thin. A training step of 64 blocks of d = 64 and 16 tokens took 21.8 ms on an H200
at rank 1 with matrix products and takes 3.9 so, 5.2 and 2.8 at rank 4; at rank 8 there is no difference."""
UNROLLED = 16
"""Most tokens whose sum is written term by term: 3.9 ms at rank 1, where a reduction took 5.6. More would be slow to
compile."""

Queries = Float[AnyArray, "queries rank heads"]
Keys = Float[AnyArray, "keys rank heads"]
Values = Float[AnyArray, "keys head_dim heads"]
Read = Float[AnyArray, "queries head_dim heads"]
Unread = Bool[AnyArray, "*queries keys"] | None
OfPairs = Float[AnyArray, "some_tokens others heads"]
LogSums = Float[AnyArray, "queries heads"]


@jax.custom_vjp
def mix(queries: Queries, keys: Keys, values: Values, unread: Unread) -> Read:
    """Return sum_s softmax_s(q_t . k_s) v_s over the keys that are read, for every query and head."""
    return _mix(queries, keys, values, unread)[0]


def _mix(queries: Queries, keys: Keys, values: Values, unread: Unread) -> tuple[Read, LogSums]:
    scores = _scores(queries, keys, unread)
    largest = jnp.max(scores, axis=1)
    powers = jnp.exp(scores - largest[:, None])
    total, *sums = _sums_over_others([powers, *(powers * values[None, :, n] for n in range(values.shape[1]))])
    return jnp.stack([each / total for each in sums], axis=1), largest + jnp.log(total)


def _mix_forward(queries: Queries, keys: Keys, values: Values, unread: Unread):
    read, log_sums = _mix(queries, keys, values, unread)
    return read, (queries, keys, values, unread, read, log_sums)


def _mix_backward(saved, d_read: Read):
    queries, keys, values, unread, read, log_sums = saved
    rank, head_dim = queries.shape[1], values.shape[1]
    mean = jnp.sum(d_read * read, axis=1)
    # Once with queries first and once with keys first: each sum runs over the second axis.
    weights = jnp.exp(_scores(queries, keys, unread) - log_sums[:, None])
    d_scores = weights * (_products(d_read, values) - mean[:, None])
    d_queries = _sums_over_others([d_scores * keys[None, :, n] for n in range(rank)])
    weights = jnp.exp(_scores(queries, keys, unread, keys_first=True) - log_sums)
    d_scores = weights * (_products(values, d_read) - mean)
    sums = _sums_over_others(
        [
            *(d_scores * queries[None, :, n] for n in range(rank)),
            *(weights * d_read[None, :, n] for n in range(head_dim)),
        ]
    )
    d_keys, d_values = sums[:rank], sums[rank:]
    return *(jnp.stack(parts, axis=1) for parts in (d_queries, d_keys, d_values)), None


mix.defvjp(_mix_forward, _mix_backward)


def _scores(queries: Queries, keys: Keys, unread: Unread, *, keys_first: bool = False) -> OfPairs:
    scores = _products(keys, queries) if keys_first else _products(queries, keys)
    if unread is None:
        return scores
    hidden = jnp.broadcast_to(unread, (len(queries), len(keys)))
    return jnp.where((hidden.T if keys_first else hidden)[..., None], -jnp.inf, scores)


def _products(
    left: Float[AnyArray, "some_tokens numbers heads"], right: Float[AnyArray, "others numbers heads"]
) -> OfPairs:
    """Return left_t . right_s for every pair of tokens and every head."""
    return functools.reduce(jnp.add, (left[:, None, n] * right[None, :, n] for n in range(left.shape[1])))


def _sums_over_others(parts: Sequence[OfPairs]) -> Sequence[Float[AnyArray, "some_tokens heads"]]:
    """Return the sum over the second axis of every part, all of them in one pass over the first two axes."""
    count = parts[0].shape[1]
    if count <= UNROLLED:
        return [functools.reduce(jnp.add, (part[:, other] for other in range(count))) for part in parts]
    zeros = tuple(jnp.zeros((), part.dtype) for part in parts)
    return jax.lax.reduce(
        tuple(parts), zeros, lambda sums, more: tuple(a + b for a, b in zip(sums, more, strict=True)), (1,)
    )
