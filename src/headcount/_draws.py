"""Named draws in NumPy: a function of a seed and the words that say what they are for. No JAX is imported here."""

import zlib

import numpy as np


def named_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return a generator as `named_key` does a key, for draws outside a program: each would cost a compilation."""
    return np.random.default_rng([seed, *numbers_of(names)])


def numbers_of(names: tuple[str | int, ...]) -> list[int]:
    """Return a number per name."""
    return [zlib.crc32(str(name).encode()) for name in names]
