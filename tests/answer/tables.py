"""Tables of errors whose answer is known."""

import numpy as np

from headcount.answer import ErrorTable

HEADS = (1, 2, 3, 4, 5, 6)
LENGTHS = (8, 16, 32)
MAP_HEADS = (1, 2, 4, 8, 16)
RANKS = (1, 2, 4, 8)


def table(by_heads, *, lengths=LENGTHS, seeds=4, heads=HEADS, noise=0.1, floor=0.0, growth=0.0, seed=0) -> ErrorTable:
    """Errors `by_heads`, times length**growth, over a `floor`, with log-normal `noise` (in decades) between seeds."""
    generator = np.random.default_rng(seed)
    level = np.asarray(by_heads, float)[:, None] * (np.asarray(lengths) / lengths[0]) ** growth
    scatter = 10 ** (noise * np.abs(generator.standard_normal((len(by_heads), len(lengths), seeds))))
    axes = {"heads": tuple(heads)[: len(by_heads)], "length": tuple(lengths), "seed": tuple(range(seeds))}
    return ErrorTable(axes=axes, errors=floor + level[..., None] * scatter)


def sharp(transition: int, count: int = 6, before: float = 2e-2, after: float = 5e-5) -> list[float]:
    """Errors that halve from head to head, and fall to `after` at the transition."""
    return [before / 2**i if i + 1 < transition else after for i in range(count)]


def rank_table_of(
    error, *, heads=MAP_HEADS, ranks=RANKS, lengths=(8, 16), seeds=3, noise=0.05, growth=0.0, seed=0
) -> ErrorTable:
    """Errors `error(heads, rank)`, times length**growth, with log-normal `noise` (in decades) between seeds."""
    generator = np.random.default_rng(seed)
    level = np.array([[error(count, rank) for rank in ranks] for count in heads], float)
    level = level[..., None] * (np.asarray(lengths) / lengths[0]) ** growth
    scatter = 10 ** (noise * np.abs(generator.standard_normal((*level.shape, seeds))))
    axes = {"heads": tuple(heads), "rank": tuple(ranks), "length": tuple(lengths), "seed": tuple(range(seeds))}
    return ErrorTable(axes=axes, errors=level[..., None] * scatter)


def farthest(heads: int, rank: int) -> float:
    """The farthest of points in eight dimensions: below full rank more heads help a little."""
    return 0.6 - 0.02 * np.log2(heads) if rank < 8 else 0.05 / heads**0.3


def four_maxima(heads: int, rank: int) -> float:
    return 2e-2 / heads**0.2 if heads < 4 else 1e-4


def takes_both(heads: int, rank: int) -> float:
    return 2e-2 if heads < 4 or rank < 4 else 1e-4


def takes_their_product(heads: int, rank: int) -> float:
    return 2e-2 if heads * rank < 8 else 1e-4
