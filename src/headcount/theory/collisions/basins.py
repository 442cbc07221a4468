"""The most responsive tokens of all heads, and a basin without one: the first half of the proof of Theorem 2(2).

Tokens stay a little inside the cube, so that a certificate has room around them. Minimisers, scores and slopes come
from searches and samples in float64.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...errors import InputError
from ...keys import named_generator
from ...tasks import Retrieval
from ..assumptions import AssumptionReport
from ..constructions.adversary import sign_ascent
from .domain import CUBE
from .heads import FoldedHeads

POINTS, CLIMBERS, CLIMB_STEPS, SAMPLES = 1024, 16, 200, 257
"""Random tokens, ascents from the best of them, and steps per ascent, in the search for a most responsive token; points
at which the slopes along a segment are evaluated."""
START = 0.25
"""Start of a segment, as a share of the way from the minimiser to its end: at the minimiser f_i is flat."""


class NoBasinError(InputError):
    """The most responsive tokens cover every basin, so that the proof has no pair."""


class Responsive(NamedTuple):
    """The token and place at which one head has its highest score."""

    head: int
    place: int
    token: Float[np.ndarray, " dim"]
    score: float


class Segment(NamedTuple):
    """A segment from `start` to `stop`, leading away from x^(i), with two sampled slopes.

    |f_i(x) - f_i(y)| >= slope |x - y| on it, and the target moves at least `outer_slope` times as much as z_i while the
    other minima stay at z_k*.
    """

    start: Float[np.ndarray, " dim"]
    stop: Float[np.ndarray, " dim"]
    slope: float
    outer_slope: float


def most_responsive(heads: FoldedHeads, dim: int, seed: int) -> tuple[Responsive, ...]:
    """Return for each head in turn its highest score over the cube and all places that no earlier head uses."""
    points = named_generator(seed, "most responsive tokens").random((POINTS, dim))
    points[::4] = points[::4].round()  # corners: scores are piecewise linear and often highest there
    points = CUBE.clip(points)
    biases = np.concatenate([np.asarray(heads.bias), np.asarray(heads.score_bias)], axis=1)
    _, kinds, kind = np.unique(biases, axis=0, return_index=True, return_inverse=True)  # equal places: one search
    tokens, scores = (np.asarray(part)[kind.ravel()] for part in _climb(heads, jnp.asarray(points), jnp.asarray(kinds)))
    responsive, used = [], np.zeros(len(biases), bool)
    for head in range(scores.shape[1]):
        place = int(np.argmax(np.where(used, -np.inf, scores[:, head])))
        used[place] = True
        score = float(scores[place, head])
        responsive.append(Responsive(head=head, place=place, token=tokens[place, head], score=score))
    return tuple(responsive)


@jax.jit
def _climb(
    heads: FoldedHeads, points: Float[Array, "points dim"], places: Int[Array, " places"]
) -> tuple[Float[Array, "places heads dim"], Float[Array, "places heads"]]:
    """Return for every place and head the token with the highest score, and that score."""
    low, high = CUBE.inner
    climb = functools.partial(sign_ascent, steps=CLIMB_STEPS, low=low, high=high, step_size=0.2, decay=0.95)

    def highest_at(place: Array) -> tuple[Array, Array]:
        def ascend(head: Array, token: Array) -> tuple[Array, Array]:
            return climb(lambda x: heads.scores(x, place)[head], token)

        scores = jax.vmap(lambda token: heads.scores(token, place))(points)
        starts = points[jnp.argsort(-scores, axis=0)[:CLIMBERS].T]
        each = jnp.arange(scores.shape[1])
        tops, tokens = jax.vmap(jax.vmap(ascend, in_axes=(None, 0)))(each, starts)
        best = jnp.argmax(tops, axis=1)
        return tokens[each, best], tops[each, best]

    return jax.lax.map(highest_at, places)


def uncovered_basin(
    task: Retrieval, report: AssumptionReport, responsive: tuple[Responsive, ...]
) -> tuple[int, float, Segment]:
    """Return the component i whose segment moves the target most, the distance from x^(i) to fixed tokens, the segment.

    Candidates lead from every minimiser along every axis in both directions, up to where f_i stops rising or reaches
    the value of a fixed token, or where F0 has lost half of its slope. Raises `NoBasinError` where there is none.
    """
    candidates: list[tuple[float, int, float, Segment]] = []
    outputs = np.argmax(np.abs(report.outer_gradient), axis=0)
    fixed = np.array([*report.minimisers, *(point.token for point in responsive)])
    values, count = np.asarray(map_over(task.features, fixed)), len(report.minimisers)
    low, high = CUBE.inner
    ways = np.concatenate([np.eye(task.dim), -np.eye(task.dim)])
    for i, minimiser in enumerate(report.minimisers):
        start = np.clip(minimiser, low, high)
        steps = np.concatenate([high - start, start - low])[:, None] * np.linspace(0, 1, SAMPLES)
        arguments = (i, outputs[i], report.minima, start, ways, steps)
        profiles = (np.asarray(part) for part in _along_axes(task, *map(jnp.asarray, arguments)))
        held = np.array([k != i for k in range(count)] + [point.place in task.position_sets[i] for point in responsive])
        ceiling = float(values[held, i].min())
        radius = float(np.linalg.norm(fixed[held] - minimiser, axis=1).min())
        for way, step, value, slope, outer in zip(ways, steps, *profiles, strict=True):
            here = float(report.outer_gradient[outputs[i], i])
            good = (slope > 0) & (value < ceiling) & (outer * np.sign(here) >= abs(here) / 2)
            good[0] = True  # the minimiser itself, where the slope is zero
            last = SAMPLES - 1 if good.all() else int(np.argmin(good)) - 1
            first = int(np.ceil(START * last))
            if first == last:
                continue
            outer_slope = float(np.abs(outer[: last + 1]).min())
            segment = Segment(
                start=CUBE.clip(minimiser + step[first] * way),
                stop=CUBE.clip(minimiser + step[last] * way),
                slope=float(slope[first : last + 1].min()),
                outer_slope=outer_slope,
            )
            candidates.append((outer_slope * float(value[last] - value[first]), i, radius, segment))
    if not candidates:
        raise NoBasinError(
            f"{task.name}: no f_i rises along an axis from its minimiser before it reaches the value of a most "
            "responsive token; minimisers must be further apart."
        )
    _, component, radius, segment = max(candidates, key=lambda each: each[0])
    return component, radius, segment


@eqx.filter_jit
def _along_axes(
    task: Retrieval, i: Array, output: Array, minima: Array, start: Array, ways: Array, steps: Array
) -> tuple[Array, Array, Array]:
    """Return f_i, its slope and that of F0 at every step from x^(i) along every direction."""

    def at_step(way: Array, step: Array) -> tuple[Array, Array, Array]:
        value, slope = jax.jvp(lambda u: task.features(start + u * way)[i], (step,), (jnp.ones_like(step),))
        gradient = jnp.atleast_2d(jax.jacobian(task.outer)(minima.at[i].set(value)))
        return value, slope, gradient[output, i]

    return jax.vmap(jax.vmap(at_step, in_axes=(None, 0)))(ways, steps)


@eqx.filter_jit
def map_over(function: Callable[[Any], Array], tokens: Any) -> Array:
    """Apply a function of one token or sequence to many. Pytrees (modules, `jax.tree_util.Partial`) compile once."""
    return jax.vmap(function)(tokens)
