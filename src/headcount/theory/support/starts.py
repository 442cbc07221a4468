"""Sequences that a search for many gradients starts from, and the tokens that it tries."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from ..._precision import traced_in_double
from ...tasks import GeneratedTask, Retrieval
from ..collisions.domain import Domain, domain_of

POOL = 512
"""Tokens per start, if not more, among which each component's lowest is chosen."""
Sequences = Float[np.ndarray, "sequences length dim"]


def domain_of_tokens(task: GeneratedTask) -> Domain | None:
    """The box that tokens may be moved in; None where only sampled sequences are valid, such as points on a sphere."""
    return domain_of(task) if getattr(task, "distribution", None) is not None else None


def sampled(task: GeneratedTask, count: int, draw: np.random.Generator) -> Sequences:
    """Sequences as the task draws them."""
    shape = (count, task.length, task.dim)
    distribution = getattr(task, "distribution", None)
    if distribution is not None:
        return draw.standard_normal(shape) if distribution == "gaussian" else draw.random(shape)
    # The default generator's programs take seconds to compile on a CPU.
    keys = jr.split(jr.key(int(draw.integers(2**31)), impl="unsafe_rbg"), count)  # noqa: TID251, of a named draw
    return np.asarray(jax.jit(jax.vmap(task.sample))(keys), np.float64)


def free_sequences(task: GeneratedTask, domain: Domain, count: int, draw: np.random.Generator) -> Sequences:
    """A third uniform, a third in one cluster, a third in a cluster at a corner: some components of a target act only
    where every token is far from their minimum.
    """
    shape = (count, task.length, task.dim)
    sequences = draw.uniform(domain.low, domain.high, shape)
    centres = draw.uniform(domain.low, domain.high, (count, 1, task.dim))
    corners = np.where(draw.random(centres.shape) < 0.5, domain.low, domain.high)
    centres[2::3] = corners[2::3]
    width = (domain.high - domain.low) * np.exp(draw.uniform(np.log(0.003), np.log(0.5), (count, 1, 1)))
    clustered = reflected(centres + width * (draw.random(shape) - 0.5), domain)
    for part in (slice(1, None, 3), slice(2, None, 3)):
        sequences[part] = clustered[part]
    return sequences


def reflected(sequences: Sequences, domain: Domain) -> Sequences:
    """The sequences with tokens reflected at the faces of the domain: clipped ones would be equal, and tie."""
    low, high = domain.inner
    turned = np.where(sequences < low, 2 * low - sequences, sequences)
    turned = np.where(turned > high, 2 * high - turned, turned)
    far = (turned < low) | (turned > high)
    return np.where(far, low + (high - low) * (np.abs(turned - low) / (high - low) % 1), turned)


def component_starts(task: Retrieval, domain: Domain, count: int, draw: np.random.Generator) -> Sequences:
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
    """A place in S_i for each component i, all distinct, by a maximum matching; -1 for those that get none."""
    order = draw.permutation(task.length)
    matched = maximum_bipartite_matching(csr_matrix(task.mask[order].T), perm_type="column")
    return np.where(matched >= 0, order[matched], -1)
