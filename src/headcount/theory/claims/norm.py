"""Theorem 2(2) of the first paper with a layer norm before the readout, which its authors suspect to survive."""

import dataclasses
import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ..._precision import in_double
from ...answer.claim import Claim, Finding, Verdict, as_claim, promise_verdict
from ...keys import named_generator
from ...models import ClassTokenSpec, ClassTokenTransformer, folded
from ...models.layers import LAYER_NORM_FLOOR, layer_norm
from ...tasks import Retrieval, quadratic_basins
from ..collisions.certificates import Certificate, certify
from ..collisions.domain import Domain, domain_of, free_starts
from ..collisions.observables import ClassOutputs
from ..collisions.pigeonhole import find_pigeonhole
from ..collisions.search import Collision, close_pairs

STEEPEST = 1 / math.sqrt(LAYER_NORM_FLOOR)
"""The largest factor by which a layer norm with this floor enlarges a distance."""
ROUNDING = 1e-6
"""Of a factor that is computed from distances in float64, relative to it."""
STARTS = 32


def _without_norm(model: ClassTokenTransformer) -> ClassTokenTransformer:
    return dataclasses.replace(model, spec=dataclasses.replace(model.spec, final_norm=False))


@dataclass(frozen=True)
class _Pairs:
    """One model with a norm, and collisions of its class token without the norm and with it."""

    task: Retrieval
    domain: Domain
    model: ClassTokenTransformer
    before: list[Collision]
    after: list[Collision]

    def best(self, collisions: list[Collision], model: ClassTokenTransformer) -> Certificate | None:
        """The first exact certificate, the largest gap first; None where none of four pairs has one."""
        for collision in [each for each in collisions if each.distance < 1e-10][:4]:
            certificate = self.certify(collision, model)
            if certificate.exact and not certificate.estimated:
                return certificate
        return None

    def at(self, certificate: Certificate) -> Collision:
        """The certificate's pair, as a search would have found it."""
        observables = self.before[0].observables
        return Collision(pair=certificate.pair, distance=0.0, gap=certificate.gap, observables=observables)

    def certify(self, collision: Collision, model: ClassTokenTransformer) -> Certificate:
        return certify(collision, model, self.task, self.domain)


def _drawn(seed: int, task: Retrieval) -> ClassTokenTransformer:
    spec = ClassTokenSpec(heads=1, head_dim=3, hidden=8, final_norm=True)
    return spec.init(seed, length=task.length, dim=task.dim, outputs=1)


@functools.cache
def _pairs() -> _Pairs:
    task = quadratic_basins(length=6, intrinsic_dim=3, dim=2)
    model = _drawn(0, task)
    domain = domain_of(task)
    starts = free_starts(task, domain, STARTS, seed=0)
    with jax.enable_x64(True):
        observables = [ClassOutputs(model=in_double(each)) for each in (_without_norm(model), model)]
    return _Pairs(task, domain, model, *(close_pairs(each, task, domain, starts) for each in observables))


def _broken() -> Finding:
    """Both halves of the claim on something broken; passes where one of them does."""
    checks = {"a readout that also sees": _merged_beside_the_class_token(), "other weights": _kept_by_other_weights()}
    passed = [verdict for _, verdict in checks.values() if verdict.passed]
    return "; ".join(f"{name}: {seen}" for name, (seen, _) in checks.items()), passed[0] if passed else Verdict.FAILS


def _kept_by_other_weights() -> Finding:
    """The pair that collides without the norm, for a model with a norm whose weights come from another seed."""
    pairs = _pairs()
    kept = pairs.best(pairs.before, _without_norm(pairs.model))
    collision = pairs.before[0] if kept is None else pairs.at(kept)
    certificate = pairs.certify(collision, _drawn(1, pairs.task))
    return (
        f"exact {certificate.exact}, the pair is {certificate.distance:.1e} apart",
        promise_verdict(certificate.exact),
    )


def _merged_beside_the_class_token() -> Finding:
    """The pair that only the norm merges, for a readout that also sees the class token before the norm."""
    pairs = _pairs()
    merged = pairs.best(pairs.after, pairs.model)
    collision = pairs.after[0] if merged is None else pairs.at(merged)
    certificate = pairs.certify(collision, _without_norm(pairs.model))
    return (
        f"exact {certificate.exact}, what it sees of the pair is {certificate.distance:.1e} apart",
        promise_verdict(certificate.exact),
    )


@as_claim(
    "a collision of the class token survives a layer norm before the readout; the norm adds others, and removes none",
    source="Theorem 2(2) with a norm, exact",
    program="theory.find_collisions, theory.certify",
    control=Claim(
        statement="the added pair for a readout that also sees the class token before the norm, the surviving pair for "
        "a model of another seed",
        check=_broken,
    ),
)
def norm_collisions() -> Finding:
    pairs = _pairs()
    kept = pairs.best(pairs.before, _without_norm(pairs.model))
    merged = pairs.best(pairs.after, pairs.model)
    if kept is None or merged is None:
        return "no exact collision was proved", promise_verdict(False)
    after = pairs.certify(pairs.at(kept), pairs.model)
    moved = kept.pair.copy()
    moved[1, 0] += np.where(moved[1, 0] > 0.5, -1e-6, 1e-6)
    near = pairs.at(dataclasses.replace(kept, pair=moved))
    distances = [pairs.certify(near, each).distance for each in (_without_norm(pairs.model), pairs.model)]
    return (
        f"one head, T = 6, D = 3, head_dim 3: floor {kept.floor():.2g} for any readout without the norm, "
        f"{after.floor():.2g} with it, on the same pair; a pair that only the norm merges has the floor "
        f"{merged.floor():.2g}; a near pair is {distances[0]:.1e} apart before the norm and {distances[1]:.1e} after: "
        "exact collisions survive as they are, distances of near ones do not",
        promise_verdict(after.exact and after.floor() > 0.01 and merged.floor() > 0.01),
    )


def _steepest(floor: float) -> float:
    """The largest factor found by which a layer norm with this floor enlarges the distance of two near vectors."""
    generator = named_generator(0, "ledger", "layer norm")
    with jax.enable_x64(True):
        centred = generator.standard_normal((4000, 4)) * 10.0 ** generator.uniform(-8, 1, (4000, 1))
        vectors = centred - centred.mean(axis=1, keepdims=True) + generator.standard_normal((4000, 1))
        moved = vectors + 0.1 * centred[generator.permutation(4000)]
        one, other = (np.asarray(_normed(jnp.asarray(each), floor)) for each in (vectors, moved))
    return float(np.max(np.linalg.norm(one - other, axis=1) / np.linalg.norm(vectors - moved, axis=1)))


def _normed(vectors: jax.Array, floor: float) -> jax.Array:
    if floor == LAYER_NORM_FLOOR:
        return layer_norm(vectors)
    centred = vectors - jnp.mean(vectors, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + floor)


def _is_bounded(factor: float) -> bool:
    return factor <= STEEPEST * (1 + ROUNDING)


def _without_floor() -> Finding:
    steepest = _steepest(0.0)
    return f"a distance grows {steepest:.1e} times", promise_verdict(_is_bounded(steepest), estimated=True)


@as_claim(
    "a layer norm enlarges no distance more than 1 / sqrt(floor) times, near pairs of Theorem 2(2) included",
    source="Theorem 2(2) with a norm",
    program="theory.find_pigeonhole",
    repair="the paper has no norm. With u = c - mean(c) the slope of u / sqrt(|u|^2 / E + floor) is largest at u = 0, "
    "where it is 1 / sqrt(floor): the bound on M is divided by at most this constant, so M = Omega(1 / eps^k) keeps "
    "its exponent, which no check here runs",
    control=Claim(statement="a norm without its floor", check=_without_floor),
)
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
    steepest = max(_steepest(LAYER_NORM_FLOOR), *(b / a for a, b in zip(before, after, strict=True)))
    parts = "; ".join(
        f"{each.subsequences} subsequences: {a:.1e} before, {b:.1e} after, M >= {each.size:.1e}"
        for each, a, b in zip(pairs, before, after, strict=True)
    )
    return (
        f"the largest factor among 4,000 pairs of vectors is {steepest:.1f} of {STEEPEST:.1f} allowed; one head, "
        f"D = 3, T = 32, the nearest two of {parts}",
        promise_verdict(
            _is_bounded(steepest) and after[0] > after[1] and all(each.gap > 0 for each in pairs), estimated=True
        ),
    )
