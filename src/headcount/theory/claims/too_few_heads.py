"""Checks of claims about too few heads (Yu et al., arXiv 2510.06662): Theorem 2(2), Lemma 4, Corollary 1.

And D without training: the number of tokens that a target depends on at once. The proof is in docs/support.md.
"""

import functools
import math
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np

from ...answer.claim import Finding, Verdict, promise_verdict
from ...keys import named_generator
from ...models import ClassTokenSpec, ClassTokenTransformer
from ...tasks import Retrieval, average, max_plus_min, quadratic_basins, sum_of_maxima
from ..bounds import steep_net_size, unique_dim
from ..collisions.basins import NoBasinError
from ..collisions.certificates import certify
from ..collisions.domain import domain_of
from ..collisions.pigeonhole import ROUNDING, find_pigeonhole
from ..collisions.search import find_collisions
from ..constructions.enough_heads import construct
from ..constructions.registers import Construction
from ..support import support_dim


def lemma_4(root: bool = True) -> Finding:
    """The bound, with or without its sqrt(n), over the units of nets: random ones, and some that attain it."""
    generator = named_generator(0, "ledger", "lemma 4")
    worst = 0.0
    for trial in range(200):
        inputs, hidden = int(generator.integers(1, 7)), int(generator.integers(1, 31))
        inwards, bias = generator.uniform(-1, 1, (hidden, inputs)), generator.uniform(-1, 1, hidden)
        outwards = np.sign(generator.uniform(-1, 1, hidden))
        one, other = generator.uniform(-1, 1, (2, inputs))
        if trial % 2:  # all weights 1, along the diagonal
            inwards, bias, outwards = np.ones((hidden, inputs)), np.zeros(hidden), np.ones(hidden)
            one, other = np.zeros(inputs), np.full(inputs, 0.5)
        moved = outwards @ np.maximum(inwards @ one + bias, 0) - outwards @ np.maximum(inwards @ other + bias, 0)
        distance = float(np.linalg.norm(one - other))
        needed = steep_net_size(abs(float(moved)), distance, inputs if root else 1)
        worst = max(worst, needed / hidden)
    return (
        f"100 random nets and 100 that attain it: the bound is at most {worst:.2f} of the units they have",
        promise_verdict(worst <= 1.0 + 1e-12),
    )


@functools.cache
def _constructed(length: int) -> Construction:
    return construct(max_plus_min(length=length), 0.2)


def pair_in_construction(heads: int) -> Finding:
    """The proof's pair in the construction of two heads for max + min, reduced to this many."""
    built = _constructed(32)
    model = built.model.with_heads(heads)
    try:
        pair = find_pigeonhole(model, max_plus_min(length=32), subsequences=1000, any_heads=True)
    except NoBasinError:
        return "a most responsive token in every basin, so no pair", Verdict.FAILS
    # Sharp heads merge the pair: its distance is below what float64 resolves, and no size follows from it.
    seen = "equal" if pair.distance == 0 else f"{pair.distance:.1e} apart"
    return (
        f"targets {pair.gap:.2g} apart, outputs {seen} in float64, where D heads err by {built.promised:.2g} at most",
        promise_verdict(pair.distance == 0 and pair.gap / 2 > built.promised, estimated=True),
    )


def too_few_heads() -> Finding:
    task = quadratic_basins(length=32, intrinsic_dim=3, dim=2)
    model = ClassTokenSpec(heads=1, head_dim=2, hidden=16, beta=300.0).init(0, length=32, dim=2, outputs=1)
    pairs = [find_pigeonhole(model, task, subsequences=count) for count in (100, 10_000)]
    kept = all(0 < pair.moment_distance <= pair.promised_moment_distance and pair.gap > 0 for pair in pairs)
    moments = ", ".join(f"{pair.moment_distance:.1e} of {pair.promised_moment_distance:.1e}" for pair in pairs)
    nearest, eps = pairs[-1], pairs[-1].gap / 3
    needed, enough = nearest.size, construct(task, eps).parameters
    reduced, verdict = pair_in_construction(1)
    return (
        "one random head, D = 3, T = 32: the nearest two of 100 and of 10,000 subsequences have moments apart by "
        f"(found of promised by the pigeonhole principle) {moments}; of the latter the outputs are "
        f"{nearest.distance:.1e} apart, the targets {nearest.gap:.2g}: within {eps:.1e} M >= {needed:.1e}, where "
        f"D heads have M = {enough:,}; one head of a construction of two, max + min, T = 32: {reduced}",
        # The mechanism is shown for two models; the rate itself is not.
        verdict if kept and needed > enough and nearest.distance > ROUNDING else Verdict.FAILS,
    )


def _certified_floor(model: ClassTokenTransformer) -> Finding:
    """Check whether every readout after these heads has a certified error on max + min above what D heads promise."""
    task, promised = max_plus_min(length=8), _constructed(8).promised
    # Sharp heads need many short steps.
    (pairs,) = find_collisions([model], task, domain_of(task), starts=32, steps=300)
    near = [pair for pair in pairs if pair.distance < 1e-6]
    largest = max((pair.gap / 2 for pair in near), default=0.0)
    if largest <= promised:
        return f"the largest half gap of {len(near)} near pairs is {largest:.1e}", Verdict.FAILS
    for pair in near[:10]:
        certificate = certify(pair, model, task, domain_of(task))
        if certificate.exact and not certificate.estimated:
            radius, floor = certificate.radius or math.inf, certificate.floor()
            return f"exact within {radius:.0e}, floor {floor:.2f}", promise_verdict(floor > promised)
    return "no exact pair among ten", Verdict.FAILS


def random_layer(heads: int) -> Finding:
    """The floor of random heads. They have the shapes of the construction's, so that one search serves both."""
    return _certified_floor(ClassTokenSpec(heads=heads, head_dim=1, hidden=2).init(1, length=8, dim=1, outputs=1))


def random_collisions() -> Finding:
    evidence, verdict = random_layer(1)
    return f"max + min, T = 8, one of D = 2 heads: {evidence}", verdict


def whole_construction() -> Finding:
    return _certified_floor(_constructed(8).model)


def collisions_of_a_construction() -> Finding:
    built = _constructed(8)
    evidence, verdict = _certified_floor(built.model.with_heads(1))
    return f"max + min, T = 8, both heads within {built.promised:.2f}; the second head removed: {evidence}", verdict


def uniqueness_of_dim(doubled: bool = False) -> Finding:
    """Check whether as many tokens matter as there are components, for two tasks as long as the corollary wants.

    `doubled`: one of them has a component written twice.
    """
    least = unique_dim(2, 3, 650)
    retrieval = functools.partial(Retrieval, length=650, dim=1, distribution="cube")
    components = [lambda x: 1 - x[0], lambda x: x[0], lambda x: x[0]]
    twice = retrieval(components, lambda z: 1 - z[0] + (z[1] + z[2]) / 2, name="max + min, one component doubled")
    basins = quadratic_basins(length=650, intrinsic_dim=3)
    supports = [support_dim(task, starts=64) for task in (max_plus_min(length=650), twice if doubled else basins)]
    words = ", ".join(f"{each.task}: {each.proved} of {each.components}" for each in supports)
    long_enough = least.value == 650 and all(each.long_enough for each in supports)
    return (
        f"T = 650 = 50 (2^2 + 3^2), gradients proved non-zero of components: {words}",
        promise_verdict(long_enough and all(each.exact for each in supports)),
    )


def _proved(tasks: Iterable[tuple[str, Retrieval]]) -> Finding:
    """Check whether on each task as many gradients are proved non-zero as it has components."""
    supports = [(name, support_dim(task, starts=64)) for name, task in tasks]
    words = ", ".join(f"{name}: {each.proved} of {each.components}" for name, each in supports)
    return f"gradients proved non-zero of components: {words}", promise_verdict(all(each.exact for _, each in supports))


def idle_component() -> Finding:
    """Two maxima and a component that the outer map leaves out, which clause 2.4 forbids."""
    maxima = sum_of_maxima(intrinsic_dim=3, length=12)
    idle = Retrieval(maxima.features, lambda z: jnp.sum(z[:2]), length=12, dim=4, name="idle")
    return _proved([("3 components, one left out", idle)])


def support_theorem() -> Finding:
    tasks = [(f"sum of {count} maxima", sum_of_maxima(intrinsic_dim=count, length=4 * count)) for count in (3, 7)]
    tasks += [("max + min", max_plus_min(length=8)), ("basins", quadratic_basins(length=12))]
    words, verdict = _proved(tasks)
    every = support_dim(average(length=8), starts=64)
    return f"{words}; of an average {every.value} of {every.length} tokens", verdict
