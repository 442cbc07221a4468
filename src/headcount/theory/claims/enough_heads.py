"""Claims of the first paper about enough heads (Yu et al., arXiv 2510.06662): Theorems 1, 2(1), 2(3), Lemmas 8, 9."""

import functools
import itertools
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...answer.claim import Claim, Finding, as_claim, promise_verdict
from ...keys import named_generator
from ...models import ClassTokenTransformer
from ...tasks import Retrieval, max_plus_min, quadratic_basins
from ..bounds import head_error, max_net_widths
from ..constructions.adversary import largest_error
from ..constructions.density import promised_error, retrieval_of
from ..constructions.enough_heads import construct
from ..constructions.registers import GATE
from ..constructions.relu_nets import AffineMap, ReluNet, compose, max_net
from ..constructions.wide_head import construct_wide, wide_size

HALVES = [(0.0, 0.5), (0.5, 1.0)]
OVERLAPPING = [(0.0, 0.5), (0.25, 0.75), (0.5, 1.0)]
"""Windows, so that gates matter: where every S_i is the whole sequence, a construction without gates works too."""
CONTROL_EPS = 0.03


def _density(selector_of: Callable[[float], float]) -> Finding:
    """Whether inputs are recovered within the promise of q by a selector whose own q is `selector_of(q)`."""
    length, powers, errors = 8, (1e2, 1e3, 1e4), []
    generator = named_generator(0, "ledger", "density")
    drawn, apart = generator.uniform(0, 1, (256, length, 1)), 10 ** generator.uniform(-0.5, 1, (256, 1, 1))
    for q in powers:
        # The selector is worst where values are of the order of q^-1/2 apart.
        near = np.minimum(apart / math.sqrt(q), 1)
        sequences = 0.5 + np.where(np.arange(256)[:, None, None] % 2, near, 1) * (drawn - 0.5)
        task = retrieval_of(jnp.ravel, length=length, dim=1, q=selector_of(q))
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


@as_claim(
    "every continuous function of a sequence is within any error of a retrieval task",
    source="Theorem 1",
    program="theory.retrieval_of",
    repair="the selector's rate is ours: 0.278 q^(-1/2), attained; its last step, a polynomial in place of the "
    "function, is omitted",
    control=Claim(statement="a selector with weight 1/2 on both sides", check=lambda: _density(lambda _q: 1e-12)),
)
def density() -> Finding:
    return _density(lambda q: q)


def _gate(depth: float) -> Finding:
    """The largest error of a softmax head with a gate of this depth, against the bound of depth 2.

    Inside S_i one token is ahead of the others by a; outside all values are 0.
    """
    worst, where = 0.0, ""
    for beta, size in itertools.product((1.0, 10.0, 50.0), (1, 2, 8, 64)):
        length, bound = 2 * size, head_error(beta, size, 2 * size, GATE).value or 0.0
        for lowest, ahead in itertools.product((0.0, 0.5, 1.0), np.linspace(0, 8, 161) / beta):
            inside = np.minimum(lowest + ahead * (np.arange(size) > 0), 1.0)
            values, scores = np.append(inside, np.zeros(size)), np.append(-inside, np.full(size, -depth))
            weights = np.exp(beta * (scores - scores.max()))
            ratio = abs(float(weights @ values / weights.sum()) - lowest) / bound
            if ratio > worst:
                worst, where = ratio, f"beta = {beta:g}, {size} of {length} places, lowest value {lowest:g}"
    return f"largest error of the bound {worst:.3g} ({where})", promise_verdict(worst <= 1 + 1e-9)


@as_claim(
    "a softmax head reads the minimum over S_i within (|S_i| - 1) / (e beta) + T exp(-beta (G - 1))",
    source="Theorem 2(1), head error",
    program="theory.bounds.head_error",
    repair="the published gate of depth 1 ties a token inside with Psi = 1 and one outside with Psi = 0; a depth "
    "G > 1 is needed, and the component nets overshoot [0, 1] by delta, so G - 2 delta of it is left",
    control=Claim(statement="the published gate of depth 1", check=lambda: _gate(1.0)),
)
def gate() -> Finding:
    return _gate(GATE)


def _windowed() -> dict[str, Retrieval]:
    return {
        "max + min of halves": max_plus_min(length=8, windows=HALVES),
        "basins D = 3, d = 2": quadratic_basins(length=8, windows=OVERLAPPING),
    }


def without_gates(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """The construction with every gate at 0: all heads read all places."""
    return eqx.tree_at(lambda one: one.position_table, model, np.zeros_like(model.position_table))


def with_shuffled_outputs(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """The construction with the output weights of its heads passed on by one."""
    output = np.roll(np.asarray(model.attention[0].output), 1, axis=1)
    return eqx.tree_at(lambda one: one.attention[0].output, model, output)


def _broken_constructions() -> Finding:
    """Each construction with its gates zeroed, and max + min with shuffled outputs (basins are a symmetric sum)."""
    tasks = _windowed()
    broken = [(f"{name}, gates zeroed", task, without_gates) for name, task in tasks.items()]
    name, task = next(iter(tasks.items()))
    broken.append((f"{name}, output weights shuffled", task, with_shuffled_outputs))
    results = [(label, *_construction(task, CONTROL_EPS, broken=change)) for label, task, change in broken]
    parts = "; ".join(f"{label}, {text}" for label, text, *_ in results)
    return parts, promise_verdict(any(kept for _, _, kept, _ in results))


@as_claim(
    "h = D heads with head_dim n = 2 have error at most eps with M = C / eps^gamma",
    source="Theorem 2(1)",
    program="theory.construct, theory.largest_error",
    repair="heads read values in [-delta, 1 + delta] while F0 is given on [0, 1]^D: a fitted outer map is preceded "
    "by a rescaling, which costs another L0 delta",
    control=Claim(statement="gates zeroed, or output weights shuffled", check=_broken_constructions),
)
def enough_heads() -> Finding:
    parts, holds, sizes = [], True, []
    for name, task in _windowed().items():
        for eps in (0.1, 0.03, 0.01):
            text, kept, size = _construction(task, eps)
            holds &= kept
            parts.append(f"{name}, {text}")
            sizes.append(size)
    slope = math.log(sizes[5] / sizes[3]) / math.log(10)
    return (
        f"T = 8, position sets of 4 places, found of promised: {'; '.join(parts)}; basins grow as eps^-{slope:.2f} "
        "(gamma = 0.5)",
        promise_verdict(holds and abs(slope - 0.5) < 0.1),
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


def _fitted_without_gates() -> Finding:
    text, kept, _ = _construction(_fitted_task(), 0.1, proved=False, broken=without_gates)
    return text, promise_verdict(kept, estimated=True)


@as_claim(
    "the same for components of any form, by fitted nets",
    source="Theorem 2(1)",
    program="theory.construct",
    control=Claim(statement="gates zeroed", check=_fitted_without_gates),
)
def fitted_heads() -> Finding:
    results = [_construction(_fitted_task(), eps, proved=False) for eps in (0.1, 0.03)]
    return (
        "x1 x2 over the first half and a wave times x2 over the second, outer map a product, found of promised: "
        + "; ".join(text for text, *_ in results),
        promise_verdict(all(kept for _, kept, _ in results), estimated=True),
    )


def _construction(
    task: Retrieval,
    eps: float,
    *,
    proved: bool = True,
    broken: Callable[[ClassTokenTransformer], ClassTokenTransformer] | None = None,
) -> tuple[str, bool, int]:
    """A construction in words, whether no adversary breaks its promise, and its size M."""
    built = construct(task, eps)
    model = built.model if broken is None else broken(built.model)
    error, _ = largest_error(model, task, starts=32, steps=100)
    text = f"eps {eps:g}: {error:.1e} of {built.promised:.1e}, M = {built.parameters}"
    return text, built.proved == proved and error <= built.promised <= eps, built.parameters


def _random_net(generator: np.random.Generator, sizes: tuple[int, ...]) -> ReluNet:
    return ReluNet(
        tuple(
            AffineMap(generator.standard_normal((after, before)), generator.standard_normal(after))
            for before, after in itertools.pairwise(sizes)
        )
    )


def _composed(order: tuple[int, int, int]) -> Finding:
    """A net composed of three in this order, against the three applied one after the other."""
    generator = named_generator(0, "ledger", "lemma 8")
    first, middle, last = nets = tuple(_random_net(generator, sizes) for sizes in ((1, 5, 1), (1, 4, 3, 1), (1, 6, 1)))
    whole = compose(*(nets[place] for place in order))
    points = np.linspace(-2, 2, 101)
    gap = max(abs(float(whole(np.array([x]))[0] - last(middle(first(np.array([x]))))[0])) for x in points)
    return (
        f"{len(whole.layers)} layers; they differ by {gap:.1e} at 101 points",
        promise_verdict(len(whole.layers) == 5 and gap < 1e-12),
    )


@as_claim(
    "nets of 2, 3 and 2 layers compose into one of 5",
    source="Lemma 8",
    program="theory.compose",
    control=Claim(statement="the nets in reverse order", check=lambda: _composed((2, 1, 0))),
)
def lemma_8() -> Finding:
    return _composed((0, 1, 2))


def _max_net(steps: int) -> Finding:
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


@as_claim(
    "three ReLU layers of width at most 2 T ceil(1 / eps) give the maximum of T numbers within eps",
    source="Lemma 9",
    program="theory.max_net",
    control=Claim(statement="9 steps in place of ceil(1 / eps) = 10", check=lambda: _max_net(9)),
)
def lemma_9() -> Finding:
    return _max_net(10)


def _wide(eps: float, shift: int = 0) -> tuple[str, bool]:
    """One wide head in words, its position codes passed on by `shift` places, and whether its promise is kept."""
    task = max_plus_min(length=8, windows=HALVES)
    built = construct_wide(task, eps)
    model = built.model
    if shift:
        moved = np.roll(np.asarray(model.head.position_table), shift, axis=0)
        model = eqx.tree_at(lambda one: one.head.position_table, model, moved)
    error, _ = largest_error(model, task, starts=16, steps=60)
    narrow = construct(task, eps).parameters
    text = f"eps {eps:g}: {error:.1e} of {built.promised:.1e}, M = {built.parameters:,} (D heads: {narrow})"
    return text, built.proved and error <= built.promised <= eps


def _wide_with_shifted_codes() -> Finding:
    text, kept = _wide(0.1, shift=2)
    return text, promise_verdict(kept)


@as_claim(
    "one head with head_dim n = T d and five ReLU layers do it with M = C / eps^(1 + gamma)",
    source="Theorem 2(3)",
    program="theory.construct_wide, theory.wide_size",
    repair="Lemma 9's middle matrix has T N x 2 N entries, N of the order of 1 / eps: with its zeros counted M "
    "grows as eps^-max(2, 1 + gamma)",
    control=Claim(statement="position codes passed on by two places", check=_wide_with_shifted_codes),
)
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
