"""Two sequences that a model cannot tell apart: the search for collisions.

The readout sees only c(X), the E = n h coordinates of the class token after attention, or a norm of it. Where c(X1) =
c(X2) every readout gives both sequences the same prediction, so its error on one of them is at least half the
difference of the targets, however large the readout is. This is the mechanism of Theorem 2(2), run on a given model:

    maximise |H(X1) - H(X2)|   subject to   G(X1, X2) = c(X1) - c(X2) = 0

by projected ascent in float64, from many starts at once: with J the Jacobian of G, a step along the constraint is the
gradient of the gap without its part in the row space of J, a step back is the minimum-norm Newton step -J^+ G. A search
proves nothing: `certificates` does.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(2), whose pairs come from a pigeonhole argument (`pigeonhole`) instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array

from ..._precision import in_double
from ...errors import InputError, require
from ...keys import named_generator
from ...models import ClassTokenTransformer
from ...tasks import GeneratedTask
from ..doors import require_counts
from .domain import Domain, Pair, anchored_starts, free_starts, shared_places
from .heads import coordinates_read, stack_heads
from .observables import (
    AbstractObservables,
    CentredOutputs,
    ClassOutputs,
    HeadOutputs,
    Moments,
    check_fit,
    mixing_of,
)

ROUNDS = 2
"""Each later round starts from the best pairs of the one before, perturbed."""
SURVIVORS = 12
PERTURBATION = 0.02
"""Of pairs between rounds, as a share of the domain's width."""
NEWTON_STEPS = 60
CONVERGED = 1e-13
"""Newton steps stop at this distance: the rest is rounding."""
NEAR = 1e-3
"""An ascent that ends further than this from the constraint ranks below all others."""
RIDGE = 1e-13
"""Added to the diagonal of a Gram matrix, as a share of its trace: a head that attends to one token sharply moves in
fewer directions than it has coordinates, and J is close to singular."""
FORWARD = 0.85
"""Share of the steps that may go forward; the rest only return to the constraint."""
MIN_STEP = 1e-3
"""The smallest step, as a share of the reach of the observables."""


@dataclass(frozen=True, kw_only=True)
class Collision:
    """Two sequences, the distance of their observables and the gap of their targets."""

    pair: Pair
    distance: float
    """|G|, the Euclidean norm, in the units of `observables`."""
    gap: float
    """The largest difference of a target number."""
    observables: AbstractObservables
    """The numbers that agree between the two."""


def find_collisions(
    models: Sequence[ClassTokenTransformer],
    task: GeneratedTask,
    domain: Domain,
    *,
    anchors: np.ndarray | None = None,
    starts: int = 48,
    steps: int = 150,
    seed: int = 0,
) -> list[list[Collision]]:
    """Search for pairs that collide, for every model.

    Without `anchors` both sequences are searched for; else the first one is an anchor (anchors, length, dim). `starts`
    are ascents per model, or per model and anchor. Models must have one shape. Gives the pairs found per model, the
    largest gap first. Check `distance`: an ascent may fail to return to the constraint. Raises `InputError` where
    models differ in shape or do not fit the task, anchors leave the domain, or weights are not finite.
    """
    require_counts(starts=starts, steps=steps)
    require(len(models) > 0, "models must contain at least one model, got none.")
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(model)) for model in models}
    require(len(shapes) == 1, f"models searched together must have one shape, got {len(shapes)}.")
    for model in models:
        check_fit(model, task)
    with jax.enable_x64(True):
        if anchors is None:
            groups, pairs = list(models), [free_starts(task, domain, starts, seed)] * len(models)
        else:
            require(
                anchors.ndim == 3 and len(anchors) > 0 and anchors.shape[1:] == (task.length, task.dim),
                f"anchors of {task.name} must have shape (any, {task.length}, {task.dim}), got {anchors.shape}.",
            )
            domain.require_inside("anchors", anchors)
            # A group of pairs per model and anchor.
            groups = [model for model in models for _ in anchors]
            pairs = [anchored_starts(anchors, i, domain, starts, seed) for i in range(len(anchors))] * len(models)
        collisions: list[list[Collision]] = [[] for _ in models]
        for observables in _observables(groups, task.length, anchored=anchors is not None):
            search = _CollisionSearch(observables, in_double(task), domain, steps, anchors is not None)
            for i, group in enumerate(search.best_pairs(np.stack(pairs), seed)):
                collisions[i * len(models) // len(groups)] += group
    if not any(collisions):
        raise InputError(f"{task.name}: every search met NaN or infinite numbers; are the model's weights finite?")
    return [sorted(of_model, key=lambda collision: -collision.gap) for of_model in collisions]


def close_pairs(
    observables: AbstractObservables, task: GeneratedTask, domain: Domain, pairs: np.ndarray
) -> list[Collision]:
    """Return the collisions of one model that Newton steps reach from pairs, the largest gap first.

    Cheaper than a search, which maximises the gap too. Check `distance`: steps may fail to reach a collision.
    """
    with jax.enable_x64(True):
        of_one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], observables)
        search = _CollisionSearch(of_one, in_double(task), domain, steps=1, anchored=False)
        (closed,) = search._polish(np.asarray(pairs)[None])
    return sorted(closed, key=lambda collision: -collision.gap)


def _observables(models: Sequence[ClassTokenTransformer], length: int, *, anchored: bool) -> list[AbstractObservables]:
    """Return the observables that pairs should agree in: outputs always; moments too where both sequences are free.

    Of one layer with a norm before the readout both whole and centred outputs: a norm merges more than heads do.
    """
    if len(models[0].attention) > 1:
        double = [in_double(model) for model in models]
        return [ClassOutputs(model=jax.tree.map(lambda *leaves: jnp.stack(leaves), *double))]
    heads, coordinates = stack_heads(models, length), coordinates_read(models)
    outputs = HeadOutputs(heads=heads, coordinates=coordinates)
    searched: list[AbstractObservables] = [outputs]
    if models[0].spec.final_norm and len(models[0].class_token) > 1:
        mixing = jnp.stack([jnp.asarray(mixing_of(model, coordinates)) for model in models])
        searched.append(CentredOutputs(outputs=outputs, mixing=mixing[:, 1:] - mixing[:, :1]))
    if not anchored:
        shared = shared_places(len(heads.score_weight[0]), length)
        searched.append(Moments(heads=heads, coordinates=coordinates, shared=shared))
    return searched


@dataclass(frozen=True)
class _CollisionSearch:
    """One search: all models, all pairs at once."""

    observables: AbstractObservables
    task: GeneratedTask
    domain: Domain
    steps: int
    anchored: bool

    def best_pairs(self, pairs: np.ndarray, seed: int) -> list[list[Collision]]:
        """Return for each group the best pairs of the last round."""
        generator = named_generator(seed, "shaken pairs")
        size = PERTURBATION * (self.domain.high - self.domain.low)
        starts = pairs.shape[1]
        ends, best = self._round(pairs)
        for _ in range(ROUNDS - 1):
            again = best[:, np.arange(starts) % best.shape[1]]
            pairs = np.take_along_axis(ends, again[..., None, None, None], axis=1)
            # One draw for all groups: the pairs of a model do not depend on the models searched with it.
            moved = np.broadcast_to(size * generator.standard_normal(pairs.shape[1:]), pairs.shape).copy()
            if self.anchored:
                moved[:, :, 0] = 0.0
            ends, best = self._round(np.where(moved == 0, pairs, self.domain.clip(pairs + moved)))
        return self._polish(np.take_along_axis(ends, best[..., None, None, None], axis=1))

    def _round(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs at which every ascent ended, and the indices of the best."""
        arguments = self.observables, self.task, jnp.asarray(pairs), self.domain, self.steps, self.anchored
        ends, distances, gaps = (np.asarray(part) for part in _ascend_all(*arguments))
        distances = np.where(np.isfinite(distances), distances, np.inf)
        # Pairs near the constraint before the others, the largest gap first.
        return ends, np.lexsort((-gaps, distances > NEAR), axis=1)[:, :SURVIVORS]

    def _polish(self, pairs: np.ndarray) -> list[list[Collision]]:
        """Take minimum-norm Newton steps, damped where they overshoot, until no pair comes nearer.

        Shared tokens do not move: nothing depends on them.
        """
        trial, best = pairs.copy(), pairs.copy()
        distance, damping = np.full(pairs.shape[:2], np.inf), np.full(pairs.shape[:2], 1e-15)
        difference = jacobian = np.empty(0)
        for _ in range(NEWTON_STEPS):
            here = _linearise_all(self.observables, self.task, jnp.asarray(trial), self.anchored)
            trial_difference, trial_jacobian = np.asarray(here[0]), np.asarray(here[1])
            trial_distance = np.linalg.norm(trial_difference, axis=-1)
            better = trial_distance < distance
            if distance[0, 0] == np.inf:
                difference, jacobian = trial_difference.copy(), trial_jacobian.copy()
            difference[better], jacobian[better] = trial_difference[better], trial_jacobian[better]
            best[better], distance[better] = trial[better], trial_distance[better]
            damping = np.clip(np.where(better, damping / 100, damping * 30), 1e-15, 1.0)
            busy = (distance > CONVERGED) & np.isfinite(distance) & (damping < 1.0)
            if not busy.any():
                break
            for at in zip(*np.nonzero(busy), strict=True):
                trial[at] = _newton_step(best[at], difference[at], jacobian[at], float(damping[at]), self.domain)
        gaps = np.asarray(_gaps_all(self.task, jnp.asarray(best)))
        return [
            [
                Collision(pair=pair, distance=float(apart), gap=float(gap), observables=observables)
                for pair, apart, gap in zip(*rows, strict=True)
                if np.isfinite(apart)
            ]
            for i, rows in enumerate(zip(best, distance, gaps, strict=True))
            for observables in [jax.tree.map(lambda leaf, i=i: leaf[i], self.observables)]
        ]


def _gap(task: GeneratedTask, pair: Array) -> Array:
    return jnp.max(jnp.abs(task.target(pair[0]) - task.target(pair[1])))


def _linearise(observables: AbstractObservables, task: GeneratedTask, pair: Array, anchored: bool) -> tuple[Array, ...]:
    """Return G of one pair, J, and the gradient of the gap; zeros for coordinates that are held."""
    difference, jacobian = observables.linearised(observables.tied(pair))
    gradient = jax.grad(lambda pair: _gap(task, observables.tied(pair)))(pair).ravel()
    if anchored:
        free = np.repeat([0.0, 1.0], pair[0].size)
        jacobian, gradient = jacobian * free, gradient * free
    return difference, jacobian, gradient


def _ascend(
    observables: AbstractObservables, task: GeneratedTask, pair: Array, domain: Domain, steps: int, anchored: bool
) -> tuple[Array, Array, Array]:
    """Ascend from one pair: along the constraint by shrinking steps, and back to it.

    Tokens are middle + half sin(angle), and steps are taken in the angles, so that none leaves the domain.
    """
    low, high = domain.inner
    middle, half = (low + high) / 2, (high - low) / 2
    reach = jnp.minimum(observables.reach(pair), half / 2)

    def move(i: Array, carried: tuple[Array, Array]) -> tuple[Array, Array]:
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
    angles, _ = jax.lax.fori_loop(0, steps, move, (angles, jnp.asarray(0.1)))
    ended = middle + half * jnp.sin(angles)
    pair = observables.tied(ended.at[0].set(pair[0]) if anchored else ended)
    distance = jnp.linalg.norm(observables.difference(pair, observables.scale(pair)))
    return pair, distance, _gap(task, pair)


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of one model's observables and one pair for all models and each of their pairs."""

    @eqx.filter_jit
    def every(observables: AbstractObservables, task: GeneratedTask, pairs: Array, *options: Any) -> Any:
        def of_one(one: AbstractObservables, group: Array) -> Any:
            return jax.vmap(lambda pair: function(one, task, pair, *options))(group)

        return jax.vmap(of_one)(observables, pairs)

    return every


_ascend_all, _linearise_all = _mapped(_ascend), _mapped(_linearise)
_gaps_all = eqx.filter_jit(lambda task, pairs: jax.vmap(jax.vmap(lambda pair: _gap(task, pair)))(pairs))


def _newton_step(pair: Pair, difference: np.ndarray, jacobian: np.ndarray, damping: float, domain: Domain) -> Pair:
    """Return the pair after a minimum-norm Newton step inside the domain.

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
