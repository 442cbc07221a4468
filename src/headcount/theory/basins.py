"""Where heads look, and a basin where none does: the first half of the proof of Theorem 2(2).

Tokens are sought a little inside the cube; minimisers, scores and slopes come from searches and samples in float64.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._errors import require
from .._keys import named_generator
from ..tasks import Retrieval
from ..tasks.assumptions import AssumptionReport
from .collisions import Domain
from .heads import Heads

CUBE = Domain(0.0, 1.0)
"""All tokens are sought a little inside it, so that a certificate has room around them."""
POINTS, CLIMBERS, CLIMB_STEPS = 1024, 16, 200
"""A most responsive token is the best end of this many ascents, each from one of the best random tokens."""
SAMPLES = 257
"""Points at which a segment's slopes are looked at."""
START = 0.25
"""Where a segment begins, as a share of the way to its end: at the minimiser itself f_i is flat."""


@dataclass(frozen=True, kw_only=True)
class Responsive:
    """Where head `head` scores highest: `token` at `place`."""

    head: int
    place: int
    token: Float[np.ndarray, " dim"]
    score: float


@dataclass(frozen=True, kw_only=True)
class Segment:
    """From `start` to `stop`, away from x^(i): |f_i(x) - f_i(y)| >= slope |x - y|, and the target moves at least
    `outer_slope` times as much as z_i while the other minima stay at z_k*. Both slopes are sampled."""

    start: Float[np.ndarray, " dim"]
    stop: Float[np.ndarray, " dim"]
    slope: float
    outer_slope: float

    def at(self, share: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        return self.start + np.asarray(share)[..., None] * (self.stop - self.start)


def most_responsive(heads: Heads, dim: int, seed: int) -> tuple[Responsive, ...]:
    """For each head in turn the highest score it has anywhere on the cube at a place that is not used yet."""
    points = named_generator(seed, "most responsive tokens").random((POINTS, dim))
    points[::4] = points[::4].round()  # corners: a score is piecewise linear and often highest at one
    points = CUBE.clip(points)
    knows = np.concatenate([np.asarray(heads.bias), np.asarray(heads.score_bias)], axis=1)
    _, kinds, kind = np.unique(knows, axis=0, return_index=True, return_inverse=True)  # places that are all alike
    tokens, scores = (np.asarray(part)[kind.ravel()] for part in _climb(heads, jnp.asarray(points), jnp.asarray(kinds)))
    found, used = [], np.zeros(len(knows), bool)
    for head in range(scores.shape[1]):
        place = int(np.argmax(np.where(used, -np.inf, scores[:, head])))
        used[place] = True
        score = float(scores[place, head])
        found.append(Responsive(head=head, place=place, token=tokens[place, head], score=score))
    return tuple(found)


@jax.jit
def _climb(
    heads: Heads, points: Float[Array, "points dim"], places: Int[Array, " places"]
) -> tuple[Float[Array, "places heads dim"], Float[Array, "places heads"]]:
    """For every place and head the best end of the ascents."""

    def ascend(place: Array, head: Array, token: Array) -> tuple[Array, Array]:
        def step(i: Array, carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            token, best, score = carried
            value, slope = jax.value_and_grad(lambda x: heads.scores(x, place)[head])(token)
            best, score = jnp.where(value > score, token, best), jnp.maximum(value, score)
            # Signs, not sizes: how steep a score is depends on beta.
            return jnp.clip(token + 0.2 * 0.95**i * jnp.sign(slope), *CUBE.inner), best, score

        _, best, score = jax.lax.fori_loop(0, CLIMB_STEPS, step, (token, token, jnp.asarray(-jnp.inf)))
        return best, score

    def at(place: Array) -> tuple[Array, Array]:
        scores = jax.vmap(lambda token: heads.scores(token, place))(points)
        begun = points[jnp.argsort(-scores, axis=0)[:CLIMBERS].T]
        each = jnp.arange(scores.shape[1])
        ends, tops = jax.vmap(lambda head, own: jax.vmap(lambda x: ascend(place, head, x))(own))(each, begun)
        best = jnp.argmax(tops, axis=1)
        return ends[each, best], tops[each, best]

    return jax.lax.map(at, places)


def uncovered_basin(
    task: Retrieval, report: AssumptionReport, responsive: tuple[Responsive, ...]
) -> tuple[int, float, Segment]:
    """The component on whose segment the target can move most, and how far from its minimiser a fixed token is.

    From every minimiser every axis is followed both ways, to where f_i stops rising, meets the value of a fixed token,
    or F0 has lost half of its slope.
    """
    found: list[tuple[float, int, float, Segment]] = []
    outputs = np.argmax(np.abs(report.outer_gradient), axis=0)
    fixed = np.array([*report.minimisers, *(point.token for point in responsive)])
    values, count = over(task.features, fixed), len(report.minimisers)
    for i, (ways, steps, *looks) in enumerate(_along_axes(task, report, outputs)):
        held = np.array([k != i for k in range(count)] + [point.place in task.position_sets[i] for point in responsive])
        ceiling = float(values[held, i].min())
        radius = float(np.linalg.norm(fixed[held] - report.minimisers[i], axis=1).min())
        for way, step, value, slope, outer in zip(ways, steps, *looks, strict=True):
            here = float(report.outer_gradient[outputs[i], i])
            good = (slope > 0) & (value < ceiling) & (outer * np.sign(here) >= abs(here) / 2)
            good[0] = True  # the minimiser itself, where the slope is zero
            last = SAMPLES - 1 if good.all() else int(np.argmin(good)) - 1
            first = int(np.ceil(START * last))
            if first == last:
                continue
            least = float(np.abs(outer[: last + 1]).min())
            segment = Segment(
                start=CUBE.clip(report.minimisers[i] + step[first] * way),
                stop=CUBE.clip(report.minimisers[i] + step[last] * way),
                slope=float(slope[first : last + 1].min()),
                outer_slope=least,
            )
            found.append((least * float(value[last] - value[first]), i, radius, segment))
    require(
        len(found) > 0,
        f"{task.name}: along no axis does an f_i rise from its minimiser before it meets a most responsive token's "
        "value; minimisers must lie apart.",
    )
    _, component, radius, segment = max(found, key=lambda each: each[0])
    return component, radius, segment


def _along_axes(
    task: Retrieval, report: AssumptionReport, outputs: Int[np.ndarray, " D"]
) -> Iterator[tuple[np.ndarray, ...]]:
    """For each component: the ways, steps along each as far as the cube goes, and there f_i, its slope, that of F0."""
    low, high = CUBE.inner
    ways = np.concatenate([np.eye(task.dim), -np.eye(task.dim)])
    places = np.clip(report.minimisers, low, high)
    rooms = np.concatenate([high - places, places - low], axis=1)
    steps = rooms[..., None] * np.linspace(0, 1, SAMPLES)

    @jax.jit
    @partial(jax.vmap, in_axes=(0, 0, 0, 0))
    @partial(jax.vmap, in_axes=(None, None, 0, 0))
    @partial(jax.vmap, in_axes=(None, None, None, 0))
    def look(i: Array, output: Array, way: Array, step: Array) -> tuple[Array, Array, Array]:
        start = jnp.asarray(places)[i]
        value, slope = jax.jvp(lambda u: task.features(start + u * way)[i], (step,), (jnp.ones_like(step),))
        gradient = jnp.atleast_2d(jax.jacobian(task.outer)(jnp.asarray(report.minima).at[i].set(value)))
        return value, slope, gradient[output, i]

    count = len(places)
    each = np.broadcast_to(ways, (count, *ways.shape))
    looks = look(jnp.arange(count), jnp.asarray(outputs), jnp.asarray(each), jnp.asarray(steps))
    return zip(each, steps, *(np.asarray(part) for part in looks), strict=True)


def over(function: Callable[[Array], Array], tokens: np.ndarray) -> np.ndarray:
    """A function of one token or sequence at many."""
    return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(tokens)))
