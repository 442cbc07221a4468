"""Claims of the first paper about enough heads (Yu et al., arXiv 2510.06662): Theorems 1, 2(1), 2(3), Lemmas 8, 9."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..._keys import named_generator
from ...tasks import Retrieval, max_plus_min, quadratic_basins
from ..bounds import head_error, max_net_widths
from ..constructions.adversary import largest_error
from ..constructions.density import promised_error, retrieval_of
from ..constructions.enough_heads import construct
from ..constructions.relu_nets import compose, interpolation_net, max_net
from ..constructions.wide_head import construct_wide, wide_size
from .claim import Result, claim, verdict_of


@claim(
    "every continuous function of a sequence is within any error of a retrieval task",
    source="Theorem 1",
    program="theory.retrieval_of",
    repair="the selector's rate is ours: 0.278 q^(-1/2), attained; its last step, a polynomial in place of the "
    "function, is omitted",
)
def density() -> Result:
    length, powers = 8, (1e2, 1e3, 1e4)
    sequences = named_generator(0, "ledger", "density").uniform(0, 1, (256, length, 1))
    # The selector is worst where two values are close together in the middle.
    sequences[::2] = np.clip(0.5 + 0.1 * (sequences[::2] - 0.5), 0, 1)
    errors = []
    for q in powers:
        task = retrieval_of(jnp.ravel, length=length, dim=1, q=q)
        with jax.enable_x64(True):
            recovered = np.asarray(jax.jit(jax.vmap(task.target))(jnp.asarray(sequences)))
        errors.append(float(np.abs(recovered - sequences[..., 0]).max()))
    promised = [promised_error(q) for q in powers]
    slope = math.log(promised[-1] / promised[0]) / math.log(powers[-1] / powers[0])
    pairs = ", ".join(
        f"q = {q:g}: {error:.1e} of {bound:.1e}" for q, error, bound in zip(powers, errors, promised, strict=True)
    )
    return (
        f"T = 8, inputs recovered within (found of promised) {pairs}; promised falls as q^{slope:.2f}",
        verdict_of(all(error <= bound + 1e-12 for error, bound in zip(errors, promised, strict=True))),
    )


@claim(
    "a softmax head reads the minimum over S_i within (|S_i| - 1) / (e beta) + T exp(-beta (G - 1))",
    source="Theorem 2(1), head error",
    program="theory.bounds.head_error",
    repair="the published gate of depth 1 ties a token inside with Psi = 1 and one outside with Psi = 0; a depth "
    "G > 1 is needed, and the component nets overshoot [0, 1] by delta, so G - 2 delta of it is left",
)
def gate() -> Result:
    values, inside, beta = np.array([1.0, 0.0]), np.array([True, False]), 50.0

    def read(depth: float) -> float:
        weights = np.exp(beta * (-values - depth * ~inside))
        return float(weights @ values / weights.sum())

    bound = head_error(beta, 1, 2, 2.0).value or 0.0
    holds = abs(read(2.0) - 1.0) <= bound + 1e-12 and abs(read(1.0) - 1.0) > 0.4
    return (
        f"two tokens, beta = 50: depth 1 reads {read(1.0):.2f} where the minimum is 1, depth 2 reads "
        f"{read(2.0):.4f} (bound {bound:.1e})",
        verdict_of(holds),
    )


@claim(
    "h = D heads with head_dim n = 2 have error at most eps with M = C / eps^gamma",
    source="Theorem 2(1)",
    program="theory.construct, theory.largest_error",
    repair="heads read values in [-delta, 1 + delta] while F0 is given on [0, 1]^D: a fitted outer map is preceded "
    "by a rescaling, which costs another L0 delta",
)
def enough_heads() -> Result:
    tasks = {"max + min": max_plus_min(length=8), "basins D = 3, d = 2": quadratic_basins(length=8)}
    parts, holds, sizes = [], True, []
    for name, task in tasks.items():
        for eps in (0.1, 0.03, 0.01):
            text, kept, size = _construction(task, eps, proved=True)
            holds &= kept
            parts.append(f"{name}, {text}")
            sizes.append(size)
    slope = math.log(sizes[5] / sizes[3]) / math.log(10)
    return (
        f"T = 8, found of promised: {'; '.join(parts)}; basins grow as eps^-{slope:.2f} (gamma = 0.5)",
        verdict_of(holds and abs(slope - 0.5) < 0.1),
    )


@claim("the same for components of any form, by fitted nets", source="Theorem 2(1)", program="theory.construct")
def fitted_heads() -> Result:
    def wave(x):
        return (jnp.sin(3 * x[0]) + 1) / 2 * x[1]

    task = Retrieval(
        [lambda x: x[0] * x[1], wave], lambda z: z[0] * z[1], length=8, dim=2, distribution="cube", name="yours"
    )
    results = [_construction(task, eps, proved=False) for eps in (0.1, 0.03, 0.01)]
    return (
        f"x1 x2 and a wave times x2, outer map a product, found of promised: {'; '.join(text for text, *_ in results)}",
        verdict_of(all(kept for _, kept, _ in results), estimated=True),
    )


def _construction(task: Retrieval, eps: float, *, proved: bool) -> tuple[str, bool, int]:
    """A construction in words, whether no adversary breaks its promise, and its size M."""
    built = construct(task, eps)
    error, _ = largest_error(built.model, task, starts=32, steps=100)
    text = f"eps {eps:g}: {error:.1e} of {built.promised:.1e}, M = {built.parameters}"
    return text, built.proved == proved and error <= built.promised <= eps, built.parameters


@claim("nets of 2, 3 and 2 layers compose into one of 5", source="Lemma 8", program="theory.compose")
def lemma_8() -> Result:
    first = interpolation_net(lambda s: s * s, curvature=2.0, low=0.0, high=1.0, delta=0.01)
    middle, last = max_net(1, 0.1), interpolation_net(math.exp, curvature=3.0, low=0.0, high=1.0, delta=0.01)
    whole = compose(first, middle, last)
    points = np.linspace(0, 1, 101)
    gap = max(abs(float(whole(np.array([x]))[0] - last(middle(first(np.array([x]))))[0])) for x in points)
    return (
        f"{len(whole.layers)} layers; they differ by {gap:.1e} at 101 points",
        verdict_of(len(whole.layers) == 5 and gap < 1e-12),
    )


@claim(
    "three ReLU layers of width at most 2 T ceil(1 / eps) give the maximum of T numbers within eps",
    source="Lemma 9",
    program="theory.max_net",
)
def lemma_9() -> Result:
    eps, count = 0.1, 5
    net = max_net(count, eps)
    numbers = named_generator(0, "ledger", "lemma 9").uniform(0, 1, (500, count))
    worst = max(abs(float(net(row)[0]) - float(row.max())) for row in numbers)
    return (
        f"T = 5, eps = 0.1: worst of 500 is {worst:.3f}, widths {net.widths}",
        verdict_of(worst <= eps and net.widths == max_net_widths(count, eps)),
    )


@claim(
    "one head with head_dim n = T d and five ReLU layers do it with M = C / eps^(1 + gamma)",
    source="Theorem 2(3)",
    program="theory.construct_wide, theory.wide_size",
    repair="Lemma 9's middle matrix has T N x 2 N entries, N of the order of 1 / eps: with its zeros counted M "
    "grows as eps^-max(2, 1 + gamma)",
)
def wide_head() -> Result:
    task, parts, holds = max_plus_min(length=4), [], True
    for eps in (0.1, 0.03):
        built = construct_wide(task, eps)
        error, _ = largest_error(built.model, task, starts=16, steps=60)
        holds &= built.proved and error <= built.promised <= eps
        narrow = construct(task, eps).parameters
        parts.append(f"eps {eps:g}: {error:.1e} of {built.promised:.1e}, M = {built.parameters:,} (D heads: {narrow})")
    basins = quadratic_basins(length=8)
    sizes = [wide_size(basins, eps, zeros=zeros) for zeros in (True, False) for eps in (1e-2, 1e-3)]
    dense, sparse = math.log10(sizes[1] / sizes[0]), math.log10(sizes[3] / sizes[2])
    return (
        f"max + min, T = 4, found of promised: {'; '.join(parts)}; basins (gamma = 0.5) grow as "
        f"eps^-{sparse:.2f} without zeros, eps^-{dense:.2f} with them",
        verdict_of(holds and abs(sparse - 1.5) < 0.1),
    )
