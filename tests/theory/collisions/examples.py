"""Small models, and the pairs that a search finds for them: what the tests of collisions and certificates share."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from headcount.models import ClassTokenSpec, ClassTokenTransformer
from headcount.tasks import Retrieval, quadratic_basins, sum_of_maxima
from headcount.theory import Collision, Domain, domain_of, find_collisions
from headcount.theory.collisions.heads import coordinates_read, fold_heads
from headcount.theory.collisions.observables import AbstractObservables

LENGTH, DIM = 4, 2
STARTS, STEPS = 8, 30
TASKS: dict[str, Retrieval] = {
    "maxima": sum_of_maxima(length=LENGTH, intrinsic_dim=2, dim=DIM),
    "basins": quadratic_basins(length=LENGTH, intrinsic_dim=3, dim=DIM),
}
DOMAINS: dict[str, Domain] = {name: domain_of(task) for name, task in TASKS.items()}


@cache
def model(
    seed: int,
    layers: int = 1,
    positions: str = "none",
    heads: int = 1,
    head_dim: int = 2,
    final_norm: bool = False,
) -> ClassTokenTransformer:
    shape = {"heads": heads, "head_dim": head_dim, "layers": layers, "positions": positions, "final_norm": final_norm}
    spec = ClassTokenSpec(hidden=8, **shape)  # pyright: ignore
    return spec.init(seed, length=LENGTH, dim=DIM, outputs=1)


@cache
def found(name: str, seeds: tuple[int, ...], layers: int = 1, positions: str = "none") -> list[list[Collision]]:
    """The pairs of one model a seed, all searched at once."""
    models = [model(seed, layers, positions) for seed in seeds]
    return find_collisions(models, TASKS[name], DOMAINS[name], starts=STARTS, steps=STEPS)


def close_pair(observables: AbstractObservables, start: np.ndarray, steps: int = 30) -> np.ndarray:
    """A pair near `start` whose numbers agree as far as float64 goes, by plain minimum-norm Newton steps."""
    with jax.enable_x64(True):
        linearised = jax.jit(lambda pair: observables.linearised(observables.tied(pair)))
        pair = np.asarray(observables.tied(jnp.asarray(start)))
        for _ in range(steps):
            difference, rows = (np.asarray(part) for part in linearised(jnp.asarray(pair)))
            if np.abs(difference).max() <= 1e-15:
                break
            step = np.linalg.pinv(rows, rcond=1e-11) @ difference
            pair = pair - (step * min(1.0, 0.3 / np.abs(step).max())).reshape(pair.shape)
        return np.asarray(observables.tied(jnp.asarray(pair)))


def collision_at(pair: np.ndarray, observables: AbstractObservables) -> Collision:
    """The pair as a search would hand it over; certificates do not rest on the distance and gap it claims."""
    return Collision(pair=pair, distance=0.0, gap=0.0, observables=observables)


def head_observables(kind, weights: ClassTokenTransformer, shared: tuple[int, ...] = (), length: int = LENGTH):
    """Use under `jax.enable_x64(True)`."""
    coordinates = coordinates_read([weights])
    heads = jax.tree.map(jnp.asarray, fold_heads(weights, coordinates, length)[0])
    return kind(heads=heads, coordinates=coordinates, shared=shared)
