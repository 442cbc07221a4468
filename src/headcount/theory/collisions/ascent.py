"""The compiled steps of a search: along the constraint G = 0 and back to it, for all models and pairs at once.

G is the difference of the observables of a pair and J its Jacobian. A step along the constraint is the gradient of the
gap without its part in the row space of J; a step back is the minimum-norm Newton step -J^+ G.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array

from ...tasks import GeneratedTask
from .domain import Domain, Pair
from .observables import AbstractObservables

RIDGE = 1e-13
"""Added to the diagonal of a Gram matrix, as a share of its trace: a head that attends to one token sharply moves in
fewer directions than it has coordinates, and J is close to singular."""
FORWARD = 0.85
"""Share of the steps that may go forward; the rest only return to the constraint."""
MIN_STEP = 1e-3
"""The smallest step, as a share of the reach of the observables."""

Linearised = tuple[Array, Array, Array]
"""G, J and the gradient of the gap."""


def _gap(task: GeneratedTask, pair: Array) -> Array:
    """The largest difference of a target number."""
    return jnp.max(jnp.abs(task.target(pair[0]) - task.target(pair[1])))


def _linearise(observables: AbstractObservables, task: GeneratedTask, pair: Array, anchored: bool) -> Linearised:
    """G of one pair, J, and the gradient of the gap; zeros for coordinates that are held."""
    difference, jacobian = observables.linearised(observables.tied(pair))
    gradient = jax.grad(lambda pair: _gap(task, observables.tied(pair)))(pair).ravel()
    if anchored:
        free = np.repeat([0.0, 1.0], pair[0].size)
        jacobian, gradient = jacobian * free, gradient * free
    return difference, jacobian, gradient


def _ascend(
    observables: AbstractObservables, task: GeneratedTask, pair: Array, domain: Domain, steps: int, anchored: bool
) -> tuple[Array, Array, Array]:
    """One ascent from one pair: along the constraint by shrinking steps, and back to it.

    Tokens are middle + half sin(angle), and steps are taken in the angles, so that none leaves the domain.
    """
    low, high = domain.inner
    middle, half = (low + high) / 2, (high - low) / 2
    reach = jnp.minimum(observables.reach(pair), half / 2)

    def step(i: Array, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        angles, size = carried
        slope = (half * jnp.cos(angles)).ravel()
        difference, jacobian, gradient = _linearise(observables, task, middle + half * jnp.sin(angles), anchored)
        jacobian, gradient = jacobian * slope, gradient * slope
        gram = jacobian @ jacobian.T
        gram = gram + (RIDGE * jnp.trace(gram) + 1e-30) * jnp.eye(len(gram))
        sides = jnp.stack([difference, jacobian @ gradient], axis=1)
        back, across = (jacobian.T @ cho_solve(cho_factor(gram, lower=True), sides)).T

        def length(step: Array) -> Array:
            """The largest move of a token, in units of the reach, or of an angle: near a face angles move more."""
            moved = jnp.linalg.norm((step * slope).reshape(angles.shape), axis=-1) / reach
            return jnp.maximum(jnp.max(moved), jnp.max(jnp.abs(step))) + 1e-300

        along = gradient - across
        away = length(back)
        # Near the constraint: forward, with a growing step. Else: back to it, and shorter steps from there.
        near = (away < size) & (i < FORWARD * steps)
        forward = jnp.where(near, size, 0.0) * along / length(along)
        size = jnp.clip(jnp.where(near, 1.3 * size, 0.7 * size), MIN_STEP, 1 - i / (FORWARD * steps) + 2 * MIN_STEP)
        return angles + (forward - back * jnp.minimum(1.0, 1 / away)).reshape(angles.shape), size

    angles = jnp.arcsin(jnp.clip((pair - middle) / half, -1.0, 1.0))
    angles, _ = jax.lax.fori_loop(0, steps, step, (angles, jnp.asarray(0.1)))
    ended = middle + half * jnp.sin(angles)
    pair = observables.tied(ended.at[0].set(pair[0]) if anchored else ended)
    distance = jnp.linalg.norm(observables.difference(pair, observables.scale(pair)))
    return pair, distance, _gap(task, pair)


def _for_all(function: Callable[..., Any], observables: AbstractObservables, pairs: Array) -> Any:
    """`function` of every model (first axis of the observables) with each of its pairs."""
    return jax.vmap(lambda one, group: jax.vmap(lambda pair: function(one, pair))(group))(observables, pairs)


@eqx.filter_jit
def ascend_all(
    observables: AbstractObservables, task: GeneratedTask, pairs: Array, domain: Domain, steps: int, anchored: bool
) -> tuple[Array, Array, Array]:
    """Where every ascent ended, its distance from a collision, and its gap."""
    return _for_all(lambda one, pair: _ascend(one, task, pair, domain, steps, anchored), observables, pairs)


@eqx.filter_jit
def linearise_all(observables: AbstractObservables, task: GeneratedTask, pairs: Array, anchored: bool) -> Linearised:
    return _for_all(lambda one, pair: _linearise(one, task, pair, anchored), observables, pairs)


@eqx.filter_jit
def gaps_all(task: GeneratedTask, pairs: Array) -> Array:
    return jax.vmap(jax.vmap(lambda pair: _gap(task, pair)))(pairs)


def newton_step(pair: Pair, difference: np.ndarray, jacobian: np.ndarray, damping: float, domain: Domain) -> Pair:
    """The pair after a minimum-norm Newton step inside the domain.

    Coordinates that would leave the domain stop at its face, and the others make up for them. Singular values of J
    below `damping` times its norm are suppressed.
    """
    free, moved = np.any(jacobian != 0, axis=0), np.zeros(pair.size)
    for _ in range(4):
        if not free.any():
            break
        left, sizes, right = np.linalg.svd(jacobian[:, free], full_matrices=False)
        wanted = left.T @ (-difference - jacobian @ moved)
        moved[free] += right.T @ (wanted * sizes / (sizes**2 + (damping * sizes[0]) ** 2 + 1e-300))
        inside = domain.clip(pair.ravel() + moved) - pair.ravel()
        stopped = np.abs(inside - moved) > 0
        moved = inside
        if not (stopped & free).any():
            break
        free &= ~stopped
    return np.where(moved == 0, pair.ravel(), domain.clip(pair.ravel() + moved)).reshape(pair.shape)
