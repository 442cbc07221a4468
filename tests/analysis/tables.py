"""Tables of errors whose answer is known."""

import numpy as np

from headcount.analysis import ErrorTable

HEADS = (1, 2, 3, 4, 5, 6)
LENGTHS = (8, 16, 32)


def table(by_heads, *, lengths=LENGTHS, seeds=4, heads=HEADS, noise=0.1, floor=0.0, growth=0.0, seed=0) -> ErrorTable:
    """Errors `by_heads`, times length**growth, over a `floor`, with log-normal `noise` (in decades) between seeds."""
    generator = np.random.default_rng(seed)
    level = np.asarray(by_heads, float)[:, None] * (np.asarray(lengths) / lengths[0]) ** growth
    scatter = 10 ** (noise * np.abs(generator.standard_normal((len(by_heads), len(lengths), seeds))))
    return ErrorTable(
        heads=tuple(heads)[: len(by_heads)],
        lengths=tuple(lengths),
        seeds=tuple(range(seeds)),
        nmse=floor + level[..., None] * scatter,
    )


def sharp(transition: int, count: int = 6, before: float = 2e-2, after: float = 5e-5) -> list[float]:
    """Errors that halve from head to head, and fall to `after` at the transition."""
    return [before / 2**i if i + 1 < transition else after for i in range(count)]
