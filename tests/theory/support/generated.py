"""Random retrieval tasks of known support dimension: bowls, ridges and waves, outer maps, windows, idle and doubled
components."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from headcount.keys import named_generator
from headcount.tasks import Retrieval

WINDOWS = ((0.0, 0.5), (0.5, 1.0), (0.25, 0.75), (0.0, 0.25), (0.75, 1.0), (0.0, 1.0))


@dataclass(frozen=True)
class Generated:
    """A task, its support dimension, and what it is made of."""

    task: Retrieval
    support: int
    made_of: str


def generated(number: int) -> Generated:
    """The task of this number. Distinct components count once each; copies and idle ones not at all."""
    draw = named_generator(number, "tasks of known support")
    count, dim = int(draw.integers(1, 7)), int(draw.integers(1, 7))
    kind = ["bowls", "ridges", "waves"][number % 3]
    if dim == 1 and kind == "ridges":
        count = min(count, 2)  # a line has two ends
    parts = [_component(kind, i, dim, draw) for i in range(count)]
    extra = int(draw.integers(0, 3)) if number % 2 else 0
    copies = [int(draw.integers(count)) for _ in range(extra)]
    idle = int(draw.integers(0, 2))
    components = [*parts, *(parts[i] for i in copies), *(_component("bowls", 9, dim, draw) for _ in range(idle))]
    outer, shape = _outer(kind, count, count + extra, draw)
    windows = None
    if number % 5 == 0:
        turns = [WINDOWS[int(draw.integers(len(WINDOWS)))] for _ in range(count)]
        windows = [*turns, *(turns[i] for i in copies), *[(0.0, 1.0)] * idle]
    task = Retrieval(
        components,
        outer,
        length=int(draw.choice([24, 32])),
        dim=dim,
        distribution="gaussian" if kind == "ridges" and number % 4 == 1 else "cube",
        windows=windows,
        name=f"generated-{number}",
    )
    made_of = f"{count} {kind}, d = {dim}, {extra} copies, {idle} idle, {shape}"
    return Generated(task, count, made_of + (", windows" if windows else ""))


def _component(kind: str, place: int, dim: int, draw: np.random.Generator):
    if kind == "ridges":
        direction = draw.standard_normal(dim)
        direction = direction / np.linalg.norm(direction) if dim > 1 else np.array([1.0 if place == 0 else -1.0])
        return lambda x: direction @ x
    centre = draw.uniform(0.1, 0.9, dim)
    if dim == 1:
        centre = np.array([0.1 + 0.13 * place + 0.02 * draw.random()])
    if kind == "waves":
        return lambda x: jnp.mean((x - centre) ** 2) + 0.05 * jnp.sin(7 * jnp.sum((x - centre) ** 2))
    return lambda x: jnp.mean((x - centre) ** 2)


def _outer(kind: str, count: int, used: int, draw: np.random.Generator):
    """A map of the first `used` minima; it depends on each of the first `count`."""
    weights = draw.uniform(0.5, 1.5, used) * draw.choice([-1, 1], used)
    weights[count:] = np.abs(weights[count:]) * 0.1
    maps = [
        (lambda z: weights @ z[:used], "linear"),
        (lambda z: jnp.tanh(weights @ z[:used]), "tanh"),
        (lambda z: jnp.sum(jnp.exp(weights * z[:used])), "exponentials"),
        (lambda z: jnp.prod(1.5 + jnp.tanh(z[:used])), "product"),
        (lambda z: jnp.stack([jnp.sum(z[:used]), weights @ z[:used] ** 2]), "two outputs"),
        (lambda z: jnp.sum(jnp.maximum(z[:used] - 0.05, 0.0) ** 2), "only far from the minima"),
    ]
    # The minimum of a ridge can be negative everywhere: the last map would not depend on it.
    return maps[int(draw.integers(len(maps) - (kind == "ridges")))]
