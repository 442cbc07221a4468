"""Checks of claims about enough heads (Yu et al., arXiv 2510.06662): Theorems 1, 2(1), 2(3), Lemmas 8, 9.

One is ours: Theorem 2(1) where all heads share one set of keys and values.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...answer.claim import Finding, promise_verdict
from ...keys import named_generator
from ...models import ClassTokenTransformer
from ...tasks import Retrieval, max_plus_min, quadratic_basins
from ..bounds import head_error, max_net_widths
from ..constructions.adversary import largest_error
from ..constructions.density import promised_error, retrieval_of
from ..constructions.enough_heads import construct, construct_shared
from ..constructions.registers import GATE, Construction
from ..constructions.relu_nets import AffineMap, ReluNet, compose, max_net
from ..constructions.wide_head import WideConstruction, WideHead, construct_wide, wide_size

HALVES = [(0.0, 0.5), (0.5, 1.0)]
OVERLAPPING = [(0.0, 0.5), (0.25, 0.75), (0.5, 1.0)]
"""Windows, so that gates matter: where every S_i is the whole sequence, a construction without gates works too."""
CONTROL_EPS = SHARED_EPS = 0.03


def sequence_recovery(selector_q: float | None = None) -> Finding:
    """Check whether inputs are recovered within the promise of q by a selector of that q, or of another for all."""
    length, powers, errors = 8, (1e2, 1e3, 1e4), []
    generator = named_generator(0, "ledger", "density")
    drawn, apart = generator.uniform(0, 1, (256, length, 1)), 10 ** generator.uniform(-0.5, 1, (256, 1, 1))
    for q in powers:
        # The selector is worst where values are of the order of q^-1/2 apart.
        near = np.minimum(apart / math.sqrt(q), 1)
        sequences = 0.5 + np.where(np.arange(256)[:, None, None] % 2, near, 1) * (drawn - 0.5)
        task = retrieval_of(jnp.ravel, length=length, dim=1, q=selector_q or q)
        with jax.enable_x64(True):
            recovered = np.asarray(jax.jit(jax.vmap(task.target))(jnp.asarray(sequences)))
        errors.append(float(np.abs(recovered - sequences[..., 0]).max()))
    promised = [promised_error(q) for q in powers]
    slope = float(np.polyfit(np.log(powers), np.log(errors), 1)[0])
    pairs = ", ".join(
        f"q = {q:g}: {error:.1e} of {bound:.1e}" for q, error, bound in zip(powers, errors, promised, strict=True)
    )
    return (
        f"T = 8, inputs recovered within (found of promised) {pairs}; found falls as q^{slope:.2f}",
        promise_verdict(
            all(error <= bound + 1e-12 for error, bound in zip(errors, promised, strict=True))
            and abs(slope + 0.5) < 0.1
        ),
    )


def softmax_gate(depth: float = GATE) -> Finding:
    """The largest error of a softmax head with a gate of this depth, against the bound of depth 2.

    Inside S_i one token is ahead of the others by a; outside all values are 0.
    """
    worst, where = 0.0, ""
    for beta, size in itertools.product((1.0, 10.0, 50.0), (1, 2, 8, 64)):
        length, bound = 2 * size, head_error(beta, size, 2 * size, GATE)
        for lowest, ahead in itertools.product((0.0, 0.5, 1.0), np.linspace(0, 8, 161) / beta):
            inside = np.minimum(lowest + ahead * (np.arange(size) > 0), 1.0)
            values, scores = np.append(inside, np.zeros(size)), np.append(-inside, np.full(size, -depth))
            weights = np.exp(beta * (scores - scores.max()))
            ratio = abs(float(weights @ values / weights.sum()) - lowest) / bound
            if ratio > worst:
                worst, where = ratio, f"beta = {beta:g}, {size} of {length} places, lowest value {lowest:g}"
    return f"largest error of the bound {worst:.3g} ({where})", promise_verdict(worst <= 1 + 1e-9)


def _windowed() -> dict[str, Retrieval]:
    return {
        "max + min of halves": max_plus_min(length=8, windows=HALVES),
        "basins D = 3, d = 2": quadratic_basins(length=8, windows=OVERLAPPING),
    }


def without_gates(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """The construction with every gate and label at 0: all heads read all places."""
    return eqx.tree_at(lambda one: one.position_table, model, np.zeros_like(model.position_table))


def broken_constructions() -> Finding:
    """Each construction with its gates zeroed, and max + min with shuffled outputs (basins are a symmetric sum)."""

    def with_shuffled_outputs(model: ClassTokenTransformer) -> ClassTokenTransformer:
        output = np.roll(np.asarray(model.attention[0].output), 1, axis=1)
        return eqx.tree_at(lambda one: one.attention[0].output, model, output)

    tasks = _windowed()
    broken = [(f"{name}, gates zeroed", task, without_gates) for name, task in tasks.items()]
    name, task = next(iter(tasks.items()))
    broken.append((f"{name}, output weights shuffled", task, with_shuffled_outputs))
    results = [(label, *_construction(task, CONTROL_EPS, change=change)) for label, task, change in broken]
    parts = "; ".join(f"{label}, {text}" for label, text, *_ in results)
    return parts, promise_verdict(any(kept for _, _, kept, _ in results))


def enough_heads() -> Finding:
    results = [(name, *_construction(task, eps)) for name, task in _windowed().items() for eps in (0.1, 0.03, 0.01)]
    parts = "; ".join(f"{name}, {text}" for name, text, *_ in results)
    slope = math.log10(results[5][3] / results[3][3])
    return (
        f"T = 8, position sets of 4 places, found of promised: {parts}; basins grow as eps^-{slope:.2f} (gamma = 0.5)",
        promise_verdict(all(kept for _, _, kept, _ in results) and abs(slope - 0.5) < 0.1),
    )


@functools.cache
def _fitted_task() -> Retrieval:
    def wave(x):
        return (jnp.sin(3 * x[0]) + 1) / 2 * x[1]

    return Retrieval(
        [lambda x: x[0] * x[1], wave],
        lambda z: z[0] * z[1],
        length=8,
        dim=2,
        distribution="cube",
        windows=HALVES,
        name="yours",
    )


def fitted_without_gates() -> Finding:
    text, kept, _ = _construction(_fitted_task(), 0.1, proved=False, change=without_gates)
    return text, promise_verdict(kept, estimated=True)


def fitted_heads() -> Finding:
    results = [_construction(_fitted_task(), eps, proved=False) for eps in (0.1, 0.03)]
    return (
        "x1 x2 over the first half and a wave times x2 over the second, outer map a product, found of promised: "
        + "; ".join(text for text, *_ in results),
        promise_verdict(all(kept for _, kept, _ in results), estimated=True),
    )


def keeps_promise(
    built: Construction | WideConstruction,
    task: Retrieval,
    eps: float,
    *,
    change: Callable[[Any], Any] = lambda model: model,
    proved: bool = True,
    starts: int = 16,
    steps: int = 60,
) -> tuple[str, bool]:
    """The largest error found of the one promised, and whether a construction, changed or not, keeps its promise."""
    error, _ = largest_error(change(built.model), task, starts=starts, steps=steps)
    return f"{error:.1e} of {built.promised:.1e}", built.proved == proved and error <= built.promised <= eps


def _construction(task: Retrieval, eps: float, *, proved: bool = True, **broken: Any) -> tuple[str, bool, int]:
    """A construction in words, whether no adversary breaks its promise, and its size M."""
    built = construct(task, eps)
    text, kept = keeps_promise(built, task, eps, proved=proved, starts=32, steps=100, **broken)
    return f"eps {eps:g}: {text}, M = {built.parameters}", kept, built.parameters


def lemma_8(order: tuple[int, int, int] = (0, 1, 2)) -> Finding:
    """A net composed of three in this order, against the three applied one after the other."""
    generator = named_generator(0, "ledger", "lemma 8")

    def random_net(*sizes: int) -> ReluNet:
        normal = generator.standard_normal
        pairs = itertools.pairwise(sizes)
        return ReluNet(tuple(AffineMap(normal((after, before)), normal(after)) for before, after in pairs))

    first, middle, last = nets = random_net(1, 5, 1), random_net(1, 4, 3, 1), random_net(1, 6, 1)
    whole = compose(*(nets[place] for place in order))
    points = np.linspace(-2, 2, 101)
    gap = max(abs(float(whole(np.array([x]))[0] - last(middle(first(np.array([x]))))[0])) for x in points)
    return (
        f"{len(whole.layers)} layers; they differ by {gap:.1e} at 101 points",
        promise_verdict(len(whole.layers) == 5 and gap < 1e-12),
    )


def lemma_9(steps: int = 10) -> Finding:
    """The net of `steps` levels against eps = 0.1, on random numbers and on ties at every height, where it is worst."""
    eps, count = 0.1, 20
    net = max_net(count, 1 / steps)
    numbers = named_generator(0, "ledger", "lemma 9").uniform(0, 1, (200, count))
    ties = np.repeat(np.linspace(0, 1, 1801)[:, None], count, axis=1)
    worst = max(abs(float(net(row)[0]) - float(row.max())) for row in (*numbers, *ties))
    widths = max_net_widths(count, eps)
    return (
        f"T = {count}, eps = {eps}: worst of 200 random sequences and 1,801 of equal numbers is {worst:.4f}, widths "
        f"{net.widths}",
        promise_verdict(worst <= eps and net.widths[0] <= widths[0] and net.widths[1] <= widths[1]),
    )


def _wide(eps: float, shift: int = 0) -> tuple[str, bool]:
    """One wide head in words, its position codes passed on by `shift` places, and whether its promise is kept."""
    task = max_plus_min(length=8, windows=HALVES)
    built = construct_wide(task, eps)

    def shifted(model: WideHead) -> WideHead:
        moved = np.roll(np.asarray(model.head.position_table), shift, axis=0)
        return eqx.tree_at(lambda one: one.head.position_table, model, moved)

    text, kept = keeps_promise(built, task, eps, change=shifted)
    return f"eps {eps:g}: {text}, M = {built.parameters:,} (D heads: {construct(task, eps).parameters})", kept


def wide_with_shifted_codes() -> Finding:
    text, kept = _wide(0.1, shift=2)
    return text, promise_verdict(kept)


def wide_head() -> Finding:
    results = [_wide(eps) for eps in (0.1, 0.03)]
    basins = quadratic_basins(length=8)
    sizes = [wide_size(basins, eps, zeros=zeros) for zeros in (True, False) for eps in (1e-2, 1e-3)]
    dense, sparse = math.log10(sizes[1] / sizes[0]), math.log10(sizes[3] / sizes[2])
    return (
        f"max + min of halves, T = 8, found of promised: {'; '.join(text for text, _ in results)}; basins "
        f"(gamma = 0.5) grow as eps^-{sparse:.2f} without zeros, eps^-{dense:.2f} with them",
        promise_verdict(all(kept for _, kept in results) and abs(sparse - 1.5) < 0.1),
    )


def _largest_shared(
    tasks: dict[str, Retrieval], change: Callable[[ClassTokenTransformer], ClassTokenTransformer] = lambda model: model
) -> Finding:
    """The largest errors found of constructions that share keys, changed or not, and what these promise."""
    results = [
        (name, *keeps_promise(construct_shared(task, SHARED_EPS), task, SHARED_EPS, change=change))
        for name, task in tasks.items()
    ]
    words = "; ".join(f"{name}: {text}" for name, text, _ in results)
    return f"found of promised: {words}", promise_verdict(all(kept for *_, kept in results))


def _turned(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Every head asks for the component of the next one."""
    return eqx.tree_at(lambda m: m.attention[0].query, model, replace_fn=lambda query: np.roll(query, 1, axis=0))


def _narrowed(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Keys of D - 1 numbers: the last one is cut off."""
    last = len(model.attention[0].query) - 1
    keep = (np.arange(model.attention[0].key.shape[1]) < last)[:, None]
    return eqx.tree_at(lambda m: m.attention[0].key, model, replace_fn=lambda key: key * keep)


def broken_shared_keys() -> Finding:
    # Not max + min, whose value does not change where its two components are exchanged.
    basins = {"basins": quadratic_basins(length=8)}
    changes = {"queries turned": _turned, "keys of D - 1 numbers": _narrowed}
    results = {name: _largest_shared(basins, change) for name, change in changes.items()}
    words = "; ".join(f"{name}, {seen}" for name, (seen, _) in results.items())
    return words, promise_verdict(any(verdict.passed for _, verdict in results.values()))


def shared_keys() -> Finding:
    tasks = {"max + min, head_dim 2": max_plus_min(length=8), "basins D = 3, head_dim 3": quadratic_basins(length=8)}
    words, verdict = _largest_shared(tasks)
    return f"T = 8, eps = {SHARED_EPS:g}, {words}", verdict
