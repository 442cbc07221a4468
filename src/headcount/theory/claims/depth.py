"""Checks of claims about depth: Conjecture 1 of Yu et al. (arXiv 2510.06662), and constructions that contradict it."""

from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ...answer.claim import Finding, Verdict, promise_verdict
from ...keys import named_key
from ...models import ClassTokenTransformer
from ...tasks import Retrieval, quadratic_basins, sum_of_maxima
from ..bounds import Setting, depth_conjecture
from ..constructions.depth import construct_by_content, construct_roles, construct_two_layers, roles
from ..constructions.enough_heads import construct
from ..constructions.parts import RidgeSum, linear
from ..constructions.registers import Construction
from .enough_heads import keeps_promise, without_gates

EPS = 0.1
EPSES = (0.1, 0.03, 0.01, 0.003, 0.001)
SAME_EXPONENT = 0.05
SEQUENCES, RIGHT = 4000, 1e-5
"""Sequences drawn, and the NMSE up to which no maximum was missed on any of them."""
FAILED = 0.1
"""An error on one sequence from which a maximum was missed: others are of the order of 1 / beta = 0.003."""


Build = Callable[[Retrieval, RidgeSum], Construction]


def _unequal_weights(count: int) -> tuple[float, ...]:
    """1, 2, .., D over their mean: components that take each other's place are seen."""
    return tuple(2 * (i + 1) / (count + 1) for i in range(count))


def _basins(weights: tuple[float, ...], length: int) -> tuple[Retrieval, RidgeSum]:
    """Basins, summed with these weights, and their sum as a ridge."""
    basins = quadratic_basins(length=length, intrinsic_dim=len(weights), dim=2)
    factors = np.asarray(weights)
    task = Retrieval(basins.features, lambda z: jnp.dot(z, factors), length=length, dim=2, distribution="cube")
    return task, linear(weights)


def _broken(
    build: Build, change: Callable[[ClassTokenTransformer], ClassTokenTransformer], words: str, count: int, length: int
) -> Finding:
    """A changed construction, and one whose first and last component are swapped: neither keeps the promise."""
    weights = _unequal_weights(count)
    task, outer = _basins(weights, length)
    swapped = build(*_basins((weights[-1], *weights[1:-1], weights[0]), length))
    results = {
        words: keeps_promise(build(task, outer), task, EPS, change=change),
        "two swapped": keeps_promise(swapped, task, EPS),
    }
    parts = "; ".join(f"{name}: {text}" for name, (text, _) in results.items())
    return f"found of promised, {parts}", promise_verdict(any(kept for _, kept in results.values()))


def _silenced(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Its tokens ask nothing. The constant by which they do is a bias of the encoder where it writes no component."""
    bias = model.encoder_out.bias.copy()
    bias[np.all(model.encoder_out.weight == 0, axis=1)] = 0.0
    return eqx.tree_at(lambda one: one.encoder_out.bias, model, bias)


def _roles(heads: int, layers: int, eps: float = EPS) -> Build:
    return lambda task, outer: construct_roles(task, eps, heads=heads, layers=layers, outer=outer)


def _two_layers(task: Retrieval, outer: RidgeSum) -> Construction:
    return construct_two_layers(task, EPS, outer=outer)


def _all_kept(cases: Iterable[tuple[str, Build, tuple[float, ...], int]]) -> Finding:
    """The error found of the one promised in every case."""
    results = []
    for name, build, weights, length in cases:
        task, outer = _basins(weights, length)
        results.append((name, *keeps_promise(build(task, outer), task, EPS)))
    words = "; ".join(f"{name}: {text}" for name, text, _ in results)
    return words, promise_verdict(all(kept for *_, kept in results))


def depth_roles() -> Finding:
    words, verdict = _all_kept(
        [
            ("L = 2, h = 2, D = 6", _roles(2, 2), _unequal_weights(6), 8),
            ("L = 3, h = 1, D = 5", _roles(1, 3), _unequal_weights(5)[::-1], 8),
        ]
    )
    return f"weighted sums of basins, T = 8, found of promised: {words}", verdict


def silent_tokens(heads: int, layers: int) -> Finding:
    return _broken(_roles(heads, layers), _silenced, "silent", roles(heads, layers), 8)


def two_layers() -> Finding:
    words, verdict = _all_kept(
        [
            ("D = 3, T = 8", _two_layers, _unequal_weights(3), 8),
            ("D = 6, T = 16", _two_layers, _unequal_weights(6)[::-1], 16),
        ]
    )
    return f"weighted sums of basins, L = 2, h = 1, found of promised: {words}", verdict


def two_layers_without_labels() -> Finding:
    return _broken(_two_layers, without_gates, "no labels", 6, 16)


def content_roles(without_roles: bool = False) -> Finding:
    parts, holds = [], True
    for length, sequences in ((32, SEQUENCES),) if without_roles else ((32, SEQUENCES), (16, 5 * SEQUENCES)):
        task = sum_of_maxima(length=length, intrinsic_dim=8, dim=6)
        model = construct_by_content(task)
        if without_roles:
            model = eqx.tree_at(lambda one: one.encoder_in.weight, model, replace_fn=lambda w: w * (np.abs(w) <= 1))
        error, failed = _sampled(model, task, sequences)
        # At 16 tokens some sequences fail, and nothing is claimed.
        holds &= length < 32 or (error <= RIGHT and failed == 0)
        parts.append(f"T = {length}: {failed} of {sequences:,} sequences fail, NMSE {error:.1e}")
    return (
        f"sum of 8 maxima of normal tokens, d = 6, L = 2, h = 2, the first draw of directions, {'; '.join(parts)}",
        promise_verdict(holds, estimated=True),
    )


def _sampled(model: ClassTokenTransformer, task: Retrieval, sequences: int) -> tuple[float, int]:
    """The NMSE on random sequences, and on how many of them a maximum was missed."""
    tokens = jr.normal(named_key(0, "ledger", "sequences by content"), (sequences, task.length, task.dim))
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), model)
    answers, targets = jax.jit(lambda x: (jax.vmap(single)(x), jax.vmap(task.target)(x)))(tokens)
    off = jnp.abs(answers - targets)
    return float(jnp.mean(off**2) / jnp.var(targets)), int(jnp.sum(off > FAILED))


def depth_against_conjecture() -> Finding:
    """Two layers of one head on three minima, their error and size over T, and their size over eps."""
    bound = depth_conjecture(Setting(heads=1, intrinsic_dim=3, length=8, layers=2))
    by_length, sizes, holds = [], set(), True
    for length in (8, 64, 512):
        task, outer = _basins(_unequal_weights(3), length)
        built = _roles(1, 2)(task, outer)
        text, kept = keeps_promise(built, task, EPS)
        holds &= kept
        by_length.append(f"{text} at T = {length}")
        sizes.add(built.parameters)
    task, outer = _basins(_unequal_weights(3), 8)
    deep = [_roles(1, 2, eps)(task, outer) for eps in EPSES]
    wide = [construct(task, eps, outer=outer) for eps in EPSES]
    holds &= len(sizes) == 1 and all(
        built.proved and built.promised <= eps for built, eps in zip(deep, EPSES, strict=True)
    )
    exponents = [np.polyfit(np.log(EPSES), np.log([each.parameters for each in built]), 1)[0] for built in (deep, wide)]
    holds &= bool(abs(exponents[0] - exponents[1]) < SAME_EXPONENT)
    deep_sizes, wide_sizes = (", ".join(str(each.parameters) for each in built) for built in (deep, wide))
    return (
        f"D = 3, a weighted sum of basins, would need {bound.value:.0f} heads in each of two layers; in residual "
        "layers whose tokens are updated by the same heads as the class token one does, found of promised "
        f"{', '.join(by_length)}, with M = {' or '.join(map(str, sorted(sizes)))} at every T; at eps = "
        f"{', '.join(f'{eps:g}' for eps in EPSES)} M is {deep_sizes}, as eps^{exponents[0]:.2f}; one layer of D heads "
        f"has {wide_sizes}, eps^{exponents[1]:.2f}",
        Verdict.CONTRADICTED if holds else Verdict.FAILS,
    )
