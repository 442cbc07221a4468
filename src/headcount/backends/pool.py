"""Pool the tokens of a sequence under single-query attention, with the gradient.

    r_t      = relu(weight x_t + bias_t)              hidden numbers
    a_i(t)   = softmax_t(direction_i . r_t + offset_ti)   over the tokens that are there
    pooled_i = sum_t a_i(t) r_t

`reference` is plain JAX; `pool` the same by the fused kernels, whose gradient keeps no hidden vector. Both take a batch
of sequences and one set of weights, in float32; `vmap` adds members. With `masks`, a token that is all NaN is absent:
no head reads it.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._draws import named_generator
from .._shapes import AnyArray, Tokens
from ..errors import HeadcountError

Pooled = tuple[Float[AnyArray, "*batch heads hidden"], Float[AnyArray, "*batch length heads"]]
"""The pooled hidden numbers of every head, and the attention weights."""


class PoolWeights(NamedTuple):
    """What a batch shares. A `bias` of one row is that of every token, an `offset` of no rows is none."""

    weight: Float[AnyArray, "hidden dim"]
    bias: Float[AnyArray, "places hidden"]
    direction: Float[AnyArray, "heads hidden"]
    offset: Float[AnyArray, "added heads"]

    def scores(self, hidden: Float[AnyArray, "length hidden"]) -> Float[AnyArray, "length heads"]:
        """Return direction_i . r_t + offset_ti of one sequence."""
        scores = hidden @ self.direction.T
        return scores + self.offset if len(self.offset) else scores


def pool(tokens: Float[AnyArray, "batch length dim"], weights: PoolWeights, *, masks: bool) -> Pooled:
    """Pool by the fused kernels, which must be loaded; other precisions than float32 by `reference`."""
    if any(jnp.asarray(each).dtype != jnp.float32 for each in (tokens, *weights)):
        return reference(tokens, weights, masks=masks)
    return _fused(tokens, *weights, masks)


def reference(tokens: Float[AnyArray, "batch length dim"], weights: PoolWeights, *, masks: bool) -> Pooled:
    """Pool a batch in plain JAX."""
    return jax.vmap(lambda sequence: pool_one(sequence, weights, masks=masks))(tokens)


def pool_one(tokens: Tokens, weights: PoolWeights, *, masks: bool) -> Pooled:
    """Pool one sequence in plain JAX."""
    absent = jnp.all(jnp.isnan(tokens), axis=-1) if masks else None
    if absent is not None:
        tokens = jnp.where(absent[:, None], 0, tokens)
    hidden = jax.nn.relu(tokens @ weights.weight.T + weights.bias)
    scores = weights.scores(hidden)
    if absent is not None:
        scores = jnp.where(absent[:, None], -jnp.inf, scores)
    attention = jax.nn.softmax(scores, axis=0)
    return attention.T @ hidden, attention


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _fused(tokens: Any, weight: Any, bias: Any, direction: Any, offset: Any, masks: bool) -> Pooled:
    (batch, length, _), (heads, hidden) = tokens.shape, direction.shape
    results = _float32((batch, heads, hidden)), _float32((batch, length, heads))
    call = jax.ffi.ffi_call("headcount_pool", results, vmap_method="expand_dims")
    pooled, weights = call(tokens, weight, bias, direction, offset, masks=np.int64(masks))
    return pooled, weights


def _forward(tokens: Any, weight: Any, bias: Any, direction: Any, offset: Any, masks: bool) -> tuple[Pooled, Any]:
    results: Any = _fused(tokens, weight, bias, direction, offset, masks)
    _, weights = results
    return results, (tokens, weight, bias, direction, offset, weights)


def _backward(masks: bool, kept: Any, changes: Any) -> tuple[Any, ...]:
    tokens, weight, bias, direction, offset, weights = kept
    results = tuple(_float32(each.shape) for each in (weight, bias, direction, offset))
    call = jax.ffi.ffi_call("headcount_pool_gradient", results, vmap_method="expand_dims")
    of_weights = call(tokens, weight, bias, direction, weights, *changes, masks=np.int64(masks))
    # Of the tokens by the reference: where it is not used, which is almost always, the compiler drops it.
    _, of_tokens = jax.vjp(lambda x: reference(x, PoolWeights(weight, bias, direction, offset), masks=masks), tokens)
    return *of_tokens(tuple(changes)), *of_weights


_fused.defvjp(_forward, _backward)


def _float32(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def require_working() -> None:
    """Raise `HeadcountError`, or what JAX raises, where the fused kernels fail or give other numbers than plain JAX."""
    generator = named_generator(0, "trial of the kernels")
    shapes = ((2, 3, 2), (5, 2), (1, 5), (2, 5), (0, 2))
    tokens, *weights = (generator.normal(size=shape).astype(np.float32) for shape in shapes)
    made = PoolWeights._make(weights)
    got, wanted = (jax.jit(functools.partial(by, masks=False))(tokens, made)[0] for by in (pool, reference))
    if not np.allclose(got, wanted, atol=1e-4):
        raise HeadcountError(f"the fused kernels give {np.ravel(got)[0]}, plain JAX {np.ravel(wanted)[0]}.")
