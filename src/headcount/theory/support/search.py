"""A search for the sequence at which most tokens have a gradient of the target: gradients, starts, and the search."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from jax.lax import copy_p
from jaxtyping import Array, Float
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from ..._precision import traced_in_double
from ..._shapes import Tokens
from ...errors import InputError, require
from ...keys import named_generator
from ...tasks import AbstractTask, GeneratedTask, Retrieval
from ..collisions.domain import Domain, domain_of

FEW = 64
"""Sequences that are tried where only sampled ones are valid: most of them are alike."""
POOL = 512
"""Tokens per start, if not more, among which each component's lowest is chosen."""
Sequences = Float[np.ndarray, "sequences length dim"]
Answers = Callable[[Tokens], Float[Array, " answers"]]
GradientSizes = Callable[[Float[Array, "sequences length dim"]], Float[Array, "sequences answers length"]]


class Found(NamedTuple):
    """The sequence with the most tokens found, the answer that has them, and the sizes of its gradients."""

    rank: float
    """Larger with each further token; between equal counts, with the smallest gradient that counts."""
    count: int
    sequence: Float[np.ndarray, "length dim"]
    answer: int
    sizes: Float[np.ndarray, " length"]
    typical: float = 0.0
    """The median number of tokens over sequences as the task draws them."""


def most_tokens(task: GeneratedTask, *, starts: int, rounds: int, seed: int, relative: float, enough: int) -> Found:
    """Return the sequence with the most tokens that have a gradient of at least `relative` times the largest.

    Chains change some of their tokens in every round and keep the change unless fewer tokens count, or their smallest
    gradient falls. The search ends early where `enough` tokens are found.
    """
    draw = named_generator(seed, "support search")
    # None where only sampled sequences are valid, such as points on a sphere.
    domain = domain_of(task) if getattr(task, "distribution", None) is not None else None
    sequences = _starts(task, domain, starts, draw)
    with jax.enable_x64(True):
        sizes_of = _gradient_sizes(task)
        sizes = np.asarray(sizes_of(jnp.asarray(sequences)))
        drawn = sizes[: len(sequences) if domain is None else starts // 4]
        typical = float(np.median(np.max(_count_tokens(drawn, relative), axis=1)))
        ranks = _ranks(sizes, relative)
        best = _best_sequence(sequences, sizes, ranks, relative)
        for _ in range(rounds):
            if domain is None or best.count >= enough:
                break
            moved = _moved(sequences, domain, draw)
            sizes = np.asarray(sizes_of(jnp.asarray(moved)))
            new_ranks = _ranks(sizes, relative)
            best = max(best, _best_sequence(moved, sizes, new_ranks, relative), key=lambda found: found.rank)
            better = new_ranks >= ranks
            sequences, ranks = np.where(better[:, None, None], moved, sequences), np.where(better, new_ranks, ranks)
    return best._replace(typical=typical)


def _starts(task: GeneratedTask, domain: Domain | None, count: int, draw: np.random.Generator) -> Sequences:
    if domain is None:
        return _sampled(task, min(count, FEW), draw)
    parts = [_sampled(task, count // 4, draw)]
    if isinstance(task, Retrieval):
        parts.append(_component_starts(task, domain, count // 4, draw))
    parts.append(_free_sequences(task, domain, count - sum(map(len, parts)), draw))
    return _reflected(np.concatenate(parts), domain)


def _moved(sequences: Sequences, domain: Domain, draw: np.random.Generator) -> Sequences:
    """Each sequence with one token or a tenth of them changed: drawn anew, moved a little, or taken from another."""
    low, high = domain.inner
    shape, count = sequences.shape, len(sequences)
    chosen = draw.random(shape[:2]) < np.where(draw.random((count, 1)) < 0.5, 1 / shape[1], 0.1)
    chosen[np.arange(count), draw.integers(shape[1], size=count)] = True
    width = (high - low) * np.exp(draw.uniform(np.log(1e-3), np.log(0.3), (count, 1, 1)))
    kinds = [
        draw.uniform(low, high, shape),
        sequences + width * draw.standard_normal(shape),
        sequences[draw.permutation(count)] + 1e-3 * (high - low) * draw.standard_normal(shape),
    ]
    kind = draw.integers(len(kinds), size=(count, 1, 1))
    moved = np.where(chosen[..., None], np.choose(kind, kinds), sequences)
    return _reflected(moved, domain)


def _ranks(sizes: Float[np.ndarray, "sequences answers length"], relative: float) -> np.ndarray:
    """Return the rank of every sequence, by its best answer."""
    shares = sizes / np.maximum(sizes.max(axis=-1, keepdims=True), 1e-300)
    smallest = np.min(np.where(shares > relative, shares, 1.0), axis=-1)
    return np.max(_count_tokens(sizes, relative) + smallest / 2, axis=1)


def _best_sequence(sequences: Sequences, sizes: np.ndarray, ranks: np.ndarray, relative: float) -> Found:
    which = int(np.argmax(ranks))
    answer = int(np.argmax(_ranks(sizes[which][:, None], relative)))
    counted = sizes[which, answer]
    return Found(float(ranks[which]), int(_count_tokens(counted, relative)), sequences[which], answer, counted)


def _sampled(task: GeneratedTask, count: int, draw: np.random.Generator) -> Sequences:
    shape = (count, task.length, task.dim)
    distribution = getattr(task, "distribution", None)
    if distribution is not None:
        return draw.standard_normal(shape) if distribution == "gaussian" else draw.random(shape)
    # The default generator's programs take seconds to compile on a CPU.
    keys = jr.split(jr.key(int(draw.integers(2**31)), impl="unsafe_rbg"), count)  # noqa: TID251, of a named draw
    return np.asarray(jax.jit(jax.vmap(task.sample))(keys), np.float64)


def _free_sequences(task: GeneratedTask, domain: Domain, count: int, draw: np.random.Generator) -> Sequences:
    """A third uniform, a third in one cluster, a third in a cluster at a corner: some components of a target act only
    where every token is far from their minimum.
    """
    shape = (count, task.length, task.dim)
    sequences = draw.uniform(domain.low, domain.high, shape)
    centres = draw.uniform(domain.low, domain.high, (count, 1, task.dim))
    corners = np.where(draw.random(centres.shape) < 0.5, domain.low, domain.high)
    centres[2::3] = corners[2::3]
    width = (domain.high - domain.low) * np.exp(draw.uniform(np.log(0.003), np.log(0.5), (count, 1, 1)))
    clustered = _reflected(centres + width * (draw.random(shape) - 0.5), domain)
    return np.where(np.arange(count)[:, None, None] % 3 == 0, sequences, clustered)


def _reflected(sequences: Sequences, domain: Domain) -> Sequences:
    """Return the sequences with tokens reflected at the faces of the domain: clipped ones would be equal, and tie."""
    low, high = domain.inner
    turned = np.where(sequences < low, 2 * low - sequences, sequences)
    turned = np.where(turned > high, 2 * high - turned, turned)
    far = (turned < low) | (turned > high)
    return np.where(far, low + (high - low) * (np.abs(turned - low) / (high - low) % 1), turned)


def _component_starts(task: Retrieval, domain: Domain, count: int, draw: np.random.Generator) -> Sequences:
    """The sequences of the proof: a token near the minimiser of each component, at distinct places of the position
    sets, all others elsewhere.

    Near a minimiser means the lowest value among a pool of tokens, all of which the others are drawn from.
    """
    most = max(POOL, task.length)
    pools = draw.uniform(domain.low, domain.high, (count, most, task.dim))
    with jax.enable_x64(True):
        features = traced_in_double(task.features, task.dim)
        values = np.asarray(jax.jit(jax.vmap(jax.vmap(features)))(jnp.asarray(pools)))
    sequences = np.empty((count, task.length, task.dim))
    for sequence, pool, of_pool in zip(sequences, pools, values, strict=True):
        sequence[:] = pool[draw.choice(most, task.length, replace=False)]
        places = distinct_places(task, draw)
        chosen = places >= 0
        sequence[places[chosen]] = pool[np.argmin(of_pool, axis=0)[chosen]]
    # Two components may share their lowest token, which would tie with itself.
    return sequences + 1e-4 * (domain.high - domain.low) * (draw.random(sequences.shape) - 0.5)


def distinct_places(task: Retrieval, draw: np.random.Generator) -> np.ndarray:
    """Return a place in S_i for each component i, all distinct, by a maximum matching; -1 for those that get none."""
    order = draw.permutation(task.length)
    matched = maximum_bipartite_matching(csr_matrix(task.mask[order].T), perm_type="column")
    return np.where(matched >= 0, order[matched], -1)


def require_gradient(task: AbstractTask) -> GeneratedTask:
    """Return the task, where its target is a function of real tokens to real numbers that JAX can differentiate.

    Raises `InputError` otherwise: stored examples, integer targets, code that JAX cannot trace.
    """
    if not isinstance(task, GeneratedTask):
        raise InputError(
            f"{getattr(task, 'name', task)}: stored examples have no gradient; a support dimension needs a target that "
            "is a JAX function of the tokens. `estimate_support` estimates it from a trained model.",
            what="task",
        )
    tokens = jax.ShapeDtypeStruct((task.length, task.dim), jnp.float32)
    try:
        shape = jax.eval_shape(task.target, tokens)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise InputError(
            f"{task.name}: JAX cannot trace the target, so it has no gradient; write it with jax.numpy instead of "
            "NumPy, and without if statements about tokens.",
            what="task",
        ) from error
    except Exception as error:
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(
            f"{task.name}: the user-supplied function raised {type(error).__name__}: {first_line}."
        ) from error
    require(
        jnp.issubdtype(shape.dtype, jnp.floating),
        f"{task.name}: targets of type {shape.dtype} have no gradient; a target must be a real number that changes "
        "smoothly with the tokens.",
        what="task",
    )
    return task


def answers_of(task: GeneratedTask) -> Answers:
    """Return one number per answer: a target's numbers in a fixed random combination, whose gradient is zero at a token
    only if theirs are (but for combinations of measure zero).

    A task has one answer, or one per token where every token is answered. Use it under `jax.enable_x64(True)`.
    """
    target_of = traced_in_double(task.target, task.length, task.dim)

    def combined(tokens: Tokens) -> Float[Array, " answers"]:
        target = target_of(tokens)
        rows = target if target.ndim == 2 else target[None]
        if rows.shape[1] == 1:
            return rows[:, 0]
        weights = named_generator(0, "combination of targets").uniform(0.5, 1.5, rows.shape[1])
        return jnp.sum(rows * weights, axis=1)

    return combined


def _gradient_sizes(task: GeneratedTask) -> GradientSizes:
    """Return the largest entry of the gradient at each token, per answer, of many sequences; compiled.

    Use it under `jax.enable_x64(True)`. A gradient that is not finite counts as zero. `stop_gradient` is the identity;
    custom derivatives are used as they are, and only a certificate is independent of them. Raises `InputError` where
    JAX has no derivative.
    """
    tokens = jax.ShapeDtypeStruct((task.length, task.dim), jnp.float64)
    closed = jax.make_jaxpr(answers_of(task))(tokens)
    target = jaxpr_as_fun(closed.replace(jaxpr=_without_stops(closed.jaxpr)))
    slopes = jax.jacrev(lambda tokens: target(tokens)[0])
    try:
        jax.eval_shape(slopes, tokens)
    except Exception as error:  # whatever JAX raises for an operation without a derivative, or a loop without an end
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(
            f"{task.name}: JAX cannot differentiate the target ({first_line}); a support dimension needs a target "
            "whose operations have derivatives.",
            what="task",
        ) from error

    @jax.jit
    def gradient_sizes(sequences: Float[Array, "sequences length dim"]) -> Float[Array, "sequences answers length"]:
        blocks = jnp.max(jnp.abs(jax.vmap(slopes)(sequences)), axis=-1)
        return jnp.where(jnp.isfinite(blocks), blocks, 0.0)

    return gradient_sizes


def _without_stops(jaxpr: Jaxpr) -> Jaxpr:
    """Make `stop_gradient` the identity, also in the functions, branches and loops that a program calls.

    What custom derivatives call is left as it is.
    """

    def changed(value: Any) -> Any:
        if type(value) is tuple:  # and no named one, which no program is in
            return tuple(map(changed, value))
        if isinstance(value, ClosedJaxpr):
            return value.replace(jaxpr=_without_stops(value.jaxpr))
        return _without_stops(value) if isinstance(value, Jaxpr) else value

    equations = []
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "stop_gradient":
            equation = equation.replace(primitive=copy_p)
        elif not name.startswith("custom_"):
            equation = equation.replace(params={key: changed(value) for key, value in equation.params.items()})
        equations.append(equation)
    return jaxpr.replace(eqns=equations)


def _count_tokens(sizes: Float[np.ndarray, "*others length"], relative: float) -> Any:
    """Return the number of tokens that have a gradient of at least `relative` times the largest of their sequence."""
    largest = sizes.max(axis=-1, keepdims=True)
    return np.sum((sizes > relative * largest) & (sizes > 0), axis=-1)
