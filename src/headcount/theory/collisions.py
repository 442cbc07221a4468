"""Two sequences that a model cannot tell apart: the search for collisions.

Whatever reads the attention layer sees only c(X), the E = n h numbers of the class token. Where c(X1) = c(X2) every
readout answers both alike, so one of them is answered wrong by half the difference of the targets at least, however
large the readout is. This is the engine of Theorem 2(2), run on a given model:

    maximise |H(X1) - H(X2)|   subject to   G(X1, X2) = c(X1) - c(X2) = 0

by steps along the constraint (the gradient without its part in the row space of G's Jacobian J) and back to it (the
minimum-norm Newton step -J^+ G), in float64, from many starts at once. A search proves nothing: `certificates` does.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(2), where pairs come from a pigeonhole (`pigeonhole`) instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from .._errors import InputError, require, require_count
from .._keys import named_generator
from .._precision import in_double
from ..models import ClassTokenTransformer
from ..tasks import AbstractTask
from .heads import numbers_read, stacked
from .sight import AbstractSight, ClassOutputs, HeadOutputs, Moments, check_fit

STARTS = 48
STEPS = 150
ROUNDS = 2
"""After the first round the best pairs, a little shaken, are the starts of the next."""
SURVIVORS = 12
SHAKE = 0.02
NEWTON_STEPS = 60
CLOSE = 1e-13
"""Near enough: what is left is rounding."""
NEAR = 1e-3
"""A search that ends further than this from the constraint is taken to have left it."""
INSIDE = 1e-6
"""How far from the domain's faces a search stays, as a share of its width."""
RIDGE = 1e-13
"""What is added to a Gram matrix's diagonal, as a share of its trace: a head that reads one token sharply moves in
fewer directions than it has numbers, and J is close to singular."""
FORWARD = 0.85
"""The share of the steps that go forward at all."""
SHORTEST = 1e-3
"""No step is shorter than this, as a share of what the sight calls its reach."""

Pair = Float[np.ndarray, "2 length dim"]


@dataclass(frozen=True)
class Domain:
    """The tokens a claim speaks of: every number of every token lies between `low` and `high`."""

    low: float
    high: float

    def __post_init__(self):
        require(
            -np.inf < self.low < self.high < np.inf,
            f"a domain needs finite ends with low < high, got {self.low!r} and {self.high!r}.",
        )

    @property
    def inner(self) -> tuple[float, float]:
        """Its ends, a little inwards: where pairs are searched, so that a certificate has room around them."""
        margin = INSIDE * (self.high - self.low)
        return self.low + margin, self.high - margin

    def clip(self, tokens: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        return np.clip(tokens, *self.inner)


def domain_of(task: AbstractTask, radius: float = 3.0) -> Domain:
    """The cube for tasks on the cube; for Gaussian tokens, which have no bound, the box within `radius`."""
    distribution = getattr(task, "distribution", None)
    require(
        distribution is not None,
        f"{task.name} is made of stored examples; a collision needs a task whose target can be computed anywhere.",
    )
    if distribution == "cube":
        return Domain(0.0, 1.0)
    require(0 < radius < np.inf, f"radius must be positive and finite, got {radius!r}.")
    return Domain(-radius, radius)


@dataclass(frozen=True, kw_only=True)
class Collision:
    """Two sequences, how far apart what the readout sees of them is, and how far apart their targets are."""

    pair: Pair
    distance: float
    """|G|, the Euclidean norm, in the units of `sight`."""
    gap: float
    """The largest difference of a target number."""
    sight: AbstractSight
    """The numbers that agree."""


def find_collisions(
    models: Sequence[ClassTokenTransformer],
    task: AbstractTask,
    domain: Domain,
    *,
    anchors: np.ndarray | None = None,
    starts: int = STARTS,
    steps: int = STEPS,
    seed: int = 0,
) -> list[list[Collision]]:
    """For each model, which must have one shape, the pairs found, the largest gap first.

    With `anchors` the first sequence of a pair is one of them, and the second is searched for, from `starts` places
    each; else both are. Whether a pair collides is for its `distance` to say: a search may fail to return to the
    constraint.
    """
    for name, count in (("starts", starts), ("steps", steps)):
        require_count(name, count)
    require(len(models) > 0, "there is no model to search.")
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(model)) for model in models}
    require(len(shapes) == 1, f"models searched together must have one shape, got {len(shapes)}.")
    for model in models:
        check_fit(model, task)
    with jax.enable_x64(True):
        if anchors is None:
            groups, begun = list(models), [free_starts(task, domain, starts, seed)] * len(models)
        else:
            _check_anchors(anchors, task, domain)
            # An anchor is to the search what a model is: a group of pairs of its own.
            groups = [model for model in models for _ in anchors]
            begun = [anchored_starts(anchors, i, domain, starts, seed) for i in range(len(anchors))] * len(models)
        found = [[] for _ in models]
        for sight in _sights(groups, task.length, anchored=anchors is not None):
            search = _Search(sight, in_double(task), domain, steps, anchored=anchors is not None)
            for i, group in enumerate(search.run(np.stack(begun), seed)):
                found[i * len(models) // len(groups)] += group
    if not any(found):
        raise InputError(f"{task.name}: every search met NaN or infinite numbers; are the model's weights finite?")
    return [sorted(own, key=lambda collision: -collision.gap) for own in found]


def _check_anchors(anchors: np.ndarray, task: AbstractTask, domain: Domain) -> None:
    require(
        anchors.ndim == 3 and len(anchors) > 0 and anchors.shape[1:] == (task.length, task.dim),
        f"anchors of {task.name} must have shape (any, {task.length}, {task.dim}), got {anchors.shape}.",
    )
    low, high = float(anchors.min()), float(anchors.max())
    require(
        domain.low <= low and high <= domain.high,
        f"anchors must lie in [{domain.low:g}, {domain.high:g}], their numbers go from {low:g} to {high:g}.",
    )


def _sights(models: Sequence[ClassTokenTransformer], length: int, *, anchored: bool) -> list[AbstractSight]:
    """What to search through: outputs always; moments too where both sequences are free."""
    if len(models[0].attention) > 1:
        double = [in_double(model) for model in models]
        return [ClassOutputs(model=jax.tree.map(lambda *leaves: jnp.stack(leaves), *double))]
    heads, numbers = stacked(models, length), numbers_read(models)
    sights: list[AbstractSight] = [HeadOutputs(heads=heads, numbers=numbers)]
    if not anchored:
        shared = shared_places(len(heads.score_weight[0]), length)
        sights.append(Moments(heads=heads, numbers=numbers, shared=shared))
    return sights


def shared_places(heads: int, length: int) -> tuple[int, ...]:
    """As many places as heads, spread over the sequence: a shared token can take the weight of one head."""
    if heads >= length:
        return ()
    return tuple(int(place) for place in np.unique(np.linspace(0, length - 1, heads).round().astype(int)))


def _best(distances: Float[np.ndarray, "models starts"], gaps: Float[np.ndarray, "models starts"]) -> np.ndarray:
    """Searches in order of merit: those that came back to the constraint first, the largest gap before the others."""
    apart = np.where(np.isfinite(distances), distances, np.inf)
    return np.lexsort((-gaps, apart > NEAR), axis=1)


def free_starts(task: AbstractTask, domain: Domain, starts: int, seed: int) -> np.ndarray:
    """Pairs: a quarter two sequences drawn apart, a quarter a sequence and its neighbour, and half such neighbours of
    tokens that lie together, where no head prefers one of them by much."""
    generator = named_generator(seed, "starts of collisions")
    middle, half = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
    shape = (starts, task.length, task.dim)
    first = middle + half / 3 * generator.standard_normal(shape)
    width = half * np.exp(generator.uniform(np.log(0.02), np.log(0.5), (starts, 1, 1)))
    centre = middle + half / 3 * generator.standard_normal((starts, 1, task.dim))
    together = np.arange(starts)[:, None, None] % 2 == 1
    first = np.where(together, centre + width * generator.standard_normal(shape), first)
    second = first + 0.1 * np.where(together, width, half) * generator.standard_normal(shape)
    second[::4] = middle + half / 3 * generator.standard_normal(second[::4].shape)
    return domain.clip(np.stack([first, second], axis=1))


def anchored_starts(
    anchors: Float[np.ndarray, "anchors length dim"], which: int, domain: Domain, starts: int, seed: int
) -> Float[np.ndarray, "starts 2 length dim"]:
    """One anchor beside neighbours of itself, ever further away, and every third time beside another anchor."""
    generator = named_generator(seed, "neighbours of anchors")
    width = (domain.high - domain.low) / 2 * np.exp(np.linspace(np.log(0.01), np.log(0.5), starts))[:, None, None]
    anchor = anchors[which]
    others = anchors[(which + 1 + np.arange(starts)) % len(anchors)]
    centre = np.where(np.arange(starts)[:, None, None] % 3 == 2, others, anchor)
    near = centre + width * generator.standard_normal((starts, *anchor.shape))
    return np.stack([np.broadcast_to(anchor, near.shape), domain.clip(near)], axis=1)


class _Search:
    """The compiled parts of a search: all models, all pairs at once."""

    def __init__(self, sight: AbstractSight, task: AbstractTask, domain: Domain, steps: int, *, anchored: bool):
        self.sight, self.task, self.domain, self.steps, self.anchored = sight, task, domain, steps, anchored

    def run(self, pairs: np.ndarray, seed: int) -> list[list[Collision]]:
        """For each group the best pairs of the last round."""
        generator, shake = named_generator(seed, "shaken pairs"), SHAKE * (self.domain.high - self.domain.low)
        starts = pairs.shape[1]
        ends, best = self._round(pairs)
        for _ in range(ROUNDS - 1):
            again = best[:, np.arange(starts) % best.shape[1]]
            pairs = np.take_along_axis(ends, again[..., None, None, None], axis=1)
            # One draw for all groups: what a model's pairs become does not depend on the models beside it.
            moved = np.broadcast_to(shake * generator.standard_normal(pairs.shape[1:]), pairs.shape).copy()
            if self.anchored:
                moved[:, :, 0] = 0.0
            ends, best = self._round(np.where(moved == 0, pairs, self.domain.clip(pairs + moved)))
        return self.polish(np.take_along_axis(ends, best[..., None, None, None], axis=1))

    def _round(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where every ascent ended, and which of them are the best."""
        ends, distances, gaps = self.ascend(pairs)
        return ends, _best(distances, gaps)[:, :SURVIVORS]

    def ascend(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where every ascent ended, how far from colliding, with what gap."""
        found = _ascend_all(self.sight, self.task, jnp.asarray(pairs), self.domain, self.steps, self.anchored)
        return np.asarray(found[0]), np.asarray(found[1]), np.asarray(found[2])

    def _one(self, i: int) -> AbstractSight:
        """The numbers of the i-th model."""
        return jax.tree.map(lambda leaf: leaf[i], self.sight)

    def polish(self, pairs: np.ndarray) -> list[list[Collision]]:
        """Newton steps until they bring no pair any nearer: minimum-norm ones, damped where they overshoot."""
        pairs = pairs.copy()
        pairs[:, :, 1, list(self.sight.shared)] = pairs[:, :, 0, list(self.sight.shared)]
        trial, best = pairs.copy(), pairs.copy()
        nearest, damping = np.full(pairs.shape[:2], np.inf), np.full(pairs.shape[:2], 1e-15)
        difference = jacobian = np.empty(0)
        for _ in range(NEWTON_STEPS):
            found = _linearise_all(self.sight, self.task, jnp.asarray(trial), self.anchored)
            at_trial = np.linalg.norm(np.asarray(found[0]), axis=-1)
            better = at_trial < nearest
            if nearest[0, 0] == np.inf:
                difference, jacobian = np.array(found[0]), np.array(found[1])
            difference[better], jacobian[better] = np.asarray(found[0])[better], np.asarray(found[1])[better]
            best[better], nearest[better] = trial[better], at_trial[better]
            damping = np.clip(np.where(better, damping / 100, damping * 30), 1e-15, 1.0)
            busy = (nearest > CLOSE) & np.isfinite(nearest) & (damping < 1.0)
            if not busy.any():
                break
            for place in zip(*np.nonzero(busy), strict=True):
                trial[place] = _newton(
                    best[place], difference[place], jacobian[place], float(damping[place]), self.domain
                )
        best[:, :, 1, list(self.sight.shared)] = best[:, :, 0, list(self.sight.shared)]
        gaps = np.asarray(_gaps_all(self.task, jnp.asarray(best)))
        return [
            [
                Collision(pair=pair, distance=float(distance), gap=float(gap), sight=self._one(i))
                for pair, distance, gap in zip(*rows, strict=True)
                if np.isfinite(distance)
            ]
            for i, rows in enumerate(zip(best, nearest, gaps, strict=True))
        ]


def _newton(
    pair: np.ndarray, difference: np.ndarray, jacobian: np.ndarray, damping: float, domain: Domain
) -> np.ndarray:
    """The pair after a minimum-norm step inside the domain: numbers that would leave it stop at its face, and the
    others make up for them. Directions in which J is weaker than `damping` times its norm are left alone."""
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


def _gap(task: AbstractTask, pair: Array) -> Array:
    return jnp.max(jnp.abs(task.target(pair[0]) - task.target(pair[1])))


@eqx.filter_jit
def _gaps_all(task: AbstractTask, pairs: Array) -> Array:
    return jax.vmap(jax.vmap(lambda pair: _gap(task, pair)))(pairs)


def _linearise(sight: AbstractSight, task: AbstractTask, pair: Array, anchored: bool) -> tuple[Array, Array, Array]:
    """G of one pair, its Jacobian J, and the gradient of the gap; zeros for what is held."""
    difference, jacobian = sight.linearised(sight.tied(pair))
    gradient = jax.grad(lambda pair: _gap(task, sight.tied(pair)))(pair).ravel()
    if anchored:
        free = np.repeat([0.0, 1.0], pair[0].size)
        jacobian, gradient = jacobian * free, gradient * free
    return difference, jacobian, gradient


@eqx.filter_jit
def _linearise_all(
    sight: AbstractSight, task: AbstractTask, pairs: Array, anchored: bool
) -> tuple[Array, Array, Array]:
    return _for_all(lambda one, pair: _linearise(one, task, pair, anchored), sight, pairs)


@eqx.filter_jit
def _ascend_all(
    sight: AbstractSight, task: AbstractTask, pairs: Array, domain: Domain, steps: int, anchored: bool
) -> tuple[Array, Array, Array]:
    return _for_all(lambda one, pair: _ascend(one, task, pair, domain, steps, anchored), sight, pairs)


def _for_all(function: Callable[[AbstractSight, Array], Any], sight: AbstractSight, pairs: Array) -> Any:
    """Every model with each of its own pairs."""
    return jax.vmap(lambda one, own: jax.vmap(lambda pair: function(one, pair))(own))(sight, pairs)


def _ascend(
    sight: AbstractSight, task: AbstractTask, pair: Array, domain: Domain, steps: int, anchored: bool
) -> tuple[Array, Array, Array]:
    """One model from one pair: along the constraint by ever shorter steps, and back to it.

    Tokens are middle + half sin(angle), and steps are taken in the angles, so that none leaves the domain.
    """
    low, high = domain.inner
    middle, half = (low + high) / 2, (high - low) / 2
    reach = jnp.minimum(sight.reach(pair), half / 2)

    def step(i: Array, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        angles, size = carried
        slope = (half * jnp.cos(angles)).ravel()
        difference, jacobian, gradient = _linearise(sight, task, middle + half * jnp.sin(angles), anchored)
        jacobian, gradient = jacobian * slope, gradient * slope
        gram = jacobian @ jacobian.T
        gram = gram + (RIDGE * jnp.trace(gram) + 1e-30) * jnp.eye(len(gram))
        sides = jnp.stack([difference, jacobian @ gradient], axis=1)
        back, across = (jacobian.T @ cho_solve(cho_factor(gram, lower=True), sides)).T

        def longest(step: Array) -> Array:
            """How far a step moves a token at most, in units of the reach; angles near the faces count too."""
            moved = jnp.linalg.norm((step * slope).reshape(angles.shape), axis=-1) / reach
            return jnp.maximum(jnp.max(moved), jnp.max(jnp.abs(step))) + 1e-300

        along = gradient - across
        away = longest(back)
        # Forward while the constraint is near, faster each time; else back to it, and slower from there. At last only
        # back.
        held = (away < size) & (i < FORWARD * steps)
        forward = jnp.where(held, size, 0.0) * along / longest(along)
        size = jnp.clip(jnp.where(held, 1.3 * size, 0.7 * size), SHORTEST, 1 - i / (FORWARD * steps) + 2 * SHORTEST)
        return angles + (forward - back * jnp.minimum(1.0, 1 / away)).reshape(angles.shape), size

    angles = jnp.arcsin(jnp.clip((pair - middle) / half, -1.0, 1.0))
    angles, _ = jax.lax.fori_loop(0, steps, step, (angles, jnp.asarray(0.1)))
    ended = middle + half * jnp.sin(angles)
    pair = ended.at[0].set(pair[0]) if anchored else ended
    pair = sight.tied(pair)
    return pair, jnp.linalg.norm(sight.difference(pair, sight.scale(pair))), _gap(task, pair)
