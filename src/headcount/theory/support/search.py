"""A search for the sequence at which most tokens have a gradient."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...keys import named_generator
from ...tasks import GeneratedTask, Retrieval
from ..collisions.domain import Domain
from .gradients import count_tokens, gradient_sizes
from .starts import Sequences, component_starts, domain_of_tokens, free_sequences, reflected, sampled

FEW = 64
"""Sequences that are tried where only sampled ones are valid: most of them are alike."""


class Found(NamedTuple):
    """The most tokens found, the sequence, the answer that has them and the sizes of its gradients; `typical` is the
    median over sequences as the task draws them.
    """

    count: int
    sequence: Float[np.ndarray, "length dim"]
    answer: int
    sizes: Float[np.ndarray, " length"]
    typical: float = 0.0


def most_tokens(
    task: GeneratedTask, *, starts: int, rounds: int, seed: int, relative: float, enough: int | None = None
) -> Found:
    """The sequence with the most tokens that have a gradient of at least `relative` times the largest.

    Chains change some of their tokens in every round and keep the change unless fewer tokens count, or their smallest
    gradient falls. The search ends early where `enough` tokens are found.
    """
    draw, domain = named_generator(seed, "support search"), domain_of_tokens(task)
    sequences = _starts(task, domain, starts, draw)
    with jax.enable_x64(True):
        sizes_of = gradient_sizes(task)
        sizes = np.asarray(sizes_of(jnp.asarray(sequences)))
        drawn = sizes[: len(sequences) if domain is None else starts // 4]
        typical = float(np.median(np.max(count_tokens(drawn, relative), axis=1)))
        best, rank = _best(None, sequences, sizes, relative), _rank(sizes, relative)
        for _ in range(rounds if domain is not None else 0):
            if enough is not None and best.count >= enough:
                break
            assert domain is not None
            moved = _moved(sequences, domain, draw)
            sizes = np.asarray(sizes_of(jnp.asarray(moved)))
            best, new_rank = _best(best, moved, sizes, relative), _rank(sizes, relative)
            better = new_rank >= rank
            sequences, rank = np.where(better[:, None, None], moved, sequences), np.where(better, new_rank, rank)
    return best._replace(typical=typical)


def _starts(task: GeneratedTask, domain: Domain | None, count: int, draw: np.random.Generator) -> Sequences:
    if domain is None:
        return sampled(task, min(count, FEW), draw)
    parts = [sampled(task, count // 4, draw)]
    if isinstance(task, Retrieval):
        parts.append(component_starts(task, domain, count // 4, draw))
    parts.append(free_sequences(task, domain, count - sum(map(len, parts)), draw))
    return reflected(np.concatenate(parts), domain)


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
    return reflected(moved, domain)


def _rank(sizes: Float[np.ndarray, "sequences answers length"], relative: float) -> np.ndarray:
    """Larger with each further token that counts; between equal counts, with the smallest gradient that does."""
    counts = count_tokens(sizes, relative)
    shares = sizes / np.maximum(sizes.max(axis=-1, keepdims=True), 1e-300)
    smallest = np.min(np.where(shares > relative, shares, 1.0), axis=-1)
    return np.max(counts + smallest / 2, axis=1)


def _best(before: Found | None, sequences: Sequences, sizes: np.ndarray, relative: float) -> Found:
    """The better of `before` and the best of these sequences; of equal counts, the larger smallest gradient."""
    which = int(np.argmax(_rank(sizes, relative)))
    answer = int(np.argmax(_rank(sizes[which][:, None], relative)))
    here = Found(int(count_tokens(sizes[which, answer], relative)), sequences[which], answer, sizes[which, answer])
    if before is None:
        return here
    ranks = [_rank(one.sizes[None, None], relative)[0] for one in (before, here)]
    return before if ranks[0] >= ranks[1] else here
