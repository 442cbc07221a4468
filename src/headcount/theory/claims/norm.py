"""Checks of Theorem 2(2) with a layer norm before the readout, which its authors suspect to survive."""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._precision import in_double
from ...answer.claim import Finding, promise_verdict
from ...keys import named_generator
from ...models import ClassTokenSpec, ClassTokenTransformer, folded
from ...models.layers import LAYER_NORM_FLOOR, layer_norm
from ...tasks import Retrieval, quadratic_basins
from ..collisions.certificates import Certificate, certify
from ..collisions.domain import domain_of, free_starts
from ..collisions.observables import ClassOutputs
from ..collisions.pigeonhole import find_pigeonhole
from ..collisions.search import Collision, close_pairs

STEEPEST = (1 + 1e-6) / math.sqrt(LAYER_NORM_FLOOR)
"""The largest factor by which a layer norm with this floor enlarges a distance, with room for rounding."""
STARTS = 32


@functools.cache
def _task() -> Retrieval:
    return quadratic_basins(length=6, intrinsic_dim=3, dim=2)


def _random_model(*, seed: int = 0, norm: bool = True) -> ClassTokenTransformer:
    """A random model; of one seed the weights are the same with a norm and without."""
    return ClassTokenSpec(heads=1, head_dim=3, hidden=8, final_norm=norm).init(seed, length=6, dim=2, outputs=1)


def _certified(pair: np.ndarray, model: ClassTokenTransformer) -> Certificate:
    """A certificate of this pair, also for another model than it was found for."""
    collision = Collision(pair=pair, distance=0.0, gap=0.0, observables=ClassOutputs(model=model))
    return certify(collision, model, _task(), domain_of(_task()))


@functools.cache
def _exact_pair(*, norm: bool) -> Certificate | None:
    """An exact collision of the class token, before a norm or without one: the first of four pairs, the largest gap
    first.
    """
    task, domain, model = _task(), domain_of(_task()), _random_model(norm=norm)
    with jax.enable_x64(True):
        observables = ClassOutputs(model=in_double(model))
    pairs = close_pairs(observables, task, domain, free_starts(task, domain, STARTS, seed=0))
    near = [pair for pair in pairs if pair.distance < 1e-10][:4]
    certificates = (certify(pair, model, task, domain) for pair in near)
    return next((each for each in certificates if each.exact and not each.estimated), None)


def broken_norm_collisions() -> Finding:
    """The pair that only the norm merges, for a readout that also sees the class token before the norm; the pair that
    collides without the norm, for a model with a norm whose weights come from another seed. Passes where one does.
    """
    kept, merged = _exact_pair(norm=False), _exact_pair(norm=True)
    assert kept is not None
    assert merged is not None
    seeing, other = _certified(merged.pair, _random_model(norm=False)), _certified(kept.pair, _random_model(seed=1))
    return (
        f"a readout that also sees: exact {seeing.exact}, what it sees of the pair is {seeing.distance:.1e} apart; "
        f"other weights: exact {other.exact}, the pair is {other.distance:.1e} apart",
        promise_verdict(seeing.exact or other.exact),
    )


def norm_collisions() -> Finding:
    kept, merged = _exact_pair(norm=False), _exact_pair(norm=True)
    if kept is None or merged is None:
        return "no exact collision was proved", promise_verdict(False)
    after = _certified(kept.pair, _random_model())
    near = kept.pair.copy()
    near[1, 0] += np.where(near[1, 0] > 0.5, -1e-6, 1e-6)
    distances = [_certified(near, _random_model(norm=norm)).distance for norm in (False, True)]
    return (
        f"one head, T = 6, D = 3, head_dim 3: floor {kept.floor():.2g} for any readout without the norm, "
        f"{after.floor():.2g} with it, on the same pair; a pair that only the norm merges has the floor "
        f"{merged.floor():.2g}; a near pair is {distances[0]:.1e} apart before the norm and {distances[1]:.1e} after: "
        "exact collisions survive as they are, distances of near ones do not",
        promise_verdict(after.exact and after.floor() > 0.01 and merged.floor() > 0.01),
    )


def _steepest(norm: Callable[[jax.Array], jax.Array]) -> float:
    """The largest factor found by which a norm enlarges the distance of two near vectors."""
    generator = named_generator(0, "ledger", "layer norm")
    with jax.enable_x64(True):
        centred = generator.standard_normal((4000, 4)) * 10.0 ** generator.uniform(-8, 1, (4000, 1))
        vectors = centred - centred.mean(axis=1, keepdims=True) + generator.standard_normal((4000, 1))
        moved = vectors + 0.1 * centred[generator.permutation(4000)]
        one, other = (np.asarray(norm(jnp.asarray(each))) for each in (vectors, moved))
    return float(np.max(np.linalg.norm(one - other, axis=1) / np.linalg.norm(vectors - moved, axis=1)))


def _without_floor(vectors: jax.Array) -> jax.Array:
    centred = vectors - jnp.mean(vectors, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True))


def norm_without_floor() -> Finding:
    steepest = _steepest(_without_floor)
    return f"a distance grows {steepest:.1e} times", promise_verdict(steepest <= STEEPEST, estimated=True)


def norm_bound() -> Finding:
    task = quadratic_basins(length=32, intrinsic_dim=3, dim=2)
    spec = ClassTokenSpec(heads=1, head_dim=4, hidden=16, beta=300.0, final_norm=True)
    model = spec.init(0, length=32, dim=2, outputs=1)
    pairs = [find_pigeonhole(model, task, subsequences=count) for count in (100, 1000)]
    with jax.enable_x64(True):
        wide = in_double(model)
        outputs = [[np.asarray(folded.class_output(wide, jnp.asarray(x))) for x in each.pair] for each in pairs]
    before = [float(np.linalg.norm(one - other)) for one, other in outputs]
    after = [each.distance for each in pairs]
    steepest = max(_steepest(layer_norm), *(b / a for a, b in zip(before, after, strict=True)))
    parts = "; ".join(
        f"{each.subsequences} subsequences: {a:.1e} before, {b:.1e} after, M >= {each.size:.1e}"
        for each, a, b in zip(pairs, before, after, strict=True)
    )
    return (
        f"the largest factor among 4,000 pairs of vectors is {steepest:.1f} of {STEEPEST:.1f} allowed; one head, "
        f"D = 3, T = 32, the nearest two of {parts}",
        promise_verdict(
            steepest <= STEEPEST and after[0] > after[1] and all(each.gap > 0 for each in pairs), estimated=True
        ),
    )
