"""Theorem 1 as a program: any continuous function of a short sequence as a retrieval task, within a proved error.

With m = T/4 the primitives min over S of x(t)_j and of 1 - x(t)_j, for all sets S of m places, give order statistics:

    v = max over S of min over S of x_j        the m-th largest value of coordinate j
    w = 1 - max over S of min over S of 1 - x_j    the m-th smallest
    Y_t = max over S with t of min over S of x_j = min(x(t)_j, v)
    1 - Z_t, likewise from 1 - x_j,              = max(x(t)_j, w)

One of Y_t and 1 - Z_t is x(t)_j itself. A smooth selector weighs them by exp(q (Y - v)^2) and exp(q (1 - Z - w)^2) and
is off by at most `bounds.selector_error(q)`, which falls as q^(-1/2) and is attained.
Source: Yu et al. (arXiv 2510.06662), Theorem 1. Its last step, a polynomial in place of the function, is omitted: the
outer map here is the function itself, continuous but not C^1.
"""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._shapes import Target, Tokens
from ...errors import require
from ...tasks import Retrieval
from ..bounds import selector_error
from ..doors import require_counts, require_positive

MAX_SETS = 2000
"""Limit on the position sets of m places; T = 12 has 220, T = 16 has 1,820, T = 20 would have 15,504."""


def retrieval_of(
    function: Callable[[Tokens], Target], *, length: int, dim: int, q: float, name: str = "density"
) -> Retrieval:
    """Return a retrieval task whose target approximates `function` on sequences in [0,1]^(length x dim).

    Every input is recovered within `bounds.selector_error(q)`; `promised_error` bounds the error of the target.
    Raises `InputError` where 4 does not divide the length, or the length has more than `MAX_SETS` position sets.
    """
    require_counts(length=length, dim=dim)
    require(length % 4 == 0, f"length must be a multiple of 4 (Theorem 1 uses sets of T/4 places), got {length}.")
    require_positive(q=q)
    count = math.comb(length, length // 4)
    require(
        count <= MAX_SETS,
        f"length {length} has {count} sets of {length // 4} places, more than {MAX_SETS}; length must be at most 16.",
    )
    sets = list(itertools.combinations(range(length), length // 4))
    members = np.zeros((count, length), bool)
    for row, places in enumerate(sets):
        members[row, list(places)] = True

    def primitives(token: Float[Array, " dim"]) -> Float[Array, " D"]:
        """Return every coordinate, and one minus it, once per position set."""
        return jnp.repeat(jnp.concatenate([token, 1 - token]), count)

    def best_with(minima: Float[Array, " sets"]) -> Float[Array, " length"]:
        """For every place the largest minimum over a set that contains it."""
        return jnp.max(jnp.where(members, minima[:, None], -jnp.inf), axis=0)

    def coordinate(of_x: Float[Array, " sets"], of_rest: Float[Array, " sets"]) -> Float[Array, " length"]:
        upper, lower = jnp.max(of_x), 1 - jnp.max(of_rest)
        capped, raised = best_with(of_x), 1 - best_with(of_rest)
        # The ratio of the two weights as a sigmoid, so that no exponential overflows.
        share = jax.nn.sigmoid(float(q) * ((raised - lower) ** 2 - (capped - upper) ** 2))
        return capped + share * (raised - capped)

    def of_recovered(minima: Float[Array, " D"]) -> Target:
        """Return the function of the sequence that has these minima."""
        of_x, of_rest = minima.reshape(2, dim, count)
        return jnp.atleast_1d(function(jax.vmap(coordinate, out_axes=1)(of_x, of_rest)))

    return Retrieval(
        primitives,
        of_recovered,
        length=length,
        dim=dim,
        distribution="cube",
        position_sets=sets * (2 * dim),
        name=name,
    )


def promised_error(q: float, lipschitz: float = 1.0) -> float:
    """Bound the error of `retrieval_of` for a function of this Lipschitz constant in the maximum norm."""
    require(0 <= lipschitz < math.inf, f"lipschitz must be finite and not negative, got {lipschitz!r}.")
    require_positive(q=q)
    return lipschitz * selector_error(q)
